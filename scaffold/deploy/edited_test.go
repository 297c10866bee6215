// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// TestFolderLeavesFilesThatWereEdited generates a file from "old", changes it, and
// generates it from another text.
func TestFolderLeavesFilesThatWereEdited(t *testing.T) {
	t.Parallel()
	const absent = "(absent)"
	merge := func(edited, generated []byte) ([]byte, error) {
		return append(append([]byte{}, edited...), "+"+string(generated)...), nil
	}
	for name, c := range map[string]struct {
		edited, generated string
		force             bool
		merge             func(edited, generated []byte) ([]byte, error)
		want              string
		report            project.Report
	}{
		"untouched":                   {edited: "old", generated: "new", want: "new", report: project.Report{Changed: []string{"out/a"}}},
		"untouched, not generated":    {edited: "old", generated: absent, want: absent, report: project.Report{Removed: []string{"out/a"}}},
		"edited, generated as before": {edited: "mine", generated: "old", want: "mine"},
		"edited to what is generated": {edited: "new", generated: "new", want: "new"},
		"edited": {edited: "mine", generated: "new", want: "mine", report: project.Report{Notes: []string{
			"out/a was edited here, and is left; what is generated now differs: --force writes it, and git diff shows how",
		}}},
		"edited, not generated": {edited: "mine", generated: absent, want: "mine", report: project.Report{Notes: []string{
			"out/a was edited here, and is no longer generated: remove it if nothing needs it",
		}}},
		"removed, generated as before": {edited: absent, generated: "old", want: absent},
		"removed": {edited: absent, generated: "new", want: absent, report: project.Report{Notes: []string{
			"out/a was removed here, and stays so; --force writes it",
		}}},
		"edited, forced":  {edited: "mine", generated: "new", force: true, want: "new", report: project.Report{Changed: []string{"out/a"}}},
		"removed, forced": {edited: absent, generated: "new", force: true, want: "new", report: project.Report{Created: []string{"out/a"}}},
		"edited, merged":  {edited: "mine", generated: "new", merge: merge, want: "mine+new", report: project.Report{Changed: []string{"out/a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := deploy.Folder{Project: t.TempDir(), Output: "out", Files: map[string][]byte{"a": []byte("old")}}
			if _, err := f.Write(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(f.Project, "out", "a")
			var err error
			if c.edited == absent {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, []byte(c.edited), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Files, f.Force = map[string][]byte{}, c.force
			if c.generated != absent {
				f.Files["a"] = []byte(c.generated)
			}
			if c.merge != nil {
				f.Merge = map[string]func(edited, generated []byte) ([]byte, error){"a": c.merge}
			}
			report, err := f.Write()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.report, report); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			got, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				got = []byte(absent)
			} else if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("the file is %q, want %q", got, c.want)
			}
		})
	}
}
