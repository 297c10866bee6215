// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func of() Head { return Head{Folder: "/src/town", Test: "TestAShop"} }

// TestAJournalSaysWhatGoesOn reads one while it is written.
func TestAJournalSaysWhatGoesOn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "as", "needed")
	j, err := Create(dir, of())
	if err != nil {
		t.Fatal(err)
	}
	j.Plans(120)
	j.Begins("order_1", "steer sim plan v1\norder 1\n")
	j.Begins("order_2", "steer sim plan v1\norder 2\n")
	j.Over("order_1")
	j.Found("order_1")
	all, err := All(dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d journals, %v", len(all), err)
	}
	s := all[0]
	if s.Head != of() || s.Plans != 120 || s.Over != 1 || s.Ended || !slices.Equal(s.Found, []string{"order_1"}) {
		t.Errorf("it says %+v", s)
	}
	if want := []Run{{"order_2", "steer sim plan v1\norder 2\n"}}; !slices.Equal(s.Running, want) {
		t.Errorf("running are %v, want %v", s.Running, want)
	}
	if err := j.End("3 runs"); err != nil {
		t.Fatal(err)
	}
	if all, _ = All(dir); !all[0].Ended || all[0].Summary != "3 runs" {
		t.Errorf("at its end it says %+v", all[0])
	}
	if err := j.Remove(); err != nil {
		t.Error(err)
	}
	if all, _ = All(dir); len(all) != 0 {
		t.Errorf("it is still there: %v", all)
	}
}

// TestLeftAreThePlansOfAProcessThatIsGone tells them from those of one that goes on, and
// from those of another test.
func TestLeftAreThePlansOfAProcessThatIsGone(t *testing.T) {
	t.Parallel()
	const gone = 1 << 30 // no process has such a number
	dir := t.TempDir()
	write := func(h Head, pid int, plan string) string {
		j, err := Create(dir, h)
		if err != nil {
			t.Fatal(err)
		}
		j.Begins("before", "text")
		j.Over("before")
		j.Begins(plan, "text of "+plan)
		_, _ = j.file.WriteString(`{"Over":"` + plan) // it was killed meanwhile
		_ = j.file.Close()
		file := filepath.Join(dir, fmt.Sprint(h.prefix(), pid, "-1", extension))
		if err := os.Rename(j.file.Name(), file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	other := of()
	other.Test = "TestAnother"
	removed := write(of(), gone, "order_7")
	kept := []string{write(of(), os.Getpid(), "order_8"), write(other, gone, "order_9")}
	left, err := Left(dir, of())
	if want := []Run{{"order_7", "text of order_7"}}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v, want %v", left, err, want)
	}
	if _, err := os.Stat(removed); !os.IsNotExist(err) {
		t.Errorf("the journal is still there: %v", err)
	}
	for _, file := range kept {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}
