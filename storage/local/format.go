// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// formatVersion is the version of the layout that this program writes. A change that an
// older program would misread increments it, adds a migration step to checkFormat, and
// adds a golden directory to testdata.
const formatVersion = 1

const formatName = "FORMAT"

// checkFormat refuses a directory of a newer format, and initialises a new one.
func checkFormat(dir vfs.Dir) error {
	f, err := dir.Open(formatName, false)
	if errors.Is(err, fs.ErrNotExist) {
		found, err := survey(dir)
		if err != nil {
			return err
		}
		if !found.empty() {
			return &FormatError{Known: formatVersion}
		}
		return writeFormat(dir)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 64))
	if err != nil {
		return err
	}
	version := 0
	if _, err := fmt.Fscanf(bytes.NewReader(text), "steer-storage %d\n", &version); err != nil || version < 1 {
		return &FormatError{Known: formatVersion}
	}
	if version > formatVersion {
		return &FormatError{Found: version, Known: formatVersion}
	}
	return nil
}

func writeFormat(dir vfs.Dir) error {
	return replace(dir, formatName, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "steer-storage %d\n", formatVersion)
		return err
	})
}

// replace writes a file so that after a crash either the old or the new one exists, and
// the new one once it returns.
func replace(dir vfs.Dir, name string, write func(io.Writer) error) error {
	tmp := name + tmpSuffix
	f, err := dir.Open(tmp, true)
	if err != nil {
		return err
	}
	err = write(io.NewOffsetWriter(f, 0))
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		_ = dir.Remove(tmp) // the next start removes it
		return err
	}
	return dir.Sync()
}

const (
	snapshotSuffix = ".snapshot"
	logSuffix      = ".log"
	tmpSuffix      = ".tmp"
)

// fileName names a snapshot or segment so that names sort as revisions do.
func fileName(revision uint64, suffix string) string { return fmt.Sprintf("%019d%s", revision, suffix) }

// file is a snapshot or a segment.
type file struct {
	name     string
	revision uint64
}

// files are those in a data directory, oldest first.
type files struct {
	snapshots, segments []file
	leftovers           []string // of interrupted operations
}

func (f *files) empty() bool { return len(f.snapshots)+len(f.segments) == 0 }

// survey lists the files of a store in a directory.
func survey(dir vfs.Dir) (*files, error) {
	names, err := dir.List()
	if err != nil {
		return nil, err
	}
	found := &files{}
	for _, name := range names {
		switch revision, suffix := parseName(name); suffix {
		case snapshotSuffix:
			found.snapshots = append(found.snapshots, file{name, revision})
		case logSuffix:
			found.segments = append(found.segments, file{name, revision})
		case tmpSuffix:
			found.leftovers = append(found.leftovers, name)
		}
	}
	byRevision := func(a, b file) int { return cmp.Compare(a.revision, b.revision) }
	slices.SortFunc(found.snapshots, byRevision)
	slices.SortFunc(found.segments, byRevision)
	return found, nil
}

// parseName is the inverse of fileName; the suffix is empty for other files.
func parseName(name string) (revision uint64, suffix string) {
	base, isTmp := strings.CutSuffix(name, tmpSuffix)
	if base == formatName && isTmp {
		return 0, tmpSuffix
	}
	for _, suffix := range []string{snapshotSuffix, logSuffix} {
		digits, ok := strings.CutSuffix(base, suffix)
		if !ok {
			continue
		}
		if _, err := fmt.Sscanf(digits, "%d", &revision); err != nil || fileName(revision, suffix) != base {
			return 0, ""
		}
		if isTmp {
			return 0, tmpSuffix
		}
		return revision, suffix
	}
	return 0, ""
}

// load reads the newest snapshot; without one the state is empty.
func (f *files) load(dir vfs.Dir) (storage.View, error) {
	if len(f.snapshots) == 0 {
		return storage.NewMemory(storage.MemoryOptions{}).Latest(), nil
	}
	newest := f.snapshots[len(f.snapshots)-1]
	r, err := dir.Open(newest.name, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v, err := storage.Load(reader(r))
	if corrupt, ok := errors.AsType[*storage.CorruptError](err); ok {
		corrupt.File = newest.name
		return nil, corrupt
	}
	if err == nil && uint64(v.Revision()) != newest.revision {
		return nil, &storage.CorruptError{File: newest.name, Reason: fmt.Sprintf("it holds revision %d", v.Revision())}
	}
	return v, err
}

// reader reads a file from its beginning.
func reader(r io.ReaderAt) io.Reader { return io.NewSectionReader(r, 0, 1<<62) }
