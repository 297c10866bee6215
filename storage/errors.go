// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"errors"
	"fmt"
)

// Failures that a caller can act on.
var (
	// ErrConflict is matched by every [*ConflictError].
	ErrConflict = errors.New("storage: the key is not in the expected state")
	// ErrUnmet: the condition of a write does not hold; read again what the write was
	// computed from.
	ErrUnmet = errors.New("storage: the condition of the write does not hold")
	// ErrCompacted: the requested revision is below the kept history; read the newest
	// state instead.
	ErrCompacted = errors.New("storage: the revision has been compacted")
	// ErrFuture: the store has not reached the requested revision.
	ErrFuture = errors.New("storage: the revision lies in the future")
	// ErrLagged: a cursor fell too far behind; watch again from its last revision.
	ErrLagged = errors.New("storage: the watcher is too far behind")
	// ErrClosed: the store or cursor has been closed.
	ErrClosed = errors.New("storage: closed")
	// ErrInvalid: the write is malformed in every state of the store.
	ErrInvalid = errors.New("storage: invalid write")
	// ErrFull: there is no space for the log. Nothing of the write was kept; writes
	// succeed again once space has been freed.
	ErrFull = errors.New("storage: no space left for the log; free some and write again")
	// ErrCorrupt is matched by every [*CorruptError].
	ErrCorrupt = errors.New("storage: corrupt data")
	// ErrNotLeader: the store is one of several on a database and does not lead, or does no
	// longer. Nothing was written; the leader can be asked (see [Elector]).
	ErrNotLeader = errors.New("storage: this server does not lead")
	// ErrPoisoned: the log has failed; the store acknowledges no further writes and
	// must be reopened, which recovers all acknowledged ones.
	ErrPoisoned = errors.New("storage: the log has failed; restart to recover what was acknowledged")
)

// ConflictError reports that a write's expectation did not hold.
type ConflictError struct {
	Key    Key
	Expect Revision
	// Current is the version found; nil when the key does not exist.
	Current *Record
}

func (e *ConflictError) Error() string {
	found := "it does not exist"
	if e.Current != nil {
		found = fmt.Sprintf("it is at revision %d", e.Current.Modified)
	}
	switch e.Expect {
	case Absent:
		return fmt.Sprintf("storage: create %s: %s", e.Key, found)
	case AnyRevision:
		return fmt.Sprintf("storage: change %s: %s", e.Key, found)
	}
	return fmt.Sprintf("storage: change %s expected at revision %d: %s", e.Key, e.Expect, found)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// CorruptError reports damaged data. Nothing is repaired automatically: restore a copy.
type CorruptError struct {
	// File is the damaged file; empty for a stream.
	File string
	// Offset is where the damage begins, in bytes.
	Offset int64
	// Reason describes the damage.
	Reason string
}

func (e *CorruptError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("storage: the snapshot is corrupt at offset %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("storage: %s is corrupt at offset %d: %s; check the disk, keep a copy of the directory, and restore the last snapshot into a new one", e.File, e.Offset, e.Reason)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
