// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// Selection decides which records a request selects. It reads only the fields of a
// record that its selectors name.
type Selection struct {
	labels labels.Selector
	fields fields.Requirements
	// read are the selected fields that cannot be read from the encoded object, by
	// path.
	read map[string]resource.SelectableField
	in   *Served
	v    *resource.Version
	g    *Registry
	// namespace and name that records must have; empty: any.
	namespace, name string
}

// Select returns the selection of a list, a watch or a deletecollection.
func (g *Registry) Select(req *resource.Request, in *Served, o *internalversion.ListOptions) (*Selection, error) {
	sel := &Selection{in: in, v: req.Version, g: g}
	if in.Namespaced {
		sel.namespace = req.Namespace
	}
	if o.LabelSelector != nil && !o.LabelSelector.Empty() {
		sel.labels = o.LabelSelector
	}
	if o.FieldSelector == nil || o.FieldSelector.Empty() {
		return sel, nil
	}
	for _, r := range o.FieldSelector.Requirements() {
		switch r.Field {
		case "metadata.name":
			if isEqual(r) {
				if sel.name != "" && sel.name != r.Value || r.Value == "" {
					sel.fields = append(sel.fields, r)
				} else {
					sel.name = r.Value
				}
				continue
			}
		case "metadata.namespace":
			if !sel.in.Namespaced && (len(req.Version.Selectable) > 0 || !req.Version.Typed()) {
				return nil, refusedField(req.Version, r.Field)
			}
		default:
			selectable, ok := req.Version.SelectableField(r.Field)
			if !ok {
				return nil, refusedField(req.Version, r.Field)
			}
			if sel.read == nil {
				sel.read = map[string]resource.SelectableField{}
			}
			sel.read[r.Field] = selectable
		}
		sel.fields = append(sel.fields, r)
	}
	return sel, nil
}

// refusedField is the error for a field selector that the kind does not support.
func refusedField(v *resource.Version, name string) error {
	switch {
	case v.FieldSelectorMessage != "":
		return apierrors.NewBadRequest(fmt.Sprintf(v.FieldSelectorMessage, name))
	case v.Typed() && len(v.Selectable) == 0:
		return apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only %q, %q", name, "metadata.name", "metadata.namespace"))
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", name))
	}
}

func isEqual(r fields.Requirement) bool { return r.Operator == "=" || r.Operator == "==" }

// Everything reports whether no selector narrows the selection.
func (sel *Selection) Everything() bool {
	return sel.labels == nil && len(sel.fields) == 0 && sel.name == ""
}

// InNamespace reports whether an object of a namespace can be selected. One without a
// namespace is in that of the request.
func (sel *Selection) InNamespace(namespace string) bool {
	return sel.namespace == "" || namespace == "" || namespace == sel.namespace
}

// key returns the key of the only record that can be selected, if the selection names
// it.
func (sel *Selection) key() (storage.Key, bool) {
	if sel.name == "" || sel.in.Namespaced && sel.namespace == "" {
		return storage.Key{}, false
	}
	return sel.in.Key(sel.namespace, sel.name), true
}

// prefix returns the prefix of the names of the selected records.
func (sel *Selection) prefix() string {
	if sel.namespace == "" {
		return ""
	}
	return sel.namespace + "/"
}

// Matches reports whether a record is selected. It fails if the record must be decoded for
// that and cannot be: as in kube-apiserver, the request then fails as a whole.
func (sel *Selection) Matches(ctx context.Context, rec *storage.Record) (bool, error) {
	if sel.Everything() {
		return true, nil
	}
	m := recordcache.Meta(rec)
	if sel.name != "" && m.Name != sel.name || sel.labels != nil && !sel.labels.Matches(m.Labels) {
		return false, nil
	}
	if len(sel.fields) == 0 {
		return true, nil
	}
	var obj resource.Object // decoded if a field needs it
	for _, r := range sel.fields {
		var value string
		switch r.Field {
		case "metadata.name":
			value = m.Name
		case "metadata.namespace":
			value = m.Namespace
		default:
			f := sel.read[r.Field]
			switch {
			case f.Keys != nil && sel.in.IsStoredVersion(rec, sel.v):
				value = jsontext.Scalar(rec.Value, f.Keys...)
			default:
				if obj == nil {
					decoded, err := sel.g.Object(ctx, sel.in, sel.v, rec)
					if err != nil {
						return false, err
					}
					obj = decoded
				}
				value = f.Value(obj)
			}
		}
		if (value == r.Value) != isEqual(r) {
			return false, nil
		}
	}
	return true, nil
}

// storageRange is the range of keys that contains all selected records.
func (sel *Selection) storageRange() storage.Range {
	if key, ok := sel.key(); ok {
		return storage.Range{Bucket: key.Bucket, Prefix: key.Name}
	}
	return storage.Range{Bucket: sel.in.Storage.Bucket, Prefix: sel.prefix()}
}

// Candidates yields the records of a view that the selection must be matched against.
func (sel *Selection) Candidates(view storage.View) iter.Seq[*storage.Record] {
	return func(yield func(*storage.Record) bool) {
		if key, ok := sel.key(); ok {
			if rec := view.Get(key); rec != nil {
				yield(rec)
			}
			return
		}
		for rec := range view.Ascend(sel.in.Storage.Bucket, sel.prefix(), "") {
			if !yield(rec) {
				return
			}
		}
	}
}
