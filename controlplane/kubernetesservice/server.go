// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// manager is the field manager of the objects of this package.
const manager = "kube-apiserver"

// Server keeps the objects of an API server. It is safe for concurrent use once
// its fields are set; all are required.
type Server struct {
	// Store that the objects are kept in.
	Store storage.Store
	// NewUID returns the UID of a new object.
	NewUID func() types.UID
	// Send carries out a request to the server.
	Send step.Sender
	// Service is that of the server; its range of addresses decides over it.
	Service Service
	// RangeFinalizer is what the controller of ServiceCIDRs puts on them; empty if
	// there is none.
	RangeFinalizer string

	// listening is where Endpoints and EndpointSlice lead; nil until there is
	// a listener.
	listening atomic.Pointer[net.TCPAddr]
	// serving is where they lead as well; nil where there are no other servers.
	serving atomic.Pointer[[]netip.AddrPort]
}

// Component makes the Service when a server starts. It adds to the kinds of the Service, its
// Endpoints, its EndpointSlice and its range of addresses that theirs are there again
// when the request returns that has deleted or changed them. Of the Service and the
// range only the deletion counts, as in Kubernetes.
func (s *Server) Component(d component.Deps) component.Component {
	kept := func(resource, namespace string) component.Extension {
		return component.Extension{Resource: resource, Committed: s.keep(namespace)}
	}
	return component.Component{
		Name: "kubernetes service",
		Extend: []component.Extension{
			kept("services", namespace), kept("endpoints", namespace),
			kept("endpointslices.discovery.k8s.io", namespace), kept("servicecidrs.networking.k8s.io", ""),
		},
		Boot: func(view storage.View, now time.Time) ([]storage.Write, []step.Request, error) {
			return s.missing(view, now), s.widening(view), nil
		},
		Health: slices.Concat(
			component.Hooks(d.Progress.Announced, "bootstrap-controller"),
			component.Hooks(d.Progress.Booted, "start-kubernetes-service-cidr-controller"),
		),
	}
}

// widening returns the request that gives the range of addresses a second family: that of a server
// which had one family, and whose first range is the same now. Any other difference is for an
// administrator to resolve, as with kube-apiserver.
func (s *Server) widening(view storage.View) []step.Request {
	rec, want := view.Get(rangeKey()), s.Service.cidrs()
	if rec == nil || len(want) < 2 {
		return nil
	}
	var is networkingv1.ServiceCIDR
	if json.Unmarshal(rec.Value, &is) != nil || !slices.Equal(is.Spec.CIDRs, want[:1]) {
		return nil
	}
	body, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/spec/cidrs", "value": is.Spec.CIDRs}, {"op": "replace", "path": "/spec/cidrs", "value": want},
	})
	if err != nil {
		return nil // strings always have a text
	}
	return []step.Request{{
		User: step.APIServer, Method: http.MethodPatch, Path: "/apis/" + networking + "/servicecidrs/" + name,
		ContentType: "application/json-patch+json", Body: body,
	}}
}

// keep returns what follows the changes of a kind with an object of the Service in a
// namespace, which is empty for a cluster-scoped one.
func (s *Server) keep(namespace string) func(context.Context, resource.Change) error {
	return func(ctx context.Context, change resource.Change) error {
		if o := change.Object; o.GetName() != name || o.GetNamespace() != namespace || change.Old == nil && !change.Deleted {
			return nil
		}
		return s.mend(ctx)
	}
}

// mend creates the objects that are missing and replaces those with other content. Of
// concurrent calls one writes; the others have a conflict, which is no error.
func (s *Server) mend(ctx context.Context) error {
	view := s.Store.Latest()
	at := s.listening.Load()
	for _, c := range s.first(view, time.Now()) {
		if view.Get(c.Key) == nil {
			if err := s.put(ctx, nil, c); err != nil {
				return err
			}
		}
	}
	if at == nil {
		return nil
	}
	var servers []netip.AddrPort
	if all := s.serving.Load(); all != nil {
		servers = *all
	}
	for _, c := range endpoints(at, servers) {
		if err := s.put(ctx, view.Get(c.Key), c); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether a stored object has the labels and the content of a creation.
func same(old *storage.Record, c step.Creation) bool {
	var is, want map[string]any
	if json.Unmarshal(old.Value, &is) != nil || json.Unmarshal([]byte(`{"labels":`+cmp.Or(c.Labels, "null")+`,`+c.Content+`}`), &want) != nil {
		return false
	}
	metadata, _ := is["metadata"].(map[string]any)
	is["labels"] = metadata["labels"]
	for name, value := range want {
		if !reflect.DeepEqual(is[name], value) {
			return false
		}
	}
	return true
}

// put stores an object unless the stored one has the same content. A conflict is no
// error: the next change of the object calls mend again.
func (s *Server) put(ctx context.Context, old *storage.Record, c step.Creation) error {
	c.UID, c.At, c.Manager = s.NewUID(), time.Now(), manager
	expect := storage.Absent
	if old != nil {
		if same(old, c) {
			return nil
		}
		identity, err := identityOf(old)
		if err != nil {
			return err
		}
		c.UID, c.At, expect = identity.UID, identity.CreationTimestamp.Time, old.Modified
		if c.Generation > 0 {
			c.Generation = int(identity.Generation) + 1
		}
	}
	write := c.Write()
	write.Expect = expect
	if _, err := s.Store.Commit(ctx, write); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("kubernetesservice: write %s: %w", c.Key, err)
	}
	return nil
}
