// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/frame"
)

// encode appends changes as the payload of a frame; its number is the revision
// of the last.
func encode(b []byte, changes []storage.Change) []byte {
	b = binary.AppendUvarint(b, uint64(len(changes)))
	b = binary.AppendUvarint(b, uint64(changes[0].Time.UnixNano()))
	for _, c := range changes {
		b = frame.AppendBytes(b, c.Key.Bucket)
		b = frame.AppendBytes(b, c.Key.Name)
		if c.Value == nil {
			b = binary.AppendUvarint(b, opDelete)
			continue
		}
		b = binary.AppendUvarint(b, opPut)
		b = binary.AppendUvarint(b, uint64(c.Stamp))
		b = frame.AppendBytes(b, c.Value)
	}
	return b
}

const (
	opDelete = 0
	opPut    = 1
)

// decode reads the payload of the frame that follows revision after and ends
// with revision last. The changes own their memory.
func decode(payload []byte, after, last uint64) ([]storage.Change, error) {
	f := frame.NewFields(payload)
	n := f.Number()
	at := time.Unix(0, int64(f.Number()))
	if n != last-after || n == 0 || n > uint64(len(payload)) {
		return nil, fmt.Errorf("it follows revision %d with %d changes up to %d", after, n, last)
	}
	changes := make([]storage.Change, 0, n)
	bucket := ""
	for i := range n {
		if b := f.Bytes(); string(b) != bucket {
			bucket = string(b)
		}
		c := storage.Change{
			Revision: storage.Revision(after + 1 + i), Time: at,
			Key: storage.Key{Bucket: bucket, Name: string(f.Bytes())},
		}
		switch f.Number() {
		case opPut:
			c.Stamp = int(f.Number())
			value := f.Bytes()
			c.Value = append(make([]byte, 0, len(value)), value...)
		case opDelete:
		default:
			f.Fail()
		}
		if f.Err() != nil {
			break
		}
		changes = append(changes, c)
	}
	if f.More() {
		f.Fail()
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return changes, nil
}
