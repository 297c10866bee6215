// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/durable"
)

// seen is what a store has seen of a history, and the content of [Options].RevisionFile.
type seen struct {
	Owner string  `json:"owner"`
	Terms lineage `json:"terms"`
	// Last is the newest change up to Revision. A file of an earlier version has none.
	Last     witness          `json:"last,omitzero"`
	Revision storage.Revision `json:"revision"`
}

// seen returns what the mirror has reached, and the terms up to it; later ones may be among
// them. Owner is left out.
func (s *Store) seen() seen {
	reached := storage.Revision(s.reached.Load())
	s.mu.Lock()
	defer s.mu.Unlock()
	return seen{Revision: max(reached, s.last.At), Terms: s.leading.terms, Last: s.last}
}

// remember begins to keep what was seen in a file. It fails with [ErrRestored] if the file
// has something of the same owner that etcd does not have, and with [ErrDamaged] if it does
// not say what was seen, or is gone.
func (s *Store) remember(ctx context.Context, owner string, now storage.Revision, terms lineage) error {
	file := s.options.RevisionFile
	if file == "" {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("etcd: keep what was seen: %w", err)
	}
	old, err := readSeen(file)
	if err != nil {
		return err
	}
	if old.Owner == "" {
		if err := neverSeen(file, owner); err != nil {
			return err
		}
	}
	if old.Owner == owner {
		err := old.Terms.check(old.Revision, terms)
		if err == nil && old.Revision > now {
			err = fmt.Errorf("%w (it is %d, and %d was seen)", ErrRestored, now, old.Revision)
		}
		if err == nil {
			err = s.attest(ctx, old.Revision, old.Last)
		}
		if errors.Is(err, ErrRestored) {
			return fmt.Errorf("%w; to go on with what there is, remove %s and %s", err, file, markOf(file))
		}
		if err != nil {
			return err
		}
	}
	s.reads.mu.Lock()
	defer s.reads.mu.Unlock()
	s.reads.owner = owner
	return nil
}

// readSeen returns the zero value if there is no file.
func readSeen(file string) (old seen, err error) {
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return seen{}, nil
	case err != nil:
		return seen{}, fmt.Errorf("etcd: read what was seen: %w", err)
	}
	if err := json.Unmarshal(text, &old); err != nil || old.Owner == "" || old.Revision == 0 {
		return seen{}, fmt.Errorf("%w: if etcd was not restored from a backup since, remove %s", ErrDamaged, file)
	}
	return old, nil
}

// mark is the content of the file beside [Options].RevisionFile, which says that there is to be
// one: without it, a server whose file is lost could not be told from a new one.
type mark struct {
	Owner string `json:"owner"`
}

func markOf(file string) string { return file + ".owner" }

// neverSeen fails with [ErrDamaged] if a store has kept what it saw of an owner in a file that
// is not there now.
func neverSeen(file, owner string) error {
	text, err := os.ReadFile(markOf(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("etcd: read whose data was seen: %w", err)
	}
	var m mark
	if err := json.Unmarshal(text, &m); err == nil && m.Owner != "" && m.Owner != owner {
		return nil // of another prefix, or of data that was replaced
	}
	return fmt.Errorf("%w: %s is gone, and this server has seen the data before: if etcd was not restored from a backup since, remove %s",
		ErrDamaged, file, markOf(file))
}

// write keeps what was seen, durably. What could not be written is written the next time, and
// until then the health fails.
func (r *reads) write(file string, now seen) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if file == "" || now.Revision <= r.remembered {
		return nil
	}
	now.Owner = r.owner
	err := writeJSON(file, now)
	if err == nil && !r.marked {
		err = writeJSON(markOf(file), mark{r.owner}) // after the file that it says is there
		r.marked = err == nil
	}
	if err != nil {
		r.unwritten = fmt.Errorf("etcd: keep what was seen: %w", err)
		return r.unwritten
	}
	r.remembered, r.unwritten = now.Revision, nil
	return nil
}

// writeJSON replaces a file durably.
func writeJSON(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return durable.WriteFile(file, text, 0o600)
}
