// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "errors"

// Failures that an administrator can act on.
var (
	// ErrForeign: the prefix has keys that are not of this store.
	ErrForeign = errors.New("etcd: the prefix has keys of another program: choose another prefix, or remove them with etcdctl del --prefix")
	// ErrRestored: etcd does not have what this store has seen.
	ErrRestored = errors.New("etcd: it does not have what was seen before, as after the restore of a backup: " +
		"stop all members and servers, and restore the backup with etcdutl snapshot restore --bump-revision 1000000000 --mark-compacted")
	// ErrDamaged: the file that [Options].RevisionFile names is not as it was written, or is gone.
	ErrDamaged = errors.New("etcd: the file of what was seen is damaged or lost")
	// ErrUnfinished: [Restore] was ended before it was done.
	ErrUnfinished = errors.New("etcd: a snapshot is being restored into the prefix, or the program that did so was ended: restore it again, to the end")
	// ErrReplaced: [Restore] replaced the data of an open store.
	ErrReplaced = errors.New("etcd: the data was replaced by a restored snapshot: start this server again")
	// ErrHoldsData: [Restore] replaces data only where that is asked for.
	ErrHoldsData = errors.New("etcd: the prefix holds data already: choose another prefix or etcd")
	// ErrNoKeys: the prefix of another program is empty.
	ErrNoKeys = errors.New("etcd: there are no keys with the prefix: name that of the other program")
	// ErrInUse: a server uses the prefix.
	ErrInUse = errors.New("etcd: a server leads on the data of the prefix: stop all servers first; one that was killed leads until its lease has run out")
)
