// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/steer-dev/steer/storage"
)

func writes() []check {
	return []check{
		{"each write gets a revision above all others", func(t *tester) {
			for i := range 5 {
				t.put("b", "n", fmt.Sprint(i)) // commit compares the revisions
			}
			t.put("other", "n", "v")
			at := t.delete("b", "n").Modified
			if newest := t.view(0).Revision(); newest < at {
				t.Fatalf("the newest revision is %d, the last write has %d", newest, at)
			}
		}},
		{"a record keeps the revision that created it until it is deleted", func(t *tester) {
			t.put("b", "n", "1")
			t.put("b", "x", "1")
			t.equal(&seen{"b", "n", "2", 1, 3}, t.see(t.put("b", "n", "2")))
			t.delete("b", "n")
			t.equal(&seen{"b", "n", "3", 5, 5}, t.see(t.put("b", "n", "3")))
		}},
		{"Absent creates a key that does not exist and conflicts with one that does", func(t *tester) {
			w := storage.Write{Key: key("b", "n"), Value: []byte("1"), Expect: storage.Absent}
			t.commit(w)
			t.conflict(w, &seen{"b", "n", "1", 1, 1})
		}},
		{"a concrete revision must be the one the key was modified at", func(t *tester) {
			t.put("b", "n", "1")
			w := storage.Write{Key: key("b", "n"), Value: []byte("2"), Expect: t.at(1)}
			t.commit(w)
			t.conflict(w, &seen{"b", "n", "2", 1, 2})
			t.conflict(storage.Write{Key: key("b", "n"), Expect: t.at(1)}, &seen{"b", "n", "2", 1, 2})
			t.conflict(storage.Write{Key: key("b", "none"), Value: []byte("2"), Expect: t.at(1)}, nil)
			t.commit(storage.Write{Key: key("b", "n"), Expect: t.at(2)})
		}},
		{"AnyRevision writes any state but deletes only what exists", func(t *tester) {
			t.put("b", "n", "1")
			t.put("b", "n", "2")
			t.delete("b", "n")
			t.conflict(storage.Write{Key: key("b", "n"), Expect: storage.AnyRevision}, nil)
		}},
		{"a condition holds a write to the version of another key", func(t *tester) {
			at := t.put("defs", "d", "1").Modified
			w := storage.Write{Key: key("b", "n"), Value: []byte("1"), Expect: storage.AnyRevision, While: storage.Condition{Key: key("defs", "d"), At: at}}
			t.commit(w)
			t.put("b", "other", "1")
			t.commit(w)
			t.put("defs", "d", "2")
			_, err := t.Commit(context.Background(), w)
			t.wantErr(err, storage.ErrUnmet)
			t.delete("defs", "d")
			_, err = t.Commit(context.Background(), w)
			t.wantErr(err, storage.ErrUnmet)
			if errors.Is(err, storage.ErrConflict) {
				t.Error("an unmet condition looks like a conflict of the key, which is repeated")
			}
			w.Key, w.While.At = w.While.Key, t.put("defs", "d", "3").Modified
			t.commit(w) // on the key itself it is equivalent to Expect
		}},
		{"a refused write changes nothing", func(t *tester) {
			t.put("b", "n", "1")
			t.conflict(storage.Write{Key: key("b", "n"), Value: []byte("2"), Expect: storage.Absent}, &seen{"b", "n", "1", 1, 1})
			events, _ := t.drain(t.watch(storage.Range{}, t.at(1)))
			t.equal(0, len(events))
			t.equal("1", string(t.view(0).Get(key("b", "n")).Value))
		}},
	}
}

