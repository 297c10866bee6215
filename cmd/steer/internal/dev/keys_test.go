// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeysOfTerminals that come in one piece, and byte by byte.
func TestKeysOfTerminals(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]key{
		"jk":                                   {'j', 'k'},
		"\x1b[A\x1b[B":                         {keyUp, keyDown},
		"\x1bOA\x1bOC\x1b[D":                   {keyUp, keyRight, keyLeft},
		"\x1b[5~\x1b[6~q":                      {keyPageUp, keyPageDown, 'q'},
		"\x1b[H\x1b[1~\x1b[F\x1b[4~":           {keyHome, keyHome, keyEnd, keyEnd},
		"\x1b[Z\t\r":                           {keyBackTab, '\t', '\r'},
		"\x1b[1;5Ax":                           {keyUnknown, 'x'},
		"\x1b\x1b[A":                           {keyEscape, keyUp},
		"\x1bw":                                {keyEscape, 'w'},
		"\x1b":                                 {keyEscape},
		"\x1b[":                                {keyUnknown},
		"\x1b[" + strings.Repeat("1", 30) + "": {keyUnknown},
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				whole := []string{in}
				for name, parts := range map[string][]string{"whole": whole, "by bytes": strings.Split(in, "")} {
					var got []key
					ctx, cancel := context.WithCancel(t.Context())
					input, done := make(chan []byte), make(chan struct{})
					go func() {
						defer close(done)
						listen(ctx, input, func(k key) { got = append(got, k) })
					}()
					for _, part := range parts {
						input <- []byte(part)
					}
					time.Sleep(2 * escapeDelay) // of the bubble
					cancel()
					<-done
					if !slices.Equal(got, want) {
						t.Errorf("%s: got %v, want %v", name, got, want)
					}
				}
			})
		})
	}
}

// TestEscapeIsAKeyAfterItsDelay and before that the begin of a sequence.
func TestEscapeIsAKeyAfterItsDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		input, got := make(chan []byte), make(chan key, 2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go listen(ctx, input, func(k key) { got <- k })
		input <- []byte("\x1b")
		time.Sleep(escapeDelay - 1) // of the bubble
		if synctest.Wait(); len(got) != 0 {
			t.Fatalf("key %v before the delay", <-got)
		}
		input <- []byte("[B")
		if k := <-got; k != keyDown {
			t.Errorf("key %v, want the arrow down", k)
		}
		began := time.Now()
		input <- []byte("\x1b")
		if k := <-got; k != keyEscape || time.Since(began) != escapeDelay {
			t.Errorf("key %v after %s", k, time.Since(began))
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("\x1b[5~j\x1b"))
	f.Fuzz(func(t *testing.T, in []byte) {
		for len(in) > 0 {
			_, n := nextKey(in, true)
			if n < 1 || n > len(in) {
				t.Fatalf("%d bytes of %q", n, in)
			}
			if _, most := nextKey(in, false); most != n && most != 0 {
				t.Fatalf("%d bytes of %q, and %d once it is whole", most, in, n)
			}
			in = in[n:]
		}
	})
}
