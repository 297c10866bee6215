// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// Another program brings the revision of a restored etcd past what two stores have seen: one is
// closed meanwhile, one cut off. No term shows it: no server leads until they are back.
func TestStoreRefusesAnEtcdThatWentBackAndWasBroughtFurtherByOthers(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"a write", "a deletion"} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()
			m := ownMember(t, "--unsafe-no-fsync")
			closed, cutOff := m.options(), m.options()
			cutOff.Prefix = closed.Prefix
			closed.RevisionFile = filepath.Join(t.TempDir(), "revision")
			network := newProxy(t, m, "proxy")
			cutOff.Endpoints = []string{"unix://" + network.socket}
			first, second := lead(t, closed), open(t, cutOff)
			mustPut(t, first, "n", "1")
			m.kill()
			data, backup := filepath.Join(m.dir, "data"), filepath.Join(m.dir, "backup")
			copyDir(t, data, backup)
			if err := m.start(); err != nil {
				t.Fatal(err)
			}
			at := putLeading(t, first, "n", "2").Modified
			if last == "a deletion" {
				eventually(t, func(ctx context.Context) error {
					_, err := first.Commit(ctx, storage.Write{Key: storage.Key{Bucket: "b", Name: "n"}, Expect: storage.AnyRevision})
					return err
				})
				at = first.Latest().Revision()
			}
			awaitSeen(t, closed.RevisionFile, at, second)
			network.cut()
			// A server that ends without a word writes nothing more.
			m.kill()
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			copyDir(t, backup, data)
			if err := m.start(); err != nil {
				t.Fatal(err)
			}
			other, err := clientv3.New(clientv3.Config{Endpoints: []string{m.endpoint()}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Close() }()
			eventually(t, func(ctx context.Context) error {
				resp, err := other.Put(ctx, "/other", "")
				if err == nil && storage.Revision(resp.Header.Revision) <= at+10 {
					err = fmt.Errorf("etcd is at revision %d", resp.Header.Revision)
				}
				return err
			})
			wantRestored(t, closed, network, second)
			if got := second.Get(storage.Key{Bucket: "b", Name: "n"}); got != nil && string(got.Value) != "2" {
				t.Errorf("the state is %s, of the other history", got.Value)
			}
		})
	}
}

// Half of the first attempts are made, their answers are lost, and each object is deleted as
// soon as there is one.
func TestCreateThatIsSentAgainBringsNothingBack(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	o := m.options()
	first, second := newProxy(t, m, "first"), newProxy(t, m, "second")
	o.Endpoints = []string{"unix://" + first.socket, "unix://" + second.socket}
	s := lead(t, o.WithoutKeepAlive())
	other, err := clientv3.New(clientv3.Config{Endpoints: []string{m.endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	created := map[string]int{}
	watch := other.Watch(watching, o.Prefix+"/b/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watch
	done := make(chan struct{})
	go func() {
		defer close(done)
		for resp := range watch {
			for _, e := range resp.Events {
				if e.IsCreate() {
					created[string(e.Kv.Key)]++
					_, _ = other.Delete(watching, string(e.Kv.Key)) // the next event says it
				} else if strings.HasSuffix(string(e.Kv.Key), "/last") {
					return
				}
			}
		}
	}()
	first.silence()
	eventually(t, func(ctx context.Context) error { return s.Sync(ctx, 0) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	for n := range 6 { // connections take turns
		w := put(fmt.Sprint(n), "1")
		w.Expect = storage.Absent
		if _, err := s.Commit(ctx, w); err != nil && !strings.Contains(err.Error(), "unknown") {
			t.Errorf("create %d: %v", n, err)
		}
	}
	if _, err := other.Put(t.Context(), o.Prefix+"/b/last", ""); err != nil {
		t.Fatal(err)
	}
	<-done
	for key, times := range created {
		if times > 1 {
			t.Errorf("%s was created %d times", key, times)
		}
	}
	if len(created) < 3 {
		t.Errorf("created %v: the test proves little", created)
	}
}
