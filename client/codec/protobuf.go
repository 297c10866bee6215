// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/steer-dev/steer/client/codec/internal/message"
)

// The numbers below are the same in every Kubernetes message: an object's
// metadata is field 1 and a list's items are field 2; managedFields is field 17
// of ObjectMeta. In the envelope, the message is field 2.
const (
	fieldMetadata      = 1
	fieldItems         = 2
	fieldManagedFields = 17
	fieldRaw           = 2
)

// wireBytes is the wire type of what has a length.
const wireBytes = 2

// protoList reads the fields of an enveloped list one by one as they arrive.
type protoList struct {
	r       *bufio.Reader
	left    uint64 // bytes of what is being read
	content []byte
}

func openProtoList(body io.Reader) (*protoList, error) {
	l := &protoList{r: bufio.NewReaderSize(body, 32<<10)}
	magic := make([]byte, len(protoMagic))
	if _, err := io.ReadFull(l.r, magic); err != nil {
		return nil, noEOF(err)
	}
	if string(magic) != protoMagic {
		return nil, errNoMagic
	}
	// The envelope has no length; what comes after the list tells nothing new.
	for l.left = ^uint64(0); ; {
		number, length, err := l.head()
		if err != nil {
			return nil, noEOF(err) // without a list it is not an empty one
		}
		if number == fieldRaw {
			l.left = length
			return l, nil
		}
		if err := l.read(length); err != nil {
			return nil, err
		}
	}
}

// next is the next field that has content, which is good until the one after; at
// the end of the list the error is io.EOF.
func (l *protoList) next() (number int, content []byte, err error) {
	number, length, err := l.head()
	if errors.Is(err, io.EOF) && l.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = l.read(length)
	}
	return number, l.content, err
}

// head reads up to the content of the next field that has some.
func (l *protoList) head() (number int, length uint64, err error) {
	for {
		tag, err := binary.ReadUvarint(l)
		if err != nil {
			return 0, 0, err
		}
		number = int(tag >> 3)
		var skip uint64
		switch tag & 7 {
		case 0:
			_, err = binary.ReadUvarint(l)
		case 1:
			skip = 8
		case wireBytes:
			length, err = binary.ReadUvarint(l)
			if err == nil {
				return number, length, nil
			}
		case 5:
			skip = 4
		default:
			return 0, 0, fmt.Errorf("malformed protobuf: wire type %d", tag&7)
		}
		if err == nil {
			err = l.read(skip)
		}
		if err != nil {
			return 0, 0, noEOF(err)
		}
	}
}

// ReadByte implements io.ByteReader; the end of the list is io.EOF.
func (l *protoList) ReadByte() (byte, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	b, err := l.r.ReadByte()
	if err == nil {
		l.left--
	}
	return b, err
}

// read reads content.
func (l *protoList) read(length uint64) error {
	switch {
	case length > l.left:
		return io.ErrUnexpectedEOF
	case length > maxFrame:
		return fmt.Errorf("an item of %d bytes is more than the limit of %d", length, maxFrame)
	}
	if uint64(cap(l.content)) < length {
		l.content = make([]byte, length)
	}
	l.content = l.content[:length]
	l.left -= length
	_, err := io.ReadFull(l.r, l.content)
	return noEOF(err)
}

// noEOF is err where the end is too early.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// withoutManagedFields is msg, an object, without its managedFields. It changes
// msg in place and uses, and returns, a buffer that the next call may use again.
// What does not look as expected comes back as it was.
func withoutManagedFields(msg, buffer []byte) (out, kept []byte) {
	metadata, after, err := message.Next(msg)
	if err != nil || metadata.Number != fieldMetadata || metadata.Content == nil {
		return msg, buffer
	}
	kept = buffer[:0]
	for rest := metadata.Content; len(rest) > 0; {
		var f message.Field
		f, rest, err = message.Next(rest)
		if err != nil {
			return msg, kept
		}
		if f.Number != fieldManagedFields {
			kept = append(kept, f.Whole...)
		}
	}
	if len(kept) == len(metadata.Content) {
		return msg, kept
	}
	// The new field is shorter than the old one: it fits before what follows.
	var space [16]byte
	head := binary.AppendUvarint(space[:0], fieldMetadata<<3|wireBytes)
	head = binary.AppendUvarint(head, uint64(len(kept)))
	start := len(metadata.Whole) - len(kept) - len(head)
	out = msg[start : len(metadata.Whole)+len(after)]
	copy(out, head)
	copy(out[len(head):], kept)
	return out, kept
}
