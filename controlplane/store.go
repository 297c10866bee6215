// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

// SnapshotPath is where a plane serves a snapshot of all its data to members of
// system:masters.
const SnapshotPath = "/steer/snapshot"

// dataIn returns where a data directory keeps the objects.
func dataIn(dataDir string) string { return filepath.Join(dataDir, "data") }

// openStore opens the store in a data directory, or one in memory without one.
// The log may be nil.
func openStore(dataDir string, age time.Duration, log *slog.Logger) (storage.Store, error) {
	if dataDir == "" {
		return storage.NewMemory(storage.MemoryOptions{HistoryAge: age}), nil
	}
	store, err := local.Open(dataIn(dataDir), local.Options{HistoryAge: age, OnCheckpoint: func(c local.Checkpoint) {
		switch {
		case log == nil:
		case c.Err != nil:
			log.Error("a checkpoint of the store failed; its log grows until one succeeds", "revision", c.Revision, "err", c.Err)
		default:
			log.Debug("wrote a checkpoint of the store", "revision", c.Revision, "bytes", c.Bytes, "took", c.Took)
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	return store, nil
}

// Save writes a snapshot of everything that the plane holds. Requests
// go on meanwhile.
func (p *Plane) Save(ctx context.Context, w io.Writer) error { return save(ctx, p.store, w) }

// Save writes a snapshot of what a data directory holds that no plane has open.
func Save(ctx context.Context, dataDir string, w io.Writer) error {
	store, err := openStore(dataDir, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // nothing was written
	return save(ctx, store, w)
}

func save(ctx context.Context, store storage.Store, w io.Writer) error {
	view := store.Latest()
	if err := storage.Save(ctx, w, view); err != nil {
		return fmt.Errorf("controlplane: %w", err)
	}
	return nil
}

// Restore fills a new data directory with a snapshot. It refuses one that holds
// data. Keys are no part of snapshots: the directory keeps its own, or gets new
// ones.
func Restore(dataDir string, r io.Reader) error {
	if err := local.Restore(dataIn(dataDir), r); err != nil {
		return fmt.Errorf("controlplane: %w", err)
	}
	return nil
}

// serveSnapshot answers [SnapshotPath].
func (p *Plane) serveSnapshot(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := p.Save(r.Context(), w); err != nil {
		p.options.Log.Error("a snapshot was not sent completely", "err", err)
		// An incomplete stream lacks its end; the connection must
		// not look as if it ended well.
		panic(http.ErrAbortHandler)
	}
}
