// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/storage"
)

// param is an object that a binding refers to; nil for a binding without parameters.
type param struct {
	namespace, name string
	// value is the object in the version of paramKind, in the form of JSON. It is shared.
	value map[string]any
}

// parameters reads the parameters of bindings from the store. It decodes each version of
// an object once, within a bound. It is safe for concurrent use.
type parameters struct {
	server *apiserver.Server
	store  storage.Viewer

	kinds atomic.Pointer[paramKinds]

	mu    sync.Mutex
	bytes int
	known map[paramKey]paramVersion
	lists map[listKey]paramList
}

// paramKinds are the resources of kinds while the server serves the same resources.
type paramKinds struct {
	generation uint64
	resources  sync.Map // of schema.GroupVersionKind to *resource.Resource; nil: not served
}

// The keys have the generation of the server, so that objects are decoded anew when their
// definition has changed.
type (
	paramKey struct {
		generation uint64
		kind       schema.GroupVersionKind
		key        storage.Key
	}
	listKey struct {
		generation uint64
		kind       schema.GroupVersionKind
		prefix     string
		selector   *v1.ParamRef
	}
)

type paramVersion struct {
	modified storage.Revision
	param    *param
	bytes    int
}

type paramList struct {
	touched storage.Revision
	params  []*param
}

// mostParams bounds the bytes of the objects that are kept decoded, and the number of lists.
const (
	mostParamBytes = 32 << 20
	mostParamLists = 4096
)

func newParameters(server *apiserver.Server, store storage.Viewer) *parameters {
	p := &parameters{server: server, store: store, known: map[paramKey]paramVersion{}, lists: map[listKey]paramList{}}
	p.kinds.Store(&paramKinds{})
	return p
}

// resource returns the resource of the parameters of a policy, nil if it has none. A kind
// that is not served is an error.
func (p *parameters) resource(d *definition) (*resource.Resource, error) {
	if d.paramKind == nil {
		return nil, nil // the policy has no parameters
	}
	kinds, generation := p.kinds.Load(), p.server.Generation()
	if kinds.generation != generation {
		kinds = &paramKinds{generation: generation}
		p.kinds.Store(kinds)
	}
	known, ok := kinds.resources.Load(d.params)
	if !ok {
		known = p.find(d.params)
		kinds.resources.Store(d.params, known)
	}
	if r := known.(*resource.Resource); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", d.params)
}

func (p *parameters) find(kind schema.GroupVersionKind) *resource.Resource {
	for _, r := range p.server.Resources() {
		if r.Group != kind.Group || r.Kind != kind.Kind || r.Storage.Bucket == "" {
			continue
		}
		for i := range r.Versions {
			if v := &r.Versions[i]; v.Name == kind.Version && !v.NotServed {
				return r
			}
		}
	}
	return nil
}

// of returns the parameters with which a policy is evaluated for a binding: a single nil
// if it has none. No parameters without an error: the policy is not evaluated. namespace is
// that of the write. Errors are in the words of kube-apiserver.
func (p *parameters) of(ctx context.Context, d *definition, r *resource.Resource, b *binding, namespace string) ([]*param, error) {
	if r == nil || b.ref == nil {
		return []*param{nil}, nil
	}
	if r.Namespaced {
		if b.ref.Namespace != "" {
			namespace = b.ref.Namespace
		} else if namespace == "" {
			return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
		}
	} else if b.ref.Namespace != "" {
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	}
	var found []*param
	var err error
	switch {
	case b.ref.Name != "" && b.ref.Selector != nil:
		return nil, errors.New("paramRef.name and paramRef.selector are mutually exclusive")
	case b.ref.Name != "":
		found, err = p.get(ctx, r, d.params, r.Key(namespace, b.ref.Name))
	case b.broken != nil:
		return nil, b.broken
	case b.selector != nil:
		found, err = p.list(ctx, r, d.params, namespace, b)
	default:
		return nil, errors.New("one of name or selector must be provided")
	}
	if err != nil {
		return nil, err
	}
	if a := b.ref.ParameterNotFoundAction; len(found) == 0 && a != nil && *a == v1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return found, nil
}

func (p *parameters) get(ctx context.Context, r *resource.Resource, kind schema.GroupVersionKind, key storage.Key) ([]*param, error) {
	rec := p.store.Get(key)
	if rec == nil {
		return nil, nil
	}
	one, err := p.decode(ctx, r, kind, rec)
	if err != nil {
		return nil, err
	}
	return []*param{one}, nil
}

// list returns the objects of a namespace that a binding selects, by name.
func (p *parameters) list(ctx context.Context, r *resource.Resource, kind schema.GroupVersionKind, namespace string, b *binding) ([]*param, error) {
	at := listKey{generation: p.server.Generation(), kind: kind, selector: b.ref}
	if r.Namespaced {
		at.prefix = namespace + "/"
	}
	touched := p.store.LastModified(r.Storage.Bucket)
	p.mu.Lock()
	known, ok := p.lists[at]
	p.mu.Unlock()
	if ok && known.touched == touched {
		return known.params, nil
	}
	view := p.store.Latest()
	var out []*param
	for rec := range view.Ascend(r.Storage.Bucket, at.prefix, "") {
		if !selects(b.selector, rec) {
			continue
		}
		one, err := p.decode(ctx, r, kind, rec)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lists) >= mostParamLists {
		clear(p.lists)
	}
	p.lists[at] = paramList{touched, out} // or newer: then it is read again
	return out, nil
}

// selects reports whether a stored object has the labels.
func selects(selector labels.Selector, rec *storage.Record) bool {
	if selector.Empty() {
		return true
	}
	var meta struct {
		Metadata struct{ Labels map[string]string }
	}
	return json.Unmarshal(rec.Value, &meta) == nil && selector.Matches(labels.Set(meta.Metadata.Labels))
}

// decode returns a stored object in the version of paramKind.
func (p *parameters) decode(ctx context.Context, r *resource.Resource, kind schema.GroupVersionKind, rec *storage.Record) (*param, error) {
	at := paramKey{p.server.Generation(), kind, rec.Key}
	p.mu.Lock()
	v, ok := p.known[at]
	p.mu.Unlock()
	if ok && v.modified == rec.Modified {
		return v.param, nil
	}
	objects, err := p.server.Decode(ctx, r.GroupResource().WithVersion(kind.Version), rec)
	if err != nil {
		return nil, err
	}
	obj := objects[0]
	value, err := match.Content(obj)
	if err != nil {
		return nil, err
	}
	if value["kind"] == nil || value["apiVersion"] == nil {
		value["apiVersion"], value["kind"] = kind.GroupVersion().String(), kind.Kind
	}
	one := &param{namespace: obj.GetNamespace(), name: obj.GetName(), value: value}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += len(rec.Value) - p.known[at].bytes
	if p.bytes > mostParamBytes {
		clear(p.known)
		p.bytes = len(rec.Value)
	}
	p.known[at] = paramVersion{rec.Modified, one, len(rec.Value)}
	return one, nil
}
