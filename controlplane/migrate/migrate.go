// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migrate takes over the data of a kube-apiserver: what that has in etcd, as JSON
// or protobuf and not encrypted, becomes a view of a store. Objects keep their names, uids,
// revisions, managed fields and status. They are neither admitted nor validated again.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/certificates"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/storage"
)

// Key is one key of a kube-apiserver.
type Key struct {
	// Path is the key without the prefix of the server, such as "pods/default/web".
	Path  string
	Value []byte
	// Created and Modified are the revisions in etcd.
	Created, Modified storage.Revision
}

// Source is what a kube-apiserver has in etcd at one revision.
type Source struct {
	Revision storage.Revision
	// Keys yields all keys, or an error at last.
	Keys iter.Seq2[Key, error]
}

// Report says what became of the keys of a [Source].
type Report struct {
	// Taken counts the objects of each bucket.
	Taken map[string]int
	// Left are the keys whose contents were not taken, in the order of the source.
	Left []Left
}

// Left is a key that was not taken.
type Left struct {
	Path string
	Err  error
}

// Reasons for which a key is left that are no fault of it.
var (
	errEncrypted = errors.New("it is encrypted: rewrite the objects without encryption first (provider identity), with kubectl get and kubectl replace")
	errAddresses = errors.New("it is the address of a kube-apiserver, which each server writes for itself")
	errRange     = errors.New("it counts addresses or ports, which are read from the Services")
	errNoCRD     = errors.New("the kind is not served, and no CustomResourceDefinition has it")
)

// Snapshot writes the objects of a source as a snapshot, as [storage.Load] reads it.
func Snapshot(ctx context.Context, from Source, w io.Writer) (*Report, error) {
	server, err := builtins()
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	view, report, err := view(ctx, server, from)
	if err == nil {
		err = storage.Save(ctx, w, view)
	}
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return report, nil
}

// builtins returns a server that knows the kinds of a control plane, and answers nothing.
func builtins() (*apiserver.Server, error) {
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
	if err != nil {
		return nil, err
	}
	kinds := append(core.Resources(), new(crd.Definitions).Resource(), new(apiservice.Aggregation).Resource())
	return server, server.Install(append(kinds, certificates.Resources()...)...)
}

// view returns the objects of a source, with the revisions that they have there. The server
// serves the built-in kinds; its store is not used.
//
// Definitions of custom resources get a revision above all others, so that custom resources
// are older than what defines them, and get its defaults when they are read.
func view(ctx context.Context, server *apiserver.Server, from Source) (storage.View, *Report, error) {
	report := &Report{Taken: map[string]int{}}
	byBucket := map[string][]*storage.Record{}
	paths := map[string][]string{} // of custom resources
	for key, err := range from.Keys {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the data of the kube-apiserver: %w", err)
		}
		w, custom, err := write(ctx, server, &key)
		if err != nil {
			report.Left = append(report.Left, Left{key.Path, err})
			continue
		}
		if w.Key.Bucket == crd.Bucket {
			key.Modified = from.Revision + 1
		}
		rec := &storage.Record{Key: w.Key, Value: w.Stamped(key.Modified), Stamp: w.Stamp, Created: key.Created, Modified: key.Modified}
		byBucket[w.Key.Bucket] = append(byBucket[w.Key.Bucket], rec)
		if custom {
			paths[w.Key.Bucket] = append(paths[w.Key.Bucket], key.Path)
		}
	}
	defined := map[string]bool{}
	for _, rec := range byBucket[crd.Bucket] {
		plural, group, _ := strings.Cut(rec.Key.Name, ".")
		defined[group+"/"+plural] = true
	}
	for _, bucket := range slices.Sorted(maps.Keys(paths)) {
		if defined[bucket] {
			continue
		}
		for _, path := range paths[bucket] {
			report.Left = append(report.Left, Left{path, errNoCRD})
		}
		delete(byBucket, bucket)
	}
	for bucket, records := range byBucket {
		report.Taken[bucket] = len(records)
	}
	return storage.NewView(from.Revision+1, func(yield func(*storage.Record) bool) {
		for _, bucket := range slices.Sorted(maps.Keys(byBucket)) {
			for _, rec := range byBucket[bucket] {
				if !yield(rec) {
					return
				}
			}
		}
	}), report, nil
}

// write returns the write that stores the object of a key, and whether it is a custom
// resource.
func write(ctx context.Context, server *apiserver.Server, key *Key) (w storage.Write, custom bool, err error) {
	first, _, _ := strings.Cut(key.Path, "/")
	switch {
	case strings.HasPrefix(string(key.Value), "k8s:enc:"):
		return w, false, errEncrypted
	case first == "masterleases" || first == "peerserverleases":
		return w, false, errAddresses
	case first == "ranges":
		return w, false, errRange
	}
	value := key.Value
	if strings.HasPrefix(key.Path, crd.Bucket+"/") {
		if value, err = definition(value); err != nil {
			return w, false, err
		}
	}
	w, err = server.Stored(ctx, value, sameFields)
	parts := strings.Split(key.Path, "/")
	if custom = errors.Is(err, apiserver.ErrNotServed) && (len(parts) == 3 || len(parts) == 4) && strings.Contains(parts[0], "."); custom {
		w, err = apiserver.StoredCustom(parts[0]+"/"+parts[1], key.Value)
	}
	if err != nil {
		return w, false, err
	}
	if !strings.HasSuffix(key.Path, "/"+w.Key.Name) {
		return w, false, fmt.Errorf("it holds the object %s: kube-apiserver would not find it there", w.Key)
	}
	if err := w.Validate(); err != nil {
		return w, false, err
	}
	return w, custom, nil
}
