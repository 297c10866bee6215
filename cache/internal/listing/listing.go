// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listing answers lists from a store as the API server does: it turns list options
// into a query, fills the list with copies, and makes continue tokens.
package listing

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/steer-dev/steer/cache/internal/form"
	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
)

// labelIndexFrom is the number of objects from which an index of a label pays.
const labelIndexFrom = 128

// UnindexedError is a selection by a field that the store has no index of.
type UnindexedError struct{ Field string }

func (e *UnindexedError) Error() string {
	return fmt.Sprintf("the store has no index of the field %q", e.Field)
}

// FieldIndex is the name of the index of a field.
func FieldIndex(field string) string { return "field/" + field }

// Query returns the query of a store that selects what list options select. It makes the
// indexes of labels that pay.
func Query(s *store.Store, o *client.ListOptions) (store.Query, error) {
	if err := o.Err(); err != nil {
		return store.Query{}, err
	}
	q := store.Query{Namespace: o.Namespace}
	var checks []func(client.Object) bool
	if sel := o.LabelSelector; sel != nil && !sel.Empty() {
		labelTerms(s, sel, &q)
		checks = append(checks, func(obj client.Object) bool { return sel.Matches(labels.Set(obj.GetLabels())) })
	}
	if sel := o.FieldSelector; sel != nil && !sel.Empty() {
		more, err := fieldTerms(s, sel.Requirements(), &q)
		if err != nil {
			return q, err
		}
		checks = append(checks, more...)
	}
	if o.Continue != "" {
		after, err := continueKey(o.Continue)
		if err != nil {
			return q, err
		}
		checks = append(checks, func(obj client.Object) bool {
			if ns := obj.GetNamespace(); ns != after.Namespace {
				return ns > after.Namespace
			}
			return obj.GetName() > after.Name
		})
	}
	switch len(checks) {
	case 0:
	case 1:
		q.Match = checks[0]
	default:
		q.Match = func(obj client.Object) bool {
			for _, check := range checks {
				if !check(obj) {
					return false
				}
			}
			return true
		}
	}
	return q, nil
}

// labelTerms narrows q by the labels that must have one value.
func labelTerms(s *store.Store, sel labels.Selector, q *store.Query) {
	if objects, _ := s.Len(); objects < labelIndexFrom {
		return
	}
	requirements, _ := sel.Requirements()
	for _, r := range requirements {
		if op := r.Operator(); op != selection.Equals && op != selection.DoubleEquals && op != selection.In || r.Values().Len() != 1 {
			continue
		}
		label := r.Key()
		s.EnsureIndex(store.LabelIndex(label), func(obj client.Object) []string {
			if v, ok := obj.GetLabels()[label]; ok {
				return []string{v}
			}
			return nil
		})
		q.Terms = append(q.Terms, store.Term{Index: store.LabelIndex(label), Value: r.Values().UnsortedList()[0]})
	}
}

func fieldTerms(s *store.Store, requirements fields.Requirements, q *store.Query) ([]func(client.Object) bool, error) {
	var checks []func(client.Object) bool
	for _, r := range requirements {
		not := r.Operator == selection.NotEquals
		switch {
		case r.Field == "metadata.name":
			checks = append(checks, func(obj client.Object) bool { return (obj.GetName() == r.Value) != not })
		case r.Field == "metadata.namespace", r.Field == store.OwnerIndex:
			q.Terms = append(q.Terms, store.Term{Index: r.Field, Value: r.Value, Not: not})
		case s.HasIndex(FieldIndex(r.Field)):
			q.Terms = append(q.Terms, store.Term{Index: FieldIndex(r.Field), Value: r.Value, Not: not})
		default:
			return nil, &UnindexedError{r.Field}
		}
	}
	return checks, nil
}

// SetItems fills a list with private copies.
func SetItems(list client.ObjectList, found []client.Object) error {
	items, err := codec.ItemsOf(list)
	if err != nil {
		return err
	}
	elem := items.Type().Elem()
	out := reflect.MakeSlice(items.Type(), len(found), len(found))
	to := make([]client.Object, len(found))
	for i := range found {
		at := out.Index(i)
		if elem.Kind() == reflect.Pointer {
			at.Set(reflect.New(elem.Elem()))
		} else {
			at = at.Addr()
		}
		var ok bool
		if to[i], ok = at.Interface().(client.Object); !ok {
			return fmt.Errorf("items of %T are not objects", list)
		}
	}
	if err := form.CopyAll(to, found); err != nil {
		return err
	}
	items.Set(out)
	return nil
}

// ContinueAfter returns the continue token of a list that ends with an object: its key.
func ContinueAfter(last client.Object) string {
	return base64.RawURLEncoding.EncodeToString([]byte("cache/" + last.GetNamespace() + "/" + last.GetName()))
}

func continueKey(token string) (client.ObjectKey, error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	rest, ok := strings.CutPrefix(string(data), "cache/")
	namespace, name, cut := strings.Cut(rest, "/")
	if err != nil || !ok || !cut {
		return client.ObjectKey{}, fmt.Errorf("the continue token is not one of a cached list: start the list again")
	}
	return client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// ItemKind returns the kind of the items of a list.
func ItemKind(scheme *runtime.Scheme, list client.ObjectList) (schema.GroupVersionKind, error) {
	gvk, err := client.KindOf(scheme, list)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}
