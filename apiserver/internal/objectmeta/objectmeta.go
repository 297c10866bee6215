// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objectmeta has the rules of the metadata of objects: what clients cannot set or
// change, and what is valid. It is a package because the rules stand by themselves: they need
// no store.
package objectmeta

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/fastname"
)

// Wipe removes the fields that only the server sets.
func Wipe(obj resource.Object) {
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetUID("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
}

// EnsureName refuses an object whose name is not the one in the path.
func EnsureName(req *resource.Request, obj resource.Object) error {
	if obj.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", req.Name))
	}
	if obj.GetName() != req.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), req.Name))
	}
	return nil
}

// EnsureNamespace sets the namespace of an object to that of its request, or returns an
// error if they differ.
func EnsureNamespace(req *resource.Request, in *resource.Resource, obj resource.Object) error {
	namespace := req.Namespace
	if !in.Namespaced {
		namespace = ""
	}
	switch obj.GetNamespace() {
	case namespace:
	case "":
		obj.SetNamespace(namespace)
	default:
		if namespace != "" {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		obj.SetNamespace("")
	}
	return nil
}

const (
	duplicateOwners = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
	duplicateAfter  = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %v"
)

// DedupOwnerReferences removes repeated owner references of a request body, with a
// warning.
func DedupOwnerReferences(req *resource.Request, obj resource.Object) {
	dedup(req, obj, duplicateOwners)
}

// DedupAdmitted removes repeated owner references that admission has left, with a warning.
func DedupAdmitted(req *resource.Request, obj resource.Object) { dedup(req, obj, duplicateAfter) }

func dedup(req *resource.Request, obj resource.Object, warning string) {
	refs := obj.GetOwnerReferences()
	if len(refs) < 2 {
		return
	}
	var kept []metav1.OwnerReference
	var repeated []string
	seen := map[types.UID]bool{}
	for _, ref := range refs {
		if seen[ref.UID] && containsOwner(kept, ref) {
			repeated = append(repeated, string(ref.UID))
			continue
		}
		seen[ref.UID] = true
		kept = append(kept, ref)
	}
	if len(repeated) > 0 {
		req.Warn(fmt.Sprintf(warning, strings.Join(repeated, ", ")))
		obj.SetOwnerReferences(kept)
	}
}

func containsOwner(refs []metav1.OwnerReference, ref metav1.OwnerReference) bool {
	for _, r := range refs {
		if apiequality.Semantic.DeepEqual(r, ref) {
			return true
		}
	}
	return false
}

// ValidateNew validates an object that is to be created. A kind that lists errors of
// metadata once has its metadata validated only if there are no other errors.
//
// tracked is set if the server itself made managedFields; they are then not validated.
func ValidateNew(ctx context.Context, in *resource.Resource, by resource.Strategy, list resource.MetadataErrors, obj resource.Object, tracked bool) field.ErrorList {
	rule := nameRule(in)
	if list.Once {
		rule = pathSegment
	}
	metadata := func() field.ErrorList {
		if tracked && fastValid(in, obj, nil) {
			return nil
		}
		return apivalidation.ValidateObjectMetaAccessor(metadataToValidate(obj, tracked), in.Namespaced, rule, field.NewPath("metadata"))
	}
	if list.Once {
		if errs := by.Validate(ctx, obj, nil); len(errs) > 0 {
			return errs
		}
		return metadata()
	}
	return append(metadata(), by.Validate(ctx, obj, nil)...)
}

// ValidateChanged validates the metadata of an update.
func ValidateChanged(in *resource.Resource, list resource.MetadataErrors, obj, old resource.Object, tracked bool) field.ErrorList {
	if tracked && fastValid(in, obj, old) {
		return nil
	}
	path, meta := field.NewPath("metadata"), metadataToValidate(obj, tracked)
	if old.GetResourceVersion() == "" {
		meta = withoutRevisions{meta}
	}
	update := apivalidation.ValidateObjectMetaAccessorUpdate(meta, old, path)
	errs := append(apivalidation.ValidateObjectMetaAccessor(meta, in.Namespaced, pathSegment, path), update...)
	if list.Once {
		return errs
	}
	errs = append(errs, update...)
	if list.RepeatCreation {
		errs = append(errs, apivalidation.ValidateObjectMetaAccessor(meta, in.Namespaced, nameRule(in), path)...)
	}
	return errs
}

// nameRule returns the rule for names of the resource.
func nameRule(in *resource.Resource) apivalidation.ValidateNameFunc {
	if in.NameRule != nil {
		return in.NameRule
	}
	return apivalidation.NameIsDNSSubdomain
}

// pathSegment is the rule that all names follow, and generateName prefixes of existing
// objects.
func pathSegment(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// metadataToValidate returns the metadata to validate.
func metadataToValidate(obj resource.Object, tracked bool) metav1.Object {
	if tracked {
		return withoutManagedFields{obj}
	}
	return obj
}

// fastValid reports whether the metadata of an object is certainly valid.
//
//steer:fast names
func fastValid(in *resource.Resource, obj, old resource.Object) bool {
	name := fastname.Subdomain
	if rule := in.NameRule; rule != nil {
		name = func(text string) bool { return len(rule(text, false)) == 0 }
	}
	d, ok := obj.(*resource.Doc)
	if !ok {
		if in.NameRule != nil && obj.GetGenerateName() != "" {
			return false // what a prefix has to be is another rule
		}
		var before metav1.Object
		if old != nil {
			before = old
		}
		return FastTypedMetadata(obj, before, in.Namespaced, name)
	}
	metadata, ok := doc.Metadata(d)
	if !ok {
		return false
	}
	var before map[string]any
	if old != nil {
		was, ok := old.(*resource.Doc)
		if !ok {
			return false
		}
		if before, ok = doc.Metadata(was); !ok {
			return false
		}
	}
	return FastMetadata(metadata, before, in.Namespaced, name)
}

// withoutManagedFields is an object that shows no managedFields.
type withoutManagedFields struct{ metav1.Object }

func (withoutManagedFields) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

// withoutRevisions is an object of a backend that has no revisions, and therefore needs none
// in an update.
type withoutRevisions struct{ metav1.Object }

func (withoutRevisions) GetResourceVersion() string { return "1" }

// Keep copies the fields that an update cannot change.
func Keep(obj, old resource.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		obj.SetCreationTimestamp(created)
	}
	if deleted := old.GetDeletionTimestamp(); deleted != nil {
		obj.SetDeletionTimestamp(deleted)
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(grace)
	}
}

// Distinct returns the errors without those that say again what one before them says:
// several layers of kube-apiserver validate the same object, and for built-in kinds it lists
// each error once.
func Distinct(errs field.ErrorList) field.ErrorList {
	if len(errs) < 2 {
		return errs
	}
	seen := make(map[string]bool, len(errs))
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		text := err.Error()
		again := seen[text]
		seen[text] = true
		return again
	})
}
