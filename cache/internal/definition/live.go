// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/steer-dev/steer/cache/internal/listing"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

// Answer is that of a list; the objects are shared. How is Unknown where the server has
// answered.
type Answer struct {
	Found    []client.Object
	How      store.Answer
	Revision string
}

// Fetch reads an object from the server; observers do not see the requests. A nil object is not there, or not part of what
// is watched; revision is then the one at which it was not, or empty.
func (d *Definition) Fetch(ctx context.Context, live client.Reader, key client.ObjectKey) (obj client.Object, revision string, err error) {
	if d.ServerSelects() {
		return d.FetchListed(ctx, live, key)
	}
	obj = d.newObject()
	err = live.Get(client.Unobserved(ctx), key, obj, client.Live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	}
	if revision = obj.GetResourceVersion(); d.Selects(obj) != Selected {
		return nil, revision, nil
	}
	obj, err = d.Prepared(obj)
	return obj, revision, err
}

// FetchListed is Fetch by a list of one object: it has a revision also if there is none,
// and the server selects.
func (d *Definition) FetchListed(ctx context.Context, live client.Reader, key client.ObjectKey) (obj client.Object, revision string, err error) {
	listed, err := d.FetchAll(ctx, live, &client.ListOptions{Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return nil, "", err
	}
	obj, revision = stateAt(listed, key)
	return obj, revision, nil
}

// stateAt is what a list has of key: the object with its revision, or nothing at that of
// the list.
func stateAt(listed *store.Store, key client.ObjectKey) (obj client.Object, revision string) {
	if obj, _ = listed.Get(key); obj != nil {
		return obj, obj.GetResourceVersion()
	}
	return nil, listed.RevisionOf(key.Namespace)
}

// FetchAll lists, unseen by observers as well, from the server into a store of its own, which answers as that of an
// informer does. narrow has the namespace, and selectors that the server knows.
func (d *Definition) FetchAll(ctx context.Context, live client.Reader, narrow *client.ListOptions) (*store.Store, error) {
	namespaces, err := d.namespaces(ctx, narrow.Namespace)
	if err != nil {
		return nil, err
	}
	into := store.New(namespaces...)
	for field, fn := range d.Indexes() {
		if err := into.AddIndex(listing.FieldIndex(field), fn); err != nil {
			return nil, err
		}
	}
	for scope, namespace := range namespaces {
		list, err := d.newList()
		if err != nil {
			return nil, err
		}
		o := client.ListOptions{LabelSelector: d.Labels, FieldSelector: d.Fields}
		narrow.ApplyToList(&o)
		o.Namespace, o.Live = namespace, true
		if err := live.List(client.Unobserved(ctx), list, &o); err != nil {
			return nil, err
		}
		deltas := []store.Delta{{Op: store.ListBegin, Scope: scope}}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			obj, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T has no object metadata", item)
			}
			obj, err := d.Prepared(obj)
			deltas = append(deltas, store.Delta{Op: store.PutListed, Scope: scope, Object: obj})
			return err
		})
		if err != nil {
			return nil, err
		}
		into.Commit(append(deltas, store.Delta{Op: store.ListEnd, Scope: scope, Revision: list.GetResourceVersion()}), nil)
	}
	return into, nil
}

// Ask answers a list by the server. A field of which there is no index is the server's.
func (d *Definition) Ask(ctx context.Context, live client.Reader, o *client.ListOptions) (Answer, error) {
	own, servers := d.FieldsOf(o)
	listed, err := d.FetchAll(ctx, live, &client.ListOptions{Namespace: o.Namespace, LabelSelector: o.LabelSelector, FieldSelector: servers})
	if err != nil {
		return Answer{}, err
	}
	here := *o
	here.FieldSelector = own
	answer, err := d.Query(listed, &here)
	answer.How = store.Unknown
	return answer, err
}

// FieldsOf divides the field selector of a list: what indexes of the cache answer, and
// what the server does.
func (d *Definition) FieldsOf(o *client.ListOptions) (own, servers fields.Selector) {
	if o.FieldSelector == nil {
		return nil, nil
	}
	indexes := d.Indexes()
	var ours, others []fields.Selector
	for _, r := range o.FieldSelector.Requirements() {
		term := fields.OneTermEqualSelector(r.Field, r.Value)
		if r.Operator == selection.NotEquals {
			term = fields.OneTermNotEqualSelector(r.Field, r.Value)
		}
		if _, indexed := indexes[r.Field]; indexed || r.Field == store.OwnerIndex {
			ours = append(ours, term)
		} else {
			others = append(others, term)
		}
	}
	if len(ours) > 0 {
		own = fields.AndSelectors(ours...)
	}
	if len(others) > 0 {
		servers = fields.AndSelectors(others...)
	}
	return own, servers
}

// Query answers a list from a store that the definition holds for.
func (d *Definition) Query(from *store.Store, o *client.ListOptions) (Answer, error) {
	q, err := listing.Query(from, o)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{}
	a.Revision, _ = from.Revision()
	a.Found, a.How = from.Select(q, nil)
	return a, nil
}
