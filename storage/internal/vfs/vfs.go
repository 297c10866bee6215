// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vfs is the file system as the durable log sees it: one directory of
// flat files. [OS] is the real one; [Crash] lives in memory and can lose power.
//
// Nothing here is durable before it is asked to be: contents of a file after
// [File.Sync] or [File.WriteSync], names in the directory after [Dir.Sync].
package vfs

import "io"

// Dir is a directory. Names have no separators. Its methods may be called
// concurrently.
type Dir interface {
	// Open opens a file for reading and writing. With create, it makes an empty
	// file, or empties the one that exists.
	Open(name string, create bool) (File, error)
	// Rename gives a file a new name, replacing the file of that name.
	Rename(from, to string) error
	// Remove removes a name.
	Remove(name string) error
	// List returns the names, in no particular order.
	List() ([]string, error)
	// Sync makes the names durable.
	Sync() error
	// Close releases what the directory has kept for its files, which are closed.
	Close()
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the contents durable, and what is needed to read them back.
	Sync() error
	// WriteSync is WriteAt and Sync for who appends to what is zero so far: bytes
	// after p, up to the next multiple of 4 KiB, may become zero. It is for one
	// goroutine at a time, without other writes up to there at the same time.
	WriteSync(p []byte, offset int64) error
}
