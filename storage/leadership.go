// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import "context"

// Elector is a [Store] for several servers of one database, of which one writes: the
// leader. Every server opens a store of its own and campaigns. A store that does not lead
// reads and watches as any other; its Commit fails with [ErrNotLeader].
//
// Commit is fenced: the database compares the term in the transaction of the write. Of a
// leader whose term has ended, which may not know it yet, no write is made; its Commit
// fails with [ErrNotLeader] too. This error, unlike those of a broken connection, says
// that nothing was written.
type Elector interface {
	Store
	// Campaign waits until the store leads, and returns the term. By then the store shows
	// all writes of all earlier terms, and no more of them can follow. It fails if ctx
	// ends before, with an error that matches that of ctx, and with [ErrClosed]. The
	// caller campaigns again only after every Commit that it began in the earlier term
	// has returned: a Commit is of the term in which it is called. A store has one term
	// or campaign at a time.
	Campaign(ctx context.Context, as Member) (Term, error)
	// Leader returns the newest leader that the store knows of, and a channel that is
	// closed when it knows of another. A view that shows a write of a term is of a
	// store that knows of the term. That of a term that ran out is returned until
	// another begins; after one that was resigned it is the zero value.
	Leader() (Leader, <-chan struct{})
}

// Member is one of the servers of a database.
type Member struct {
	// Identity is different from that of any other member, and of the same server
	// before it was restarted.
	Identity string
	// Address is where the other members reach it, as host and port. It may be empty.
	Address string
}

// Leader is the member that writes.
type Leader struct {
	Member
	// Term is the revision of the term. 0: no member leads.
	Term Revision
}

// Term is the time for which a store leads. Its methods are safe for concurrent use.
type Term interface {
	// Revision is that of the beginning: above all writes of earlier terms and below
	// those of this one.
	Revision() Revision
	// Done is closed when the term has ended: after Resign and Close of the store, and
	// when the lease that the store holds in the database was not renewed in time, or is
	// known to be lost. The process closes it by its own clock, before the database lets
	// another lead, unless the process itself was paused.
	Done() <-chan struct{}
	// Resign ends the term, so that another begins without waiting for the lease to run
	// out. Writes under way either succeed before it returns or are refused. It is
	// idempotent. If it fails, the term has ended here, and in the database when the
	// lease runs out.
	Resign(ctx context.Context) error
}
