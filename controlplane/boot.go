// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/namespace"
	"github.com/steer-dev/steer/controlplane/rbac"
	"github.com/steer-dev/steer/storage"
)

// bootNamespaces are there in every cluster.
func bootNamespaces() []string {
	return []string{"default", "kube-system", "kube-public", "kube-node-lease"}
}

// ensureRoles creates the roles and bindings that every cluster has, and gives
// back to those that are there what has been taken from them.
func (p *Plane) ensureRoles(ctx context.Context) error {
	view, err := p.store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("controlplane: read the roles: %w", err)
	}
	create, restore := rbac.Boot(view, rbac.Beginning{UID: p.options.Entropy.UID, Now: time.Now(), Nodes: p.options.Workloads != nil})
	if err := p.commitAll(ctx, create); err != nil {
		return fmt.Errorf("controlplane: create the roles: %w", err)
	}
	for _, r := range restore {
		if err := p.send(ctx, r); err != nil {
			return fmt.Errorf("controlplane: restore the roles: %w", err)
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

// ensureNamespaces creates the namespaces that every cluster has.
func (p *Plane) ensureNamespaces(ctx context.Context) error {
	for _, name := range bootNamespaces() {
		err := p.ensure(ctx, storage.Key{Bucket: namespace.Bucket, Name: name}, "/api/v1/namespaces",
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`)
		if err != nil {
			return err
		}
	}
	return nil
}

// ensurePriorityClasses creates the priority classes that every cluster has.
func (p *Plane) ensurePriorityClasses(ctx context.Context) error {
	for _, c := range []struct{ name, value, about string }{
		{"system-node-critical", "2000001000", "Used for system critical pods that must not be moved from their current node."},
		{"system-cluster-critical", "2000000000", "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
	} {
		err := p.ensure(ctx, storage.Key{Bucket: "scheduling.k8s.io/priorityclasses", Name: c.name}, "/apis/scheduling.k8s.io/v1/priorityclasses",
			`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"`+c.name+`"},"value":`+c.value+`,"description":"`+c.about+`"}`)
		if err != nil {
			return err
		}
	}
	return nil
}

// ensure creates an object unless it exists.
func (p *Plane) ensure(ctx context.Context, key storage.Key, collection, object string) error {
	view, err := p.store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("controlplane: read %s: %w", key.Bucket, err)
	}
	if view.Get(key) != nil {
		return nil
	}
	err = p.send(ctx, step.Request{
		User: step.APIServer, Method: http.MethodPost, Path: collection, ContentType: step.JSON, Body: []byte(object),
	})
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusConflict {
		return nil // another server of the same store was faster
	}
	if err != nil {
		return fmt.Errorf("controlplane: create %s %s: %w", key.Bucket, key.Name, err)
	}
	return nil
}
