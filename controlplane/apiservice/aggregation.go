// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Aggregation tells a server which versions others serve. It is safe for
// concurrent use.
type Aggregation struct {
	// Store that APIServices are kept in.
	Store storage.Store
	// Server that is told.
	Server *apiserver.Server

	mu sync.Mutex // never held while the store is read
	// at is the newest state of the store that was told.
	at storage.Revision
	// others reports that some version is served elsewhere.
	others bool
}

// Resource returns APIServices, by whose changes the server is told.
func (a *Aggregation) Resource() *resource.Resource {
	r := *shared()
	r.Committed = func(ctx context.Context, c resource.Change) error {
		if !isRemote(c.Object) && !isRemote(c.Old) {
			return nil
		}
		return a.Load(ctx)
	}
	return &r
}

func isRemote(obj resource.Object) bool {
	s, ok := obj.(service)
	return ok && s.Spec.Service != nil
}

// Load tells the server what is stored.
func (a *Aggregation) Load(ctx context.Context) error {
	view, err := a.Store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("apiservice: read the APIServices: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if view.Revision() < a.at {
		return nil // a call that was later has told it
	}
	a.at = view.Revision()
	var others []apiserver.Delegated
	for rec := range view.Ascend(Bucket, "", "") {
		if s := remote(rec); s != nil {
			others = append(others, apiserver.Delegated{
				Elsewhere: discovery.Elsewhere{
					GroupVersion:  schema.GroupVersion{Group: s.Spec.Group, Version: s.Spec.Version},
					GroupPriority: s.Spec.GroupPriorityMinimum, VersionPriority: s.Spec.VersionPriority,
				},
				Handler: http.HandlerFunc(unavailable),
			})
		}
	}
	if len(others) > 0 || a.others {
		a.Server.Delegate(others...)
	}
	a.others = len(others) > 0
	return nil
}

// remote returns the service of a record if another server serves it, or nil. Most
// are of this one, and are not even decoded.
func remote(rec *storage.Record) service {
	if !bytes.Contains(rec.Value, []byte(`"service":{`)) {
		return nil
	}
	s := decode(rec)
	if s == nil || s.Spec.Service == nil {
		return nil
	}
	return s
}

// decode returns the service of a record, or nil if it is none.
func decode(rec *storage.Record) service {
	s := &v1.APIService{}
	if json.Unmarshal(rec.Value, s) != nil {
		return nil
	}
	return s
}

func unavailable(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "service unavailable", http.StatusServiceUnavailable)
}
