// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// Crash is a directory in memory that simulates crashes, as hostile as the contract of
// a file system allows: any part of unsynced changes may survive, in any order; files
// may lose their names and keep old ones; writes are torn.
type Crash struct {
	// Inject, if set, is called before every operation; an error that it returns is the
	// outcome. A write that fails may have been done in part.
	Inject func(op Op, name string) error

	mu      sync.Mutex
	disk    Disk
	names   map[string]*inode
	durable map[string]*inode
	// pending are the changes of names since the last Sync, each atomic.
	pending []map[string]*inode // nil removes
}

// Disk limits the space of a [Crash]. The zero value has unlimited space.
type Disk struct {
	// Free is the space that is left, in bytes, if Bounded.
	Free    int
	Bounded bool
	// CopyOnWrite makes overwriting existing data need space as well, which is returned
	// when the directory is synced.
	CopyOnWrite bool
}

// SetDisk replaces the limits of the space.
func (d *Crash) SetDisk(disk Disk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disk = disk
}

// claim takes the space for writing n bytes at an offset of a file of some length, and
// returns how many of them fit.
func (k *Disk) claim(offset, n, length int) (int, error) {
	if !k.Bounded {
		return n, nil
	}
	there := min(n, max(0, length-offset)) // overwritten in place
	if k.CopyOnWrite {
		there = 0
	}
	if n-there > k.Free {
		n = there + k.Free
		k.Free = 0
		return n, syscall.ENOSPC
	}
	k.Free -= n - there
	return n, nil
}

// Op names an operation for [Crash.Inject].
type Op string

// The operations.
const (
	OpCreate  Op = "create"
	OpOpen    Op = "open"
	OpRename  Op = "rename"
	OpRemove  Op = "remove"
	OpSyncDir Op = "sync directory"
	OpRead    Op = "read"
	OpWrite   Op = "write"
	OpSync    Op = "sync"
)

// inode is a file. Its durable contents are those without the pending writes, unless a
// failed Sync made the two differ permanently.
type inode struct {
	data    []byte
	pending []write // since the last Sync
	differs bool
	durable []byte // if differs
}

type write struct {
	offset int
	data   []byte
	// The previous state: replaced bytes and the length of the file.
	replaced []byte
	length   int
}

func (n *inode) write(p []byte, offset int) {
	w := write{offset: offset, data: slices.Clone(p), length: len(n.data)}
	if offset < len(n.data) {
		w.replaced = slices.Clone(n.data[offset:min(len(n.data), offset+len(p))])
	}
	n.data = splice(n.data, offset, p)
	n.pending = append(n.pending, w)
}

// synced returns the durable contents.
func (n *inode) synced() []byte {
	if n.differs {
		return slices.Clone(n.durable)
	}
	data := slices.Clone(n.data)
	for _, w := range slices.Backward(n.pending) {
		copy(data[min(w.offset, len(data)):], w.replaced)
		data = data[:w.length]
	}
	return data
}

func (n *inode) sync() {
	if n.differs {
		for _, w := range n.pending {
			n.durable = splice(n.durable, w.offset, w.data)
		}
	}
	n.pending = nil
}

// failSync drops the pending writes, as the kernel does: its cache shows data that the
// disk does not have, and a later Sync succeeds without writing them.
func (n *inode) failSync() {
	n.durable, n.differs = n.synced(), true
	n.pending = nil
}

// survive returns the contents of a file after a loss of power: the durable part, and
// pieces of the pending writes.
func (n *inode) survive(rng *rand.Rand, luck float64) []byte {
	data := n.synced()
	piece := []int{1, 8, 512, 4096}[rng.IntN(4)]
	for _, w := range n.pending {
		for from := 0; from < len(w.data); {
			at := w.offset + from
			to := min(len(w.data), from+piece-at%piece)
			if rng.Float64() < luck {
				data = splice(data, at, w.data[from:to])
			}
			from = to
		}
	}
	return data
}

func splice(data []byte, offset int, p []byte) []byte {
	if grow := offset + len(p) - len(data); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[offset:], p)
	return data
}

func (n *inode) copy(copies map[*inode]*inode) *inode {
	if n == nil {
		return nil
	}
	if c := copies[n]; c != nil {
		return c
	}
	c := &inode{data: slices.Clone(n.data), pending: slices.Clone(n.pending), differs: n.differs, durable: slices.Clone(n.durable)}
	copies[n] = c
	return c
}

// NewCrash returns an empty directory.
func NewCrash() *Crash {
	return &Crash{names: map[string]*inode{}, durable: map[string]*inode{}}
}

