// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/registry"
)

// decodeQuery decodes the query of a request into an options object. Without a query it
// changes nothing.
func decodeQuery(req *Request, into runtime.Object) error {
	if !req.hasQuery() {
		return nil
	}
	if err := listscheme.ParameterCodec.DecodeParameters(req.Query(), metav1.SchemeGroupVersion, into); err != nil {
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

// queryOptions decodes and validates the options of a request. The options of an empty
// query are valid.
func queryOptions[O runtime.Object](req *Request, o O, kind string, check func(O) field.ErrorList) error {
	if !req.hasQuery() {
		return nil
	}
	if err := decodeQuery(req, o); err != nil {
		return err
	}
	return invalidOptions(kind, check(o))
}

func createOptions(req *Request) (*metav1.CreateOptions, error) {
	o := &metav1.CreateOptions{}
	err := queryOptions(req, o, "CreateOptions", metavalidation.ValidateCreateOptions)
	o.TypeMeta = registry.OptionsKind("CreateOptions")
	return o, err
}

func updateOptions(req *Request) (*metav1.UpdateOptions, error) {
	o := &metav1.UpdateOptions{}
	err := queryOptions(req, o, "UpdateOptions", metavalidation.ValidateUpdateOptions)
	o.TypeMeta = registry.OptionsKind("UpdateOptions")
	return o, err
}

func patchOptions(req *Request, t types.PatchType) (*metav1.PatchOptions, error) {
	o := &metav1.PatchOptions{}
	if err := decodeQuery(req, o); err != nil {
		return nil, err
	}
	o.TypeMeta = registry.OptionsKind("PatchOptions")
	return o, invalidOptions("PatchOptions", metavalidation.ValidatePatchOptions(o, t))
}

// listOptions returns the validated options of a list, watch or deletecollection, and
// the selection that they describe.
func (h *Handler) listOptions(req *Request) (*internalversion.ListOptions, *registry.Selection, error) {
	o := &internalversion.ListOptions{}
	if err := decodeQuery(req, o); err != nil {
		return nil, nil, err
	}
	if req.Verb == "watch" {
		o.Watch = true // also by the /watch/ prefix
	}
	internalversion.SetListOptionsDefaults(o, true)
	if err := invalidOptions("ListOptions", listvalidation.ValidateListOptions(o, true)); err != nil {
		return nil, nil, err
	}
	if req.Info.Name != "" { // the /watch/ prefix with a name
		if selected := o.FieldSelector; selected != nil && !selected.Empty() {
			if name, ok := selected.RequiresExactMatch("metadata.name"); !ok || name != req.Info.Name {
				return nil, nil, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
			}
		} else {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", req.Info.Name)
		}
	}
	selection, err := h.registry.Select(&req.Request, req.Served, o)
	return o, selection, err
}
