// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/steer-dev/steer/storage"
)

// Fingerprints are those of the public keys of a server, by the names of their files.
type Fingerprints map[string]string

// FingerprintsOf returns those of the public keys of signers.
func FingerprintsOf(signers map[string]crypto.Signer) (Fingerprints, error) {
	out := Fingerprints{}
	for name, signer := range signers {
		der, err := x509.MarshalPKIXPublicKey(signer.Public())
		if err != nil {
			return nil, fmt.Errorf("controlplane: the key of %s: %w", name, err)
		}
		out[name] = fmt.Sprintf("sha256:%x", sha256.Sum256(der))
	}
	return out, nil
}

// ErrOtherKeys: the servers of a store have different keys, and believe one another nothing.
var ErrOtherKeys = errors.New("this server has other keys than its cluster: all servers of a store need the same ones, so copy the folder pki of a server to the others, or name one folder for all with --cert-dir; " +
	"to give the cluster new keys, stop all servers and remove the key steer.dev/servers/keys below the prefix with etcdctl del")

// keysKey has the [Fingerprints] of the cluster. The first server that leads writes them, before
// it executes a request.
func keysKey() storage.Key { return storage.Key{Bucket: preparedKey().Bucket, Name: "keys"} }

// IsPrepared reports whether a server has taken over in the life of a database, as this process
// has its state: the cluster has its keys then.
func IsPrepared(store storage.Viewer) bool {
	return store.Get(keysKey()) != nil || store.Get(preparedKey()) != nil
}

// CheckKeys fails with [ErrOtherKeys] if the cluster has other keys than this server. It asks no
// other server: the store says what they are.
func (s *Server) CheckKeys() error {
	rec := s.options.Store.Get(keysKey())
	if rec == nil {
		return nil
	}
	own, err := s.fingerprints()
	if err != nil || bytes.Equal(rec.Value, own) {
		return err
	}
	var cluster, ours Fingerprints
	if err := errors.Join(json.Unmarshal(rec.Value, &cluster), json.Unmarshal(own, &ours)); err != nil {
		return fmt.Errorf("leadership: read the fingerprints of the cluster's keys: %w", err)
	}
	var other []string
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if cluster[name] != ours[name] {
			other = append(other, name)
		}
	}
	return fmt.Errorf("leadership: %s: %w", strings.Join(other, ", "), ErrOtherKeys)
}

// noteKeys writes the fingerprints of this server, which leads, unless there are some.
func (s *Server) noteKeys(ctx context.Context) error {
	if s.options.Store.Get(keysKey()) != nil {
		return nil
	}
	own, err := s.fingerprints()
	if err != nil {
		return err
	}
	if _, err := s.options.Store.Commit(ctx, storage.Write{Key: keysKey(), Value: own, Expect: storage.Absent}); err != nil {
		return fmt.Errorf("leadership: note the keys of the cluster: %w", err)
	}
	return nil
}
