// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Ends of the names of files. What ends otherwise is not ours and not touched.
const (
	segmentEnd = ".records"
	indexEnd   = ".index"
)

// disk is where a writer writes.
type disk interface {
	// Create makes a new file that is written at its end.
	Create(name string) (io.WriteCloser, error)
	Remove(name string) error
	// Sizes of the files, by name.
	Sizes() (map[string]int64, error)
}

// directory is a [disk] of the operating system.
type directory struct{ path string }

func openDirectory(path string) (directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return directory{}, fmt.Errorf("records: make the directory: %w", err)
	}
	return directory{path}, nil
}

func (d directory) Create(name string) (io.WriteCloser, error) {
	return os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

func (d directory) Remove(name string) error {
	if err := os.Remove(filepath.Join(d.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d directory) Sizes() (map[string]int64, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() { // else it has just gone
			sizes[e.Name()] = info.Size()
		}
	}
	return sizes, nil
}

// segmentName is that of a segment: names are in the order of time, and no two writers
// have one in common.
func segmentName(began time.Time, writer uint64, number int) string {
	return fmt.Sprintf("%019d-%016x-%06d", began.UnixNano(), writer, number)
}

// segmentsOf are the names of segments without their ends, the oldest first.
func segmentsOf(sizes map[string]int64) []string {
	var names []string
	for file := range sizes {
		if name, ok := strings.CutSuffix(file, segmentEnd); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// surplus are the oldest files that have to go so that all take at most a number of
// bytes; the segment that is being written stays.
func surplus(sizes map[string]int64, most int64, writing string) (remove []string) {
	total := int64(0)
	names := segmentsOf(sizes)
	for _, name := range names {
		total += sizes[name+segmentEnd] + sizes[name+indexEnd]
	}
	for _, name := range names {
		if total <= most {
			break
		}
		if name == writing {
			continue
		}
		total -= sizes[name+segmentEnd] + sizes[name+indexEnd]
		remove = append(remove, name+segmentEnd, name+indexEnd)
	}
	return remove
}
