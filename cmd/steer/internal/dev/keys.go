// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"time"
)

// key is a key that was pressed: its byte, or one of those that terminals send as a sequence.
type key int

const (
	keyEscape key = 0x1b

	keyUnknown key = iota + 256
	keyUp
	keyDown
	keyRight
	keyLeft
	keyHome
	keyEnd
	keyPageUp
	keyPageDown
	keyBackTab
)

const (
	// escapeDelay is how long the rest of a sequence may take after its first byte, which is
	// that of the key Esc, too.
	escapeDelay = 50 * time.Millisecond
	// longestSequence bounds what is taken for one.
	longestSequence = 32
)

// sequenceKey is the key of a sequence of xterm, the Linux console or rxvt without its first
// two bytes.
func sequenceKey(sequence string) key {
	switch sequence {
	case "A":
		return keyUp
	case "B":
		return keyDown
	case "C":
		return keyRight
	case "D":
		return keyLeft
	case "H", "1~", "7~":
		return keyHome
	case "F", "4~", "8~":
		return keyEnd
	case "5~":
		return keyPageUp
	case "6~":
		return keyPageDown
	case "Z":
		return keyBackTab
	}
	return keyUnknown
}

// nextKey reads the first key of an input, and how many bytes it has; 0 if more have to come,
// which never is for one that is whole.
func nextKey(in []byte, whole bool) (k key, n int) {
	if in[0] != byte(keyEscape) {
		return key(in[0]), 1
	}
	if len(in) == 1 {
		if whole {
			return keyEscape, 1
		}
		return 0, 0
	}
	if in[1] != '[' && in[1] != 'O' {
		return keyEscape, 1
	}
	for i := 2; i < len(in); i++ {
		if in[i] >= 0x40 && in[i] <= 0x7e {
			return sequenceKey(string(in[2 : i+1])), i + 1
		}
	}
	if whole || len(in) > longestSequence {
		return keyUnknown, len(in)
	}
	return 0, 0
}

// listen passes the keys of an input on until ctx ends.
func listen(ctx context.Context, input <-chan []byte, obey func(key)) {
	var pending []byte
	for {
		var late <-chan time.Time
		if len(pending) > 0 {
			late = time.After(escapeDelay)
		}
		whole := false
		select {
		case <-ctx.Done():
			return
		case bytes := <-input:
			pending = append(pending, bytes...)
		case <-late:
			whole = true
		}
		for len(pending) > 0 {
			k, n := nextKey(pending, whole)
			if n == 0 {
				break
			}
			pending = pending[n:]
			obey(k)
		}
	}
}
