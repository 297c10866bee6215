// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vfs is the file system that the durable log uses: one directory of flat
// files. [OS] is the real one; [Crash] is in memory and simulates crashes.
//
// Nothing is durable before it is synced: contents of a file after [File.Sync], names
// in the directory after [Dir.Sync]. A failed sync must not be retried: the cache may
// show data that the disk does not have.
package vfs

import "io"

// Dir is a directory. Names have no separators. Its methods may be called
// concurrently.
type Dir interface {
	// Open opens a file for reading and writing. With create, it creates an empty file,
	// or truncates the one that exists.
	Open(name string, create bool) (File, error)
	// Rename gives a file a new name, replacing the file of that name.
	Rename(from, to string) error
	// Remove removes a name.
	Remove(name string) error
	// List returns the names, in no particular order.
	List() ([]string, error)
	// Sync makes the names durable.
	Sync() error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the contents durable, and the metadata needed to read them.
	Sync() error
}
