// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import "errors"

// Failures that an administrator can act on.
var (
	// ErrForeign: the prefix has keys that are not of this store.
	ErrForeign = errors.New("etcd: the prefix has keys of another program: choose another prefix, or remove them with etcdctl del --prefix")
	// ErrRestored: the revision of etcd is below one that this store has seen.
	ErrRestored = errors.New("etcd: its revision is below one that was seen before, as after the restore of a backup: " +
		"stop all members and servers, and restore the backup with etcdutl snapshot restore --bump-revision 1000000000 --mark-compacted")
)
