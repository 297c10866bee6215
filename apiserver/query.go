// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// parameters decodes the query of a request into an options object.
func parameters(req *request, into runtime.Object) error {
	if err := listscheme.ParameterCodec.DecodeParameters(req.query(), metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func createOptions(req *request) (*metav1.CreateOptions, error) {
	o := &metav1.CreateOptions{}
	if err := parameters(req, o); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	return o, invalidOptions("CreateOptions", metavalidation.ValidateCreateOptions(o))
}

func updateOptions(req *request) (*metav1.UpdateOptions, error) {
	o := &metav1.UpdateOptions{}
	if err := parameters(req, o); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
	return o, invalidOptions("UpdateOptions", metavalidation.ValidateUpdateOptions(o))
}

func patchOptions(req *request, t types.PatchType) (*metav1.PatchOptions, error) {
	o := &metav1.PatchOptions{}
	if err := parameters(req, o); err != nil {
		return nil, err
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PatchOptions"))
	return o, invalidOptions("PatchOptions", metavalidation.ValidatePatchOptions(o, t))
}

// listOptions are the options of a list, a watch or a deletecollection, checked,
// with what they select.
func listOptions(req *request) (*internalversion.ListOptions, *selection, error) {
	o := &internalversion.ListOptions{}
	if err := parameters(req, o); err != nil {
		return nil, nil, err
	}
	if req.Verb == "watch" {
		o.Watch = true // also by the /watch/ prefix
	}
	internalversion.SetListOptionsDefaults(o, true)
	if err := invalidOptions("ListOptions", listvalidation.ValidateListOptions(o, true)); err != nil {
		return nil, nil, err
	}
	if req.target.Name != "" { // the /watch/ prefix with a name
		if selected := o.FieldSelector; selected != nil && !selected.Empty() {
			if name, ok := selected.RequiresExactMatch("metadata.name"); !ok || name != req.target.Name {
				return nil, nil, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
			}
		} else {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", req.target.Name)
		}
	}
	selection, err := newSelection(req, o)
	return o, selection, err
}

// selection decides which records a request is about. It reads no more of a
// record than its selectors name.
type selection struct {
	labels labels.Selector
	fields fields.Requirements
	// read returns the fields that no stored byte tells, by path.
	read map[string]resource.SelectableField
	in   *installed
	v    *resource.Version
	s    *Server
	// namespace and name that records must have; empty for any.
	namespace, name string
}

func newSelection(req *request, o *internalversion.ListOptions) (*selection, error) {
	sel := &selection{in: req.in, v: req.Version}
	if req.in.Namespaced {
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
		default:
			selectable, ok := req.Version.SelectableField(r.Field)
			if !ok && req.Version.Typed() && len(req.Version.Selectable) == 0 {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only %q, %q", r.Field, "metadata.name", "metadata.namespace"))
			}
			if !ok {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
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

func isEqual(r fields.Requirement) bool { return r.Operator == "=" || r.Operator == "==" }

// everything tells whether no selector narrows the selection.
func (sel *selection) everything() bool {
	return sel.labels == nil && len(sel.fields) == 0 && sel.name == ""
}

// key returns the one record that can be selected, if the selection names it.
func (sel *selection) key() (storage.Key, bool) {
	if sel.name == "" || sel.in.Namespaced && sel.namespace == "" {
		return storage.Key{}, false
	}
	return sel.in.Key(sel.namespace, sel.name), true
}

// prefix of the names of the records.
func (sel *selection) prefix() string {
	if sel.namespace == "" {
		return ""
	}
	return sel.namespace + "/"
}

// matches tells whether a record is selected.
func (sel *selection) matches(rec *storage.Record) bool {
	if sel.everything() {
		return true
	}
	m := &project(rec).meta
	if sel.name != "" && m.Name != sel.name || sel.labels != nil && !sel.labels.Matches(m.Labels) {
		return false
	}
	if len(sel.fields) == 0 {
		return true
	}
	var obj resource.Object // decoded when a field needs it
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
			case f.Keys != nil && sel.in.asStored(rec, sel.v):
				value = wire.Scalar(rec.Value, f.Keys...)
			default:
				if obj == nil {
					decoded, err := sel.s.object(sel.s.stopping, sel.in, sel.v, rec)
					if err != nil {
						return false
					}
					obj = decoded
				}
				value = f.Value(obj)
			}
		}
		if (value == r.Value) != isEqual(r) {
			return false
		}
	}
	return true
}

// parseRevision reads a resourceVersion; empty and "0" are 0.
func parseRevision(text string) (storage.Revision, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: Invalid value: %q: %w", text, err)
	}
	return storage.Revision(n), nil
}
