// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package vfs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestARefusedDirectWriteIsMadeThroughTheCache holds that a file whose space is in
// the page cache, not on the disk, is written all the same, and directly from the
// next write on where the file system can.
func TestARefusedDirectWriteIsMadeThroughTheCache(t *testing.T) {
	t.Parallel()
	d := OS(t.TempDir())
	f, err := d.Open("log", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 64<<10), 0); err != nil {
		t.Fatal(err)
	}
	piece := bytes.Repeat([]byte("0123456789"), 300)
	for i := range 10 {
		if err := f.WriteSync(piece, int64(i*len(piece))); err != nil {
			t.Fatal(err)
		}
	}
	direct := &f.(*osFile).direct
	if direct.file == nil {
		t.Log("this file system takes no direct writes")
	} else if direct.missed != 0 {
		t.Errorf("%d direct writes in a row were refused", direct.missed)
	}
	got, err := os.ReadFile(filepath.Join(d.(*osDir).root, "log"))
	if err != nil || !bytes.Equal(got[:10*len(piece)], bytes.Repeat(piece, 10)) {
		t.Errorf("read something else: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if direct.file != nil || direct.ring != nil || d.(*osDir).rings.spare != nil {
		t.Error("what direct writes need is still there after Close")
	}
}

// TestTheRuntimeIsToldOfSubmissionsThatMayWait holds that one submission that waits
// takes away the trust of all before it.
func TestTheRuntimeIsToldOfSubmissionsThatMayWait(t *testing.T) {
	t.Parallel()
	var now trust
	for _, slow := range []bool{false, true, false} {
		if slow {
			now.note(waited + time.Nanosecond)
		}
		for range trustAfter {
			if now.earned() {
				t.Fatal("trusted too early")
			}
			now.note(waited)
		}
		if !now.earned() {
			t.Fatal("not trusted after submissions that did not wait")
		}
		now.note(waited)
		if !now.earned() {
			t.Fatal("trust was lost for nothing")
		}
		now.note(2 * waited)
	}
}
