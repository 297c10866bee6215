// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"testing"

	"github.com/steer-dev/steer/internal/journal"
	"github.com/steer-dev/steer/sim/internal/plan"
)

// notes are the journal of a test: what it is at, on disk before it runs.
type notes struct {
	*journal.Journal
	followed bool
}

// newNotes begins the journal, and returns the plans that went on when a process was killed
// that ran this test before. Without a folder for it, nothing is noted.
func newNotes(t *testing.T) (n notes, left []plan.Plan) {
	t.Helper()
	dir, followed, err := journal.Folder()
	if err != nil {
		t.Logf("sim: plans are not noted before they run: %v", err)
		return n, nil
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	of := journal.Head{Folder: folder, Test: t.Name()}
	runs, err := journal.Left(dir, of)
	if err != nil {
		t.Logf("sim: plans that were cut off: %v", err)
	}
	for _, run := range runs {
		if p, err := plan.Decode([]byte(run.Text)); err == nil && p.Name() != (plan.Plan{}).Name() {
			t.Logf("sim: %s went on when the test was killed the last time: it runs first", p.Name())
			left = append(left, p)
		}
	}
	j, err := journal.Create(dir, of)
	if err != nil {
		t.Logf("sim: plans are not noted before they run: %v", err)
	}
	return notes{j, followed}, left
}

// Begins implements explore.Follower.
func (n notes) Begins(p plan.Plan) {
	if text, err := plan.Encode(p, ""); err == nil {
		n.Journal.Begins(p.Name(), string(text))
	}
}

// Over implements explore.Follower.
func (n notes) Over(p plan.Plan) { n.Journal.Over(p.Name()) }

// Found implements explore.Follower.
func (n notes) Found(p plan.Plan) { n.Journal.Found(p.Name()) }

// end ends the journal. It stays for a command that follows it.
func (n notes) end(t *testing.T, summary string) {
	if err := n.End(summary); err != nil {
		t.Logf("sim: %v", err)
	}
	if n.followed {
		return
	}
	if err := n.Remove(); err != nil {
		t.Logf("sim: %v", err)
	}
}
