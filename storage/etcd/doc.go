// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd is a [storage.Elector] on etcd 3.7, for several servers of one control plane:
//
//	store, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{"https://10.0.0.1:2379"}, TLS: config})
//	plane, err := controlplane.New(controlplane.Options{Store: store, ...})
//
// It is a module of its own, because of the client, which brings gRPC.
//
// # The keys
//
// The store has a prefix for itself, /steer by default, and refuses one that has keys of
// another program. The objects are below it where kube-apiserver has them:
//
//	/steer/pods/default/web
//	/steer/services/specs/default/web
//	/steer/example.com/widgets/default/one
//	/steer/.steer/owner, leader, resigned, terms, clock
//
// A value is a line of text, with the place at which readers insert the revision, and the
// object as the API server encodes it.
//
// # Reads
//
// What is read and watched is in memory, kept by one watch of the prefix. The state begins
// some minutes in the past and follows the history from there, so that watches and
// continue tokens of clients survive a restart of the server. Sync asks etcd for its
// revision, once for all calls that wait, and waits until the watch has reached it.
//
// # Writes
//
// A write is one transaction, which compares the key of the leader. That key has a lease,
// and the revision that created it is the term. The leader also writes a clock, twice in
// a minute, by which etcd is compacted, and by which the age of what a server reads at
// its start is known.
//
// # Compaction
//
// The leader compacts etcd up to what is older than [Options].HistoryAge. That is of the
// whole etcd: it knows no compaction of a prefix. kube-apiserver does the same every five
// minutes; where another program on the same etcd needs a longer history,
// [Options].NoCompaction leaves the compaction to that program, or to etcd's
// --auto-compaction-retention.
//
// # Restored backups
//
// Clients have seen revisions that a restored etcd would give to other writes. Restore with
//
//	etcdutl snapshot restore --bump-revision 1000000000 --mark-compacted
//
// and clients list again. The store refuses an etcd whose revision is below one that it
// has seen, if necessary in an earlier process ([Options].RevisionFile), one of which the
// terms of leaders show that it was below, and one that lacks the newest change of the prefix
// that was seen, also if other programs have brought its revision past that. A store that is
// new to the prefix has seen nothing, and takes what it finds.
package etcd
