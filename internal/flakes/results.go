// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// run is the record of one run of a test binary: a line of the file of results.
type run struct {
	Package string `json:"package"`
	Binary  string `json:"binary"` // the hash
	condition
	Seed    int64   `json:"seed"`
	Seconds float64 `json:"seconds"`
	// Same says that the tests that passed and that were skipped are those of the first run of
	// the binary, so that their names are written once.
	Same bool `json:"same,omitempty"`
	outcome
}

// results is the file of the runs, which only grows. Several processes may write to it.
type results struct {
	file *os.File
	runs []run
}

// openResults reads the file, and makes it when it is missing. A last line that a process was
// ended in the middle of is not counted.
func openResults(name string) (*results, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	r := &results{}
	whole := bytes.LastIndexByte(data, '\n') + 1
	for number, line := range bytes.Split(bytes.TrimSuffix(data[:whole], []byte("\n")), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var one run
		if err := json.Unmarshal(line, &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w: mend or delete the line", name, number+1, err)
		}
		if one.Same {
			if first := r.first(one.Binary); first != nil {
				one.Passed, one.Skipped = first.Passed, first.Skipped
			}
		}
		r.runs = append(r.runs, one)
	}
	if r.file, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return nil, err
	}
	if whole < len(data) {
		if err := r.file.Truncate(int64(whole)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Close closes the file, to which every run was written when it ended.
func (r *results) Close() { r.file.Close() }

// add records a run.
func (r *results) add(one run) error {
	written := one
	if first := r.first(one.Binary); first != nil && slices.Equal(first.Passed, one.Passed) && slices.Equal(first.Skipped, one.Skipped) {
		written.Same, written.Passed, written.Skipped = true, nil, nil
	}
	line, err := json.Marshal(written)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("record a run: %w", err)
	}
	r.runs = append(r.runs, one)
	return nil
}

// first is the first run of a binary, nil if there is none.
func (r *results) first(hash string) *run {
	for i := range r.runs {
		if r.runs[i].Binary == hash {
			return &r.runs[i]
		}
	}
	return nil
}

// rounds is how many runs of a binary are recorded.
func (r *results) rounds(hash string) int {
	n := 0
	for _, one := range r.runs {
		if one.Binary == hash {
			n++
		}
	}
	return n
}

// newest are the hashes of the binaries of the last run of each package.
func (r *results) newest() []string {
	last := map[string]string{}
	for _, one := range r.runs {
		last[one.Package] = one.Binary
	}
	var hashes []string
	for _, hash := range last {
		hashes = append(hashes, hash)
	}
	slices.Sort(hashes)
	return hashes
}
