// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/steer-dev/steer/storage"
)

// Foreign is what another program, such as a kube-apiserver, has below a prefix.
type Foreign struct {
	// Revision of all keys.
	Revision storage.Revision
	// Keys yields them in the order of their bytes, or an error at last.
	Keys iter.Seq2[*mvccpb.KeyValue, error]
}

// ReadForeign calls use with what the prefix of o holds. Nothing is written; the other
// program may be running.
func ReadForeign(ctx context.Context, o Options, use func(Foreign) error) error {
	s, err := connect(o)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // nothing was written
	asking, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	resp, err := s.client.Get(asking, string(s.layout), clientv3.WithPrefix(), clientv3.WithCountOnly())
	switch {
	case err != nil:
		return fmt.Errorf("etcd: ask %v: %w", o.Endpoints, err)
	case resp.Count == 0:
		return fmt.Errorf("%w (%s)", ErrNoKeys, s.layout)
	}
	at := resp.Header.Revision
	return use(Foreign{Revision: storage.Revision(at), Keys: func(yield func(*mvccpb.KeyValue, error) bool) {
		next, end, page := string(s.layout), clientv3.GetPrefixRangeEnd(string(s.layout)), int64(firstPage)
		for {
			resp, err := s.client.Get(ctx, next, clientv3.WithRange(end), clientv3.WithRev(at), clientv3.WithLimit(page))
			if err != nil {
				yield(nil, fmt.Errorf("etcd: read %s: %w", s.layout, err))
				return
			}
			for _, kv := range resp.Kvs {
				if !yield(kv, nil) {
					return
				}
				next = string(kv.Key) + "\x00"
			}
			if !resp.More {
				return
			}
			page = nextPage(resp.Kvs)
		}
	}})
}

// ReadBackup is [ReadForeign] of a file that etcdctl snapshot save wrote.
func ReadBackup(file, prefix string, use func(Foreign) error) error {
	if err := verifyBackup(file); err != nil {
		return fmt.Errorf("etcd: read the backup %s: %w", file, err)
	}
	db, err := bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return fmt.Errorf("etcd: read the backup %s: %w", file, err)
	}
	defer func() { _ = db.Close() }() // nothing was written
	newest, revision, err := readBackup(db, []byte(newLayout(prefix)))
	switch {
	case err != nil:
		return fmt.Errorf("etcd: read the backup %s: %w", file, err)
	case len(newest) == 0:
		return fmt.Errorf("%w (%s)", ErrNoKeys, newLayout(prefix))
	}
	return use(Foreign{Revision: revision, Keys: func(yield func(*mvccpb.KeyValue, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(newest)) {
			if !yield(newest[key], nil) {
				return
			}
		}
	}})
}

// verifyBackup compares the contents of a file with the checksum at its end.
func verifyBackup(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size()%512 != sha256.Size {
		return errors.New("it has no checksum at its end: name a file that etcdctl snapshot save wrote, or start an etcd on a copy of the data directory and name that with --etcd-servers")
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, info.Size()-sha256.Size); err != nil {
		return err
	}
	want, err := io.ReadAll(f)
	if err == nil && !bytes.Equal(want, sum.Sum(nil)) {
		err = errors.New("its checksum is another: the file is damaged or incomplete")
	}
	return err
}

// revisionSize is the size of a key of etcd's file: revision, underscore and the number
// within the revision. A further byte marks a deletion.
const revisionSize = 8 + 1 + 8

// readBackup returns the newest version of each key with a prefix, and the newest revision.
func readBackup(db *bbolt.DB, prefix []byte) (newest map[string]*mvccpb.KeyValue, revision storage.Revision, err error) {
	newest = map[string]*mvccpb.KeyValue{}
	err = db.View(func(tx *bbolt.Tx) error {
		versions := tx.Bucket([]byte("key"))
		if versions == nil {
			return errors.New("it is not of etcd")
		}
		return versions.ForEach(func(k, v []byte) error {
			if len(k) < revisionSize {
				return fmt.Errorf("a revision of %d bytes", len(k))
			}
			revision = storage.Revision(binary.BigEndian.Uint64(k))
			kv := &mvccpb.KeyValue{}
			if err := proto.Unmarshal(v, kv); err != nil {
				return fmt.Errorf("revision %d: %w", revision, err)
			}
			switch {
			case !bytes.HasPrefix(kv.Key, prefix):
			case len(k) > revisionSize:
				delete(newest, string(kv.Key))
			default:
				newest[string(kv.Key)] = kv
			}
			return nil
		})
	})
	return newest, revision, err
}
