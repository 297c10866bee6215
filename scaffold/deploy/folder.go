// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/internal/transaction"
	"github.com/steer-dev/steer/scaffold/project"
)

// RecordFile is the name of the file in a [Folder] with the hashes of the files that
// were written last.
const RecordFile = ".steer.json"

// Folder is a folder of generated files that its owner may edit. [Folder.Write] replaces
// the files that are as they were written last. It leaves the others, and the owner's
// own, as they are.
type Folder struct {
	// Project is the folder of the project, Output that of the files. A relative output
	// is one in the project.
	Project, Output string
	// Files are the contents by names with slashes.
	Files map[string][]byte
	// Merge makes the content of a file that was edited, by name; nil leaves it.
	Merge map[string]func(edited, generated []byte) ([]byte, error)
	// Force writes edited files anew, too.
	Force bool

	step func()
}

// record is the content of [RecordFile].
type record struct {
	Files map[string]string `json:"files"`
}

// Write writes the files, all or none. The notes of the report name the files that were
// left although what is generated has changed.
func (f *Folder) Write() (*project.Report, error) {
	dir, err := filepath.Abs(f.Project)
	if err != nil {
		return nil, err
	}
	report := &project.Report{}
	report.Restored, err = transaction.Run(dir, f.step, func(tx *transaction.Transaction) error {
		changes, err := f.Changes(report)
		if err != nil || len(changes) == 0 {
			return err
		}
		return tx.Write(changes)
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// Changes are those that [Folder.Write] makes, with the record last; the report gets them.
func (f *Folder) Changes(report *project.Report) ([]generate.Change, error) {
	output := f.Output
	if !filepath.IsAbs(output) {
		dir, err := filepath.Abs(f.Project)
		if err != nil {
			return nil, err
		}
		output = filepath.Join(dir, output)
	}
	recordPath := filepath.Join(output, RecordFile)
	recorded, err := readIfThere(recordPath)
	if err != nil {
		return nil, err
	}
	last := record{Files: map[string]string{}}
	if recorded != nil {
		if err := json.Unmarshal(recorded, &last); err != nil {
			return nil, fmt.Errorf("%s: %w; run: git checkout %s", recordPath, err, RecordFile)
		}
	}
	next := record{Files: map[string]string{}}
	names := map[string][]byte{}
	maps.Copy(names, f.Files)
	for name := range last.Files {
		names[name] = f.Files[name]
	}
	var changes []generate.Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		path := filepath.Join(output, filepath.FromSlash(name))
		now, err := readIfThere(path)
		if err != nil {
			return nil, err
		}
		after, err := f.decide(name, now, last.Files[name], &next, report)
		if err != nil {
			return nil, err
		}
		if same(now, after) {
			continue
		}
		changes = append(changes, generate.Change{Path: path, Before: now, After: after})
		shown := filepath.ToSlash(filepath.Join(f.Output, name))
		switch {
		case now == nil:
			report.Created = append(report.Created, shown)
		case after == nil:
			report.Removed = append(report.Removed, shown)
		default:
			report.Changed = append(report.Changed, shown)
		}
	}
	var text []byte // no file, no record
	if len(next.Files) > 0 {
		if text, err = json.MarshalIndent(next, "", "  "); err != nil {
			return nil, err
		}
		text = append(text, '\n')
	}
	if !same(text, recorded) {
		changes = append(changes, generate.Change{Path: recordPath, Before: recorded, After: text})
	}
	return changes, nil
}

// decide is what a file becomes, given what it is and the hash of what was written last.
func (f *Folder) decide(name string, now []byte, last string, next *record, report *project.Report) ([]byte, error) {
	generated := f.Files[name]
	fresh := generated != nil && transaction.Hash(generated) != last
	untouched := now == nil && last == "" || now != nil && transaction.Hash(now) == last || same(now, generated)
	if untouched || f.Force {
		if generated != nil {
			next.Files[name] = transaction.Hash(generated)
		}
		return generated, nil
	}
	if merge := f.Merge[name]; merge != nil && now != nil && generated != nil {
		next.Files[name] = transaction.Hash(generated)
		return merge(now, generated)
	}
	if last != "" && generated != nil {
		next.Files[name] = last
	}
	shown := filepath.ToSlash(filepath.Join(f.Output, name))
	switch {
	case now == nil && fresh:
		report.Notes = append(report.Notes, shown+" was removed here, and stays so; --force writes it")
	case now != nil && generated == nil:
		report.Notes = append(report.Notes, shown+" was edited here, and is no longer generated: remove it if nothing needs it")
	case now != nil && fresh:
		report.Notes = append(report.Notes, shown+" was edited here, and is left; what is generated now differs: --force writes it, and git diff shows how")
	}
	return now, nil
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func readIfThere(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