func values() []check {
	return []check{
		{"an empty value is a value, not a deletion", func(t *tester) {
			t.commit(storage.Write{Key: key("b", "n"), Value: []byte{}, Expect: storage.Absent})
			if t.view(0).Get(key("b", "n")) == nil {
				t.Fatal("the key does not exist")
			}
		}},
		{"the revision is stamped into the value where the write asks for it", func(t *tester) {
			for range 12 {
				t.put("b", "other", "")
			}
			value := []byte(`{"rv":""}`)
			rec := t.commit(storage.Write{Key: key("b", "n"), Value: value, Stamp: 7, Expect: storage.Absent})
			t.equal(fmt.Sprintf(`{"rv":"%d"}`, rec.Modified), string(rec.Value))
			t.equal(7, rec.Stamp)
			rec = t.commit(storage.Write{Key: key("b", "end"), Value: []byte("rv="), Stamp: 3, Expect: storage.Absent})
			t.equal(fmt.Sprint("rv=", rec.Modified), string(rec.Value))
			t.equal(fmt.Sprint("rv=", rec.Modified), string(t.view(0).Get(key("b", "end")).Value))
		}},
		{"a deletion returns the last value, stamped with the revision of the deletion", func(t *tester) {
			for range 8 {
				t.put("b", "other", "")
			}
			t.commit(storage.Write{Key: key("b", "n"), Value: []byte(`{"rv":""}`), Stamp: 7, Expect: storage.Absent})
			before := t.view(0).Get(key("b", "n"))
			rec := t.delete("b", "n")
			t.equal(&seen{"b", "n", fmt.Sprintf(`{"rv":"%d"}`, t.at(10)), 9, 10}, t.see(rec))
			t.equal(&seen{"b", "n", fmt.Sprintf(`{"rv":"%d"}`, t.at(9)), 9, 9}, t.see(before))
			t.put("b", "plain", "kept")
			t.equal("kept", string(t.delete("b", "plain").Value))
		}},
		{"malformed writes are refused as invalid", func(t *tester) {
			for name, w := range map[string]storage.Write{
				"no bucket":      {Key: key("", "n"), Value: []byte("1")},
				"no name":        {Key: key("b", ""), Value: []byte("1")},
				"long name":      {Key: key("b", strings.Repeat("n", storage.MaxKey+1)), Value: []byte("1")},
				"long value":     {Key: key("b", "n"), Value: make([]byte, storage.MaxValue+1)},
				"stamp outside":  {Key: key("b", "n"), Value: []byte("1"), Stamp: 2},
				"negative stamp": {Key: key("b", "n"), Value: []byte("1"), Stamp: -1},
				"delete absent":  {Key: key("b", "n"), Expect: storage.Absent},
				"expectation":    {Key: key("b", "n"), Value: []byte("1"), Expect: -2},
			} {
				if _, err := t.Commit(context.Background(), w); !errors.Is(err, storage.ErrInvalid) {
					t.Errorf("%s: got error %v, want ErrInvalid", name, err)
				}
			}
			t.equal(0, len(buckets(t.view(0))))
		}},
		{"a context that has ended writes nothing", func(t *tester) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := t.Commit(ctx, storage.Write{Key: key("b", "n"), Value: []byte("1")})
			t.wantErr(err, context.Canceled)
			t.equal(0, len(buckets(t.view(0))))
		}},
		{"what is derived from a record is computed once and stays with it", func(t *tester) {
			t.put("b", "n", "abc")
			rec, builds := t.view(0).Get(key("b", "n")), 0
			for range 2 {
				up := rec.Derive(func(r *storage.Record) any {
					builds++
					return string(bytes.ToUpper(r.Value))
				})
				t.equal("ABC", up)
			}
			t.equal(1, builds)
			if t.view(0).Get(key("b", "n")) != rec {
				t.Fatal("the same version has two records")
			}
		}},
	}
}

// conflict fails unless the write conflicts with the given version.
func (t *tester) conflict(w storage.Write, found *seen) {
	t.Helper()
	_, err := t.Commit(context.Background(), w)
	t.wantErr(err, storage.ErrConflict)
	var c *storage.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("got error %v, want a ConflictError", err)
	}
	t.equal(w.Key, c.Key)
	t.equal(w.Expect, c.Expect)
	t.equal(found, t.see(c.Current))
	if now := t.Get(w.Key); now != c.Current {
		t.Fatalf("the write conflicts with %v, but %v is read", t.see(c.Current), t.see(now))
	}
}
