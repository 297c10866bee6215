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
	view, err := p.store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("controlplane: read the namespaces: %w", err)
	}
	for _, name := range bootNamespaces() {
		if view.Get(storage.Key{Bucket: namespace.Bucket, Name: name}) != nil {
			continue
		}
		err := p.send(ctx, step.Request{
			User: step.APIServer, Method: http.MethodPost, Path: "/api/v1/namespaces", ContentType: step.JSON,
			Body: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `"}}`),
		})
		var refused *refusedError
		if errors.As(err, &refused) && refused.status == http.StatusConflict {
			continue // another server of the same store was faster
		}
		if err != nil {
			return fmt.Errorf("controlplane: create the namespace %s: %w", name, err)
		}
	}
	return nil
}
