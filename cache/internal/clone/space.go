// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"maps"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// space is the memory of copies that are made together: what they need is counted,
// then allocated, a block for each class, then handed out in pieces.
type space struct {
	plain  [plainClasses]piece
	blocks []block // by class, after the plain ones
	used   []int   // the blocks with something in them
}

// piece is memory for values without pointers, in bytes.
type piece struct {
	need, left int
	at         unsafe.Pointer // while something is left
}

// block is memory for values of a class, in units.
type block struct {
	unit reflect.Type
	size uintptr // of a unit
	need int
	left int
	done int
	base unsafe.Pointer
	// made is a variable that is a list of units: reflection allocates with what the
	// collector has to know. It is where the header is.
	made   reflect.Value
	header *header
}

// header is a list as it lies in memory.
type header struct {
	first    unsafe.Pointer
	len, cap int
}

func newSpace(units []reflect.Type) *space {
	s := &space{blocks: make([]block, len(units))}
	for i, t := range units {
		s.blocks[i].unit, s.blocks[i].size = t, t.Size()
	}
	return s
}

// count finds what n values from p on need beside themselves.
func (s *space) count(l *layout, p unsafe.Pointer, n int) {
	for v := range uintptr(n) {
		p := unsafe.Add(p, v*l.size)
		for i := range l.leading {
			part := &l.leading[i]
			at := unsafe.Add(p, part.at)
			first := *(*unsafe.Pointer)(at) // a list begins with a pointer too
			if first == nil {
				continue
			}
			n := 1
			if part.kind == list {
				n = (*header)(at).len
			}
			s.needs(part.of, n)
			if len(part.of.leading) > 0 {
				s.count(part.of, first, n)
			}
		}
	}
}

func (s *space) needs(l *layout, n int) {
	n *= l.units
	if l.class < plainClasses {
		s.plain[l.class].need += n
		return
	}
	b := &s.blocks[l.class-plainClasses]
	if b.need == 0 && n > 0 {
		s.used = append(s.used, l.class-plainClasses)
	}
	b.need += n
}

// allocate makes the room that was counted.
func (s *space) allocate() {
	total := 0
	for i := range s.plain {
		total += s.plain[i].need
	}
	if total > 0 {
		at := unsafe.Pointer(unsafe.SliceData(make([]uint64, (total+7)/8)))
		for class := plainClasses - 1; class >= 0; class-- { // the largest alignment first
			if piece := &s.plain[class]; piece.need > 0 {
				piece.at, piece.left = at, piece.need
				if total -= piece.need; total > 0 { // a pointer behind the end would be one into something else
					at = unsafe.Add(at, piece.need)
				}
			}
		}
	}
	for _, i := range s.used {
		b := &s.blocks[i]
		b.base, b.left = b.allocate(b.need), b.need
	}
}

// clear lets go of everything.
func (s *space) clear() {
	s.plain = [plainClasses]piece{}
	for _, i := range s.used {
		b := &s.blocks[i]
		b.base, b.need, b.left, b.done = nil, 0, 0, 0
	}
	s.used = s.used[:0]
}

// take returns room for n values.
func (s *space) take(l *layout, n int) unsafe.Pointer {
	n *= l.units
	if l.class < plainClasses {
		return s.plain[l.class].take(n)
	}
	return s.blocks[l.class-plainClasses].take(n)
}

// take hands out n bytes. What was not counted, the values of maps, is allocated alone.
func (p *piece) take(n int) unsafe.Pointer {
	if n > p.left || n == 0 {
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, (n+7)/8)))
	}
	to := p.at
	if p.left -= n; p.left > 0 {
		p.at = unsafe.Add(p.at, n)
	}
	return to
}

// take hands out n units.
func (b *block) take(n int) unsafe.Pointer {
	if n > b.left {
		return b.allocate(n)
	}
	to := unsafe.Add(b.base, uintptr(b.done)*b.size)
	b.done += n
	b.left -= n
	return to
}

func (b *block) allocate(units int) unsafe.Pointer {
	if units == 1 {
		return reflect.New(b.unit).UnsafePointer()
	}
	if !b.made.IsValid() {
		made := reflect.New(reflect.SliceOf(b.unit))
		b.made, b.header = made.Elem(), (*header)(made.UnsafePointer())
	}
	b.made.Grow(units)
	first := b.header.first
	*b.header = header{}
	return first
}

