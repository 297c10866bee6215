// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/namespace"
	"github.com/steer-dev/steer/storage"
)

// bootNamespaces are there in every cluster.
func bootNamespaces() []string {
	return []string{"default", "kube-system", "kube-public", "kube-node-lease"}
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
