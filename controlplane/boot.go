// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/core/flow"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/namespace"
	"github.com/steer-dev/steer/controlplane/rbac"
	"github.com/steer-dev/steer/controlplane/serviceaccount"
	"github.com/steer-dev/steer/storage"
)

// bootNamespaces are there in every cluster.
func bootNamespaces() []string {
	return []string{"default", "kube-system", "kube-public", "kube-node-lease"}
}

// ensureObjects creates what every cluster has: roles and bindings, namespaces
// with what every namespace has, the Service of the API server in the range of
// addresses, the priority classes, flow schemas and priority levels, and the
// APIServices of what is built in. Roles,
// bindings and APIServices that are there get back what has been taken from them.
func (p *Plane) ensureObjects(ctx context.Context, builtin []*resource.Resource, keepers []*serviceaccount.Keeper) error {
	view, err := p.store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("controlplane: read the first objects: %w", err)
	}
	writes, restore := rbac.Boot(view, rbac.Beginning{UID: p.options.Entropy.UID, Now: time.Now(), Nodes: p.options.Workloads != nil})
	objects, err := p.firstObjects(view, keepers)
	if err != nil {
		return err
	}
	services, restoreServices := apiservice.Boot(view, builtin, p.options.Entropy.UID, time.Now())
	if err := p.commitAll(ctx, slices.Concat(writes, services, objects, flow.Boot(view, p.options.Entropy.UID, time.Now()))); err != nil {
		return fmt.Errorf("controlplane: create the first objects: %w", err)
	}
	for _, r := range append(restore, restoreServices...) {
		if err := p.send(ctx, r); err != nil {
			return fmt.Errorf("controlplane: restore the first objects: %w", err)
		}
	}
	return nil
}

// commitAll stores new objects; those that somebody else was faster with stay as
// they are. A store that waits for a disk gets all of them at once, so that one
// flush does for all; one in memory in their order.
func (p *Plane) commitAll(ctx context.Context, writes []storage.Write) error {
	commit := func(w storage.Write) error {
		_, err := p.store.Commit(ctx, w)
		if errors.Is(err, storage.ErrConflict) {
			return nil
		}
		return err
	}
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	for i, w := range writes {
		if p.options.DataDir == "" {
			errs[i] = commit(w)
			continue
		}
		all.Go(func() { errs[i] = commit(w) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// firstObjects returns the creations of all that is not there but for roles.
func (p *Plane) firstObjects(view storage.View, keepers []*serviceaccount.Keeper) ([]storage.Write, error) {
	var writes []storage.Write
	now, uid := time.Now(), p.options.Entropy.UID
	for _, name := range bootNamespaces() {
		key := storage.Key{Bucket: namespace.Bucket, Name: name}
		if view.Get(key) != nil {
			continue // what it has is for the controllers to see to
		}
		writes = append(writes, step.Creation{
			Key: key, APIVersion: "v1", Kind: "Namespace", Name: name, UID: uid(), At: now,
			Labels:  `{"kubernetes.io/metadata.name":"` + name + `"}`,
			Manager: userAgent(step.APIServer), Fields: `{"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}`,
			Content: `"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}`,
		}.Write())
		for _, k := range keepers {
			c, err := k.Creation(name, uid(), now)
			if err != nil {
				return nil, err
			}
			writes = append(writes, c.Write())
		}
	}
	writes = append(writes, p.self.First(view, now)...)
	for _, c := range []struct{ name, value, about string }{
		{"system-node-critical", "2000001000", "Used for system critical pods that must not be moved from their current node."},
		{"system-cluster-critical", "2000000000", "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
	} {
		key := storage.Key{Bucket: "scheduling.k8s.io/priorityclasses", Name: c.name}
		if view.Get(key) != nil {
			continue
		}
		writes = append(writes, step.Creation{
			Key: key, APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: c.name, UID: uid(), At: now, Generation: 1,
			Manager: userAgent(step.APIServer), Fields: `{"f:description":{},"f:preemptionPolicy":{},"f:value":{}}`,
			Content: `"value":` + c.value + `,"description":"` + c.about + `","preemptionPolicy":"PreemptLowerPriority"`,
		}.Write())
	}
	return writes, nil
}