// copy makes n values from to on, which are zero, copies of those from from on.
func (s *space) copy(l *layout, to, from unsafe.Pointer, n int) {
	for v := range uintptr(n) {
		to, from := unsafe.Add(to, v*l.size), unsafe.Add(from, v*l.size)
		for i := range l.leading {
			part := &l.leading[i]
			if *(*unsafe.Pointer)(unsafe.Add(from, part.at)) != nil { // a list begins with a pointer too
				s.follow(part, unsafe.Add(to, part.at), unsafe.Add(from, part.at))
			}
		}
		for i := range l.others {
			part := &l.others[i]
			to, from := unsafe.Add(to, part.at), unsafe.Add(from, part.at)
			switch part.kind {
			case text:
				*(*string)(to) = *(*string)(from)
				for i := uintptr(1); i < uintptr(part.n); i++ {
					*(*string)(unsafe.Add(to, i*2*word)) = *(*string)(unsafe.Add(from, i*2*word))
				}
			case plain:
				copyPlain(to, from, part.n)
			case moment:
				*(*metav1.Time)(to) = *(*metav1.Time)(from)
			default:
				s.copySpecial(part, to, from)
			}
		}
	}
}

// copyPlain copies n bytes, most often of one number or truth.
func copyPlain(to, from unsafe.Pointer, n uint16) {
	switch n {
	case 1:
		*(*byte)(to) = *(*byte)(from)
	case 4:
		*(*[4]byte)(to) = *(*[4]byte)(from)
	case 8:
		*(*[8]byte)(to) = *(*[8]byte)(from)
	default:
		copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	}
}

// follow copies what a pointer or list leads to.
func (s *space) follow(part *part, to, from unsafe.Pointer) {
	n := 1
	if part.kind == list {
		if n = (*header)(from).len; n == 0 {
			*(*unsafe.Pointer)(to) = unsafe.Pointer(new(struct{})) // what is behind the original's is not for appending to
			return
		}
		list := (*header)(to)
		list.len, list.cap = n, n
	}
	l, first := part.of, *(*unsafe.Pointer)(from)
	made := s.take(l, n)
	*(*unsafe.Pointer)(to) = made
	switch {
	case l.class < plainClasses:
		size := n * int(l.size)
		copy(unsafe.Slice((*byte)(made), size), unsafe.Slice((*byte)(first), size))
	case l.class == textClass:
		texts := n * l.units
		copy(unsafe.Slice((*string)(made), texts), unsafe.Slice((*string)(first), texts))
	default:
		s.copy(l, made, first, n)
	}
}

func (s *space) copySpecial(part *part, to, from unsafe.Pointer) {
	switch part.kind {
	case quantity:
		*(*resource.Quantity)(to) = (*resource.Quantity)(from).DeepCopy()
	case fieldSet:
		*(*metav1.FieldsV1)(to) = *(*metav1.FieldsV1)(from)
	case octets:
		if of := *(*[]byte)(from); of != nil {
			*(*[]byte)(to) = append(make([]byte, 0, len(of)), of...)
		}
	case object:
		if of := *(*runtime.Object)(from); of != nil {
			*(*runtime.Object)(to) = of.DeepCopyObject()
		}
	case texts:
		*(*map[string]string)(to) = maps.Clone(*(*map[string]string)(from))
	case quantities:
		made := maps.Clone(*(*map[string]resource.Quantity)(from))
		*(*map[string]resource.Quantity)(to) = made
		for key, value := range made {
			if *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(&value), part.n)) != nil {
				made[key] = value.DeepCopy()
			}
		}
	case mapping:
		s.copyMap(part, to, from)
	}
}

func (s *space) copyMap(part *part, to, from unsafe.Pointer) {
	as := part.of.as
	of := reflect.NewAt(as, from).Elem()
	if of.IsNil() {
		return
	}
	made := reflect.MakeMapWithSize(as, of.Len())
	for entries := of.MapRange(); entries.Next(); {
		source, value := reflect.New(as.Elem()), reflect.New(as.Elem())
		source.Elem().Set(entries.Value())
		s.copy(part.of.values, value.UnsafePointer(), source.UnsafePointer(), 1)
		made.SetMapIndex(entries.Key(), value.Elem())
	}
	reflect.NewAt(as, to).Elem().Set(made)
}
