// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

func TestEventsSayTheirLengths(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 100, 127, 128, 16_000, 16_383, 16_384, 3 << 20} {
		object := wire.Envelope("v1", "Thing", bytes.Repeat([]byte{7}, size))
		pieces := wire.Pieces{Head: object}
		if length, _ := wire.Content(pieces); length != size {
			t.Errorf("the content of %d bytes has %d", size, length)
		}
		frame := wire.AppendEvent(nil, "ADDED", pieces, true)
		if length := binary.BigEndian.Uint32(frame); int(length) != len(frame)-4 {
			t.Errorf("a frame of %d bytes says %d", len(frame)-4, length)
		}
		if bare := wire.AppendEvent(nil, "ADDED", pieces, false); !bytes.Equal(bare, frame[4:]) {
			t.Error("a message differs from its frame")
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(frame[4:]); err != nil || event.Type != "ADDED" || !bytes.Equal(event.Object.Raw, object) {
			t.Errorf("an event of %d bytes is read as %.20q, %v", size, event.Type, err)
		}
	}
}

func TestEnvelopesShareMemory(t *testing.T) {
	t.Parallel()
	first, second, absent := []byte(strings.Repeat("1", 300)), []byte(strings.Repeat("2", 300)), []byte(strings.Repeat("3", 300))
	for _, raw := range []string{"a" + string(first) + "b" + string(second) + "c", string(first) + string(second), string(second) + string(first), "", "x", string(second)} {
		plain := wire.Envelope("v1", "Thing", []byte(raw))
		for _, shared := range [][][]byte{nil, {first}, {first, second}, {absent, second}, {second, first}} {
			object, own := wire.EnvelopeSharing("v1", "Thing", []byte(raw), shared)
			if got := object.AppendTo(nil); !bytes.Equal(got, plain) || object.Len() != len(plain) {
				t.Fatalf("%q shared is %q, want %q", raw, got, plain)
			}
			foreign := 0
			for _, p := range object.Rest {
				for _, s := range shared {
					if len(p) > 0 && &p[0] == &s[0] {
						foreign += len(p)
					}
				}
			}
			if own != len(plain)-foreign {
				t.Errorf("%d bytes of %d are said not to be shared, %d are", own, len(plain), foreign)
			}
			size, pieces := wire.Content(object)
			var content []byte
			for p := range pieces {
				content = append(content, p...)
			}
			if size != len(raw) || string(content) != raw {
				t.Errorf("the content is %q, want %q", content, raw)
			}
		}
	}
}
