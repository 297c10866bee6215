// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

// templates are the stores of planes as they are after their start, with a set
// of manifests applied: by the hash of those. A test forks one, which costs the
// same whatever is in it.
var templates sync.Map // [sha256.Size]byte to func() (storage.Forker, error)

// firstRealTime is before every clock that is set. Inside a testing/synctest
// bubble time begins in the year 2000.
const firstRealTime = 1767225600 // 2026-01-01

// forkable reports whether a plane may begin as a copy of a template: it has no
// store of its own, no say in what its first objects are like (such as keys, or
// with [usuallyDisabled] the certificates in every namespace), and is not inside
// a bubble of virtual time. There a template would come from the future, and one
// that was made there could not be used outside.
func forkable(o *controlplane.Options) bool {
	return o.Store == nil && o.DataDir == "" && o.Entropy == nil && o.Admission == nil && o.Disable == nil && !virtual()
}

// virtual reports whether the time is that of a testing/synctest bubble.
func virtual() bool { return time.Now().Unix() < firstRealTime }

// usuallyDisabled is what planes go without unless their options say otherwise:
// nothing in a test reads the ConfigMap kube-root-ca.crt, and what it holds
// belongs to the keys of one plane.
func usuallyDisabled() []string { return []string{"root-ca-certificate-publisher-controller"} }

// forkTemplate returns a copy of the store of a plane with the objects.
func forkTemplate(objects []manifest.Object) (storage.Store, error) {
	hash := sha256.New()
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		hash.Write(data)
	}
	key := [sha256.Size]byte(hash.Sum(nil))
	made, ok := templates.Load(key)
	if !ok {
		made, _ = templates.LoadOrStore(key, sync.OnceValues(func() (storage.Forker, error) { return makeTemplate(objects) }))
	}
	template, err := made.(func() (storage.Forker, error))()
	if err != nil {
		return nil, err
	}
	return template.Fork(), nil
}

// makeTemplate keeps the store open: there is one per set of manifests and
// process.
func makeTemplate(objects []manifest.Object) (storage.Forker, error) {
	ctx := context.Background() // of no single test
	store := storage.NewMemory(storage.MemoryOptions{})
	plane, err := controlplane.New(controlplane.Options{Store: store, ManualControllers: true, Disable: usuallyDisabled()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = plane.Stop(ctx) }() // nothing is in flight
	admin, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: fieldOwner})
	if err != nil {
		return nil, err
	}
	if err := manifest.Apply(ctx, admin, "", objects); err != nil {
		return nil, err
	}
	if _, err := plane.Settle(ctx); err != nil {
		return nil, err
	}
	return store, nil
}
