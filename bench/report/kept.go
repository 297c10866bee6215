// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Kept are the reports that published figures come from, by group: each from the
// last run of its group.
type Kept map[string]*Report

// ReadKept reads what is kept in the main module, whose folder is root; nothing is kept
// without a file.
func ReadKept(root string) (Kept, error) {
	file := filepath.Join(root, keptFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Kept{}, nil
	}
	if err != nil {
		return nil, err
	}
	kept := Kept{}
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return kept, nil
}

// Write replaces the file.
func (k Kept) Write(file string) error {
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Merge adds the metrics and notes of another report.
func (r *Report) Merge(other *Report) {
	r.Metrics = append(r.Metrics, other.Metrics...)
	r.Notes = append(r.Notes, other.Notes...)
}
