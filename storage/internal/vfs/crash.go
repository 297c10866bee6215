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

// Crash is a directory in memory that knows what would survive a crash. It is
// as hostile as the contract of a file system allows: of what was not synced,
// any part may be there, in any order; files may lose their names and keep the
// old ones; writes are torn.
type Crash struct {
	// Inject, if set, is asked before every operation; an error that it returns
	// is the outcome. A write that fails may have been done in part.
	Inject func(op Op, name string) error

	mu      sync.Mutex
	disk    Disk
	names   map[string]*inode
	durable map[string]*inode
	// pending are the changes of names since the last Sync, each atomic.
	pending []map[string]*inode // nil removes
}

// Disk is what a [Crash] has room for. The zero value has room for everything.
type Disk struct {
	// Free is the space that is left, in bytes, if Bounded.
	Free    int
	Bounded bool
	// CopyOnWrite says that changes of what is there need space as well, and
	// return none before the directory is synced.
	CopyOnWrite bool
}

// SetDisk replaces what there is room for.
func (d *Crash) SetDisk(disk Disk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.disk = disk
}

// claim takes the space for writing n bytes over a file that has some, and
// returns for how many of them there is any.
func (k *Disk) claim(offset, n, length int) (int, error) {
	if !k.Bounded {
		return n, nil
	}
	there := min(n, max(0, length-offset)) // in place
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

// inode is a file. What is durable of it is what is there without the pending
// writes, unless a failed Sync made the two differ for good.
type inode struct {
	data    []byte
	pending []write // since the last Sync
	differs bool
	durable []byte // if differs
}

type write struct {
	offset int
	data   []byte
	// What was there before: replaced bytes and the length of the file.
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

// synced returns what is durable.
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

// failSync forgets what was to be synced, as the kernel does: its cache shows
// what the disk does not have, and a later Sync succeeds without writing it.
func (n *inode) failSync() {
	n.durable, n.differs = n.synced(), true
	n.pending = nil
}

// survive returns what is left of a file after a loss of power: what is durable,
// and pieces of the pending writes.
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
		// Emptying a file is as good as a new one: either may be found later.
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

// Kill returns the directory as it is found after the process was killed: what
// was written is there, and still not durable.
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

// PowerLoss returns the directory as it may be found after the machine lost
// power: all that was synced, and what rng says of the rest.
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

// Contents returns a copy of what a file holds.
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