func (d *Crash) inject(op Op, name string) error {
	if d.Inject == nil {
		return nil
	}
	if err := d.Inject(op, name); err != nil {
		return &fs.PathError{Op: string(op), Path: name, Err: err}
	}
	return nil
}

// Open implements [Dir].
func (d *Crash) Open(name string, create bool) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	op := OpOpen
	if create {
		op = OpCreate
	}
	if err := d.inject(op, name); err != nil {
		return nil, err
	}
	n := d.names[name]
	switch {
	case n == nil && !create:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case create:
		// Truncating a file is like a new one: either may survive.
		n = &inode{}
		d.change(map[string]*inode{name: n})
	}
	return &crashFile{dir: d, name: name, inode: n}, nil
}

// change changes names, not durably.
func (d *Crash) change(c map[string]*inode) {
	apply(d.names, c)
	d.pending = append(d.pending, c)
}

func apply(names, c map[string]*inode) {
	for name, n := range c {
		if n == nil {
			delete(names, name)
		} else {
			names[name] = n
		}
	}
}

// Rename implements [Dir].
func (d *Crash) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.inject(OpRename, from); err != nil {
		return err
	}
	n := d.names[from]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	d.change(map[string]*inode{from: nil, to: n})
	return nil
}

// Remove implements [Dir].
func (d *Crash) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.inject(OpRemove, name); err != nil {
		return err
	}
	if d.names[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	d.change(map[string]*inode{name: nil})
	return nil
}

// List implements [Dir].
func (d *Crash) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Sync implements [Dir].
func (d *Crash) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.inject(OpSyncDir, ""); err != nil {
		return err
	}
	d.durable, d.pending = maps.Clone(d.names), nil
	return nil
}

// Kill returns the directory after the process was killed: all writes are there, but
// still not durable.
func (d *Crash) Kill() *Crash {
	d.mu.Lock()
	defer d.mu.Unlock()
	copies := map[*inode]*inode{}
	return &Crash{
		names:   copyNames(d.names, copies),
		durable: copyNames(d.durable, copies),
		pending: copyChanges(d.pending, copies),
	}
}

func copyNames(names map[string]*inode, copies map[*inode]*inode) map[string]*inode {
	out := make(map[string]*inode, len(names))
	for name, n := range names {
		out[name] = n.copy(copies)
	}
	return out
}

func copyChanges(changes []map[string]*inode, copies map[*inode]*inode) []map[string]*inode {
	var out []map[string]*inode
	for _, c := range changes {
		out = append(out, copyNames(c, copies))
	}
	return out
}

// PowerLoss returns the directory as it may be after a loss of power: everything
// synced, and a part of the rest chosen by rng.
func (d *Crash) PowerLoss(rng *rand.Rand) *Crash {
	d.mu.Lock()
	defer d.mu.Unlock()
	luck := []float64{0, 0.5, 0.9, 1}[rng.IntN(4)]
	names := maps.Clone(d.durable)
	for _, c := range d.pending {
		if rng.Float64() < luck {
			apply(names, c)
		}
	}
	out := NewCrash()
	survivors := map[*inode]*inode{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		if survivors[n] == nil {
			survivors[n] = &inode{data: n.survive(rng, luck)}
		}
		out.names[name], out.durable[name] = survivors[n], survivors[n]
	}
	return out
}

// Corrupt changes one byte of a file.
func (d *Crash) Corrupt(name string, offset int, b byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	n.data[offset] ^= b
}

// Contents returns a copy of a file's contents.
func (d *Crash) Contents(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.names[name].data)
}

type crashFile struct {
	dir   *Crash
	name  string
	inode *inode
}

func (f *crashFile) ReadAt(p []byte, off int64) (int, error) {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	if err := f.dir.inject(OpRead, f.name); err != nil {
		return 0, err
	}
	if off >= int64(len(f.inode.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *crashFile) WriteAt(p []byte, off int64) (int, error) {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	err := f.dir.inject(OpWrite, f.name)
	if err != nil {
		p = p[:len(p)/2]
	}
	n, full := f.dir.disk.claim(int(off), len(p), len(f.inode.data))
	if err == nil && full != nil {
		err = &fs.PathError{Op: string(OpWrite), Path: f.name, Err: full}
	}
	f.inode.write(p[:n], int(off))
	return n, err
}

func (f *crashFile) Sync() error {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	if err := f.dir.inject(OpSync, f.name); err != nil {
		f.inode.failSync()
		return err
	}
	f.inode.sync()
	return nil
}

func (f *crashFile) Close() error { return nil }
