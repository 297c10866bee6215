// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWhatWasSeenIsKeptInAFolderThatIsMade(t *testing.T) {
	t.Parallel()
	f := &fake{key: "/steer/.steer/owner", value: `{"format":1,"id":"x"}`}
	s := f.connected(t)
	s.options.RevisionFile = filepath.Join(t.TempDir(), "new", "folder", "revision")
	if _, _, err := s.own(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.reads.write(s.options.RevisionFile, seen{Revision: 7}); err != nil {
		t.Fatal(err)
	}
	if old, err := readSeen(s.options.RevisionFile); err != nil || old.Owner != "x" || old.Revision != 7 {
		t.Errorf("the file says %+v, %v", old, err)
	}
}

func TestOpenRefusesADamagedFileOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{", `{"owner":"x"}`, `{"revision":7}`, "\x00\x00\x00"} {
		f := &fake{key: "/steer/.steer/owner", value: `{"format":1,"id":"x"}`}
		s := f.connected(t)
		s.options.RevisionFile = filepath.Join(t.TempDir(), "revision")
		if err := os.WriteFile(s.options.RevisionFile, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.own(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), s.options.RevisionFile) {
			t.Errorf("%q: got error %v, want ErrDamaged with the name of the file", content, err)
		}
	}
}

func TestOpenRefusesALostFileOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "revision")
	begin := func(id string) error {
		s := (&fake{key: "/steer/.steer/owner", value: `{"format":1,"id":"` + id + `"}`}).connected(t)
		s.options.RevisionFile = file
		if _, _, err := s.own(t.Context()); err != nil {
			return err
		}
		return s.reads.write(file, seen{Revision: 7})
	}
	lose := func(files ...string) {
		t.Helper()
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantDamaged := func(why string) {
		t.Helper()
		if err := begin("x"); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), markOf(file)) {
			t.Errorf("%s: got error %v, want ErrDamaged with what to remove", why, err)
		}
	}
	if err := errors.Join(begin("x"), begin("x")); err != nil {
		t.Fatal("a new server, and its next start: ", err)
	}
	lose(file)
	wantDamaged("the file is lost")
	if err := os.WriteFile(markOf(file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantDamaged("the file is lost, and what says so is damaged")
	lose(markOf(file))
	if err := begin("x"); err != nil {
		t.Fatal("what there is was accepted: ", err)
	}
	lose(file)
	if err := begin("y"); err != nil {
		t.Error("the data of another prefix: ", err)
	}
	// A server of an earlier version has the file alone.
	lose(markOf(file))
	if err := begin("y"); err != nil {
		t.Fatal(err)
	}
	lose(file)
	if err := begin("y"); !errors.Is(err, ErrDamaged) {
		t.Errorf("after a start with the file of an earlier version: got error %v, want ErrDamaged", err)
	}
}

func TestHealthFailsWhileWhatWasSeenCannotBeWritten(t *testing.T) {
	t.Parallel()
	r := reads{confirmed: time.Now()}
	dir := t.TempDir()
	file := filepath.Join(dir, "not", "there")
	if err := r.write(file, seen{Revision: 7}); err == nil || r.health() == nil {
		t.Errorf("writing: %v; the health is %v", err, r.health())
	}
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.write(file, seen{Revision: 7}), r.health()); err != nil {
		t.Error(err)
	}
}

func TestHealthFailsUntilTheStateWasConfirmed(t *testing.T) {
	t.Parallel()
	r := reads{}
	if err := r.health(); err == nil {
		t.Error("a store that was never confirmed is healthy")
	}
	r.confirm(time.Now())
	if err := r.health(); err != nil {
		t.Error(err)
	}
}
