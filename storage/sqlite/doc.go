// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sqlite is a [storage.Store] in a SQLite database, for API servers whose objects
// are also read with SQL:
//
//	store, err := sqlite.Open("machines.db", sqlite.Options{})
//	server, err := apiserver.New(apiserver.Options{Store: store, ...})
//
// It is a module of its own, because of the driver, which is plain Go.
//
// # The database
//
// The table records has one row for each write, deletions included; the view objects has
// the current objects, with their JSON:
//
//	SELECT name, json_extract(value, '$.spec.image') FROM objects WHERE bucket = 'example.com/machines'
//
// Other processes may read the database while it is open, and back it up. They must not
// write to the tables of the store; tables of their own are theirs.
//
// # Revisions
//
// Writes that arrive together have the revisions that follow, and are one transaction. While
// it has the database locked, it verifies that the database still belongs to this process and
// that the newest row is that of the last write: so the order of the revisions is that of the
// commits, though they are given before. The transaction fails if another process has taken the
// database over, and then this one writes nothing more. What is read and watched is committed
// and synced.
//
// Superseded rows stay as long as [Options.HistoryAge] says: with them, watches continue
// after a restart. They are removed after every thousandth write and by Open, which removes
// all of them where an epoch begins.
//
// # Epochs
//
// A database that is restored from a backup goes back in time: revisions that clients have
// seen would be given to other writes. Open recognizes a database that was not closed by
// the last process that had it open here, by a mark in the database and in the file
// beside it (PATH-epoch), and begins a new epoch: the next revision is above all that were
// ever given, and the history begins anew. Clients that resume a watch or a list from
// before are answered with 410 Expired, and list again. A process that was killed begins a
// new epoch, too. The first epoch begins with revision 1, others with the microseconds since
// 1970, which are above all revisions of former epochs while these had fewer than a
// million writes a second.
package sqlite
