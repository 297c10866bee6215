// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
)

// wipeSystemFields removes what only the server sets.
func wipeSystemFields(obj resource.Object) {
	obj.SetCreationTimestamp(metav1.Time{})
	obj.SetUID("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
}

// fillSystemFields makes an object that does not exist yet somebody.
func (g *Registry) fillSystemFields(obj resource.Object) {
	obj.SetCreationTimestamp(now())
	obj.SetUID(g.identity.UID())
}

// now is the time as objects carry it: in whole seconds.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// The lengths of a generated name.
const (
	maxNameLength   = 63
	suffixLength    = 5
	maxPrefixLength = maxNameLength - suffixLength
	maxNameAttempts = 8
)

func (g *Registry) generateName(prefix string) string {
	if len(prefix) > maxPrefixLength {
		prefix = prefix[:maxPrefixLength]
	}
	return prefix + g.identity.Suffix(suffixLength)
}

// SettleNamespace gives an object the namespace of its request.
func SettleNamespace(req *resource.Request, in *Served, obj resource.Object) error {
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

// DedupOwners removes repeated owner references from what a client sent, with a
// warning.
func DedupOwners(req *resource.Request, obj resource.Object) { dedupOwners(req, obj, duplicateOwners) }

// dedupOwners removes repeated owner references, with a warning.
func dedupOwners(req *resource.Request, obj resource.Object, warning string) {
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

// validateNew checks an object that is to be created. Where its kind does not look at
// metadata, nothing is said of it before all else is right.
//
// tracked tells that the record of field owners is the server's own work, and not worth
// the time to check it.
func (in *Served) validateNew(ctx context.Context, by resource.Strategy, obj resource.Object, tracked bool) field.ErrorList {
	rule, last := in.nameRule(), false
	if updates, _ := repeats(by); updates == 0 {
		rule, last = segment, true
	}
	metadata := func() field.ErrorList {
		if tracked && in.plainMetadata(obj, nil) {
			return nil
		}
		return apivalidation.ValidateObjectMetaAccessor(recorded(obj, tracked), in.Namespaced, rule, field.NewPath("metadata"))
	}
	if last {
		if errs := by.Validate(ctx, obj, nil); len(errs) > 0 {
			return errs
		}
		return metadata()
	}
	return append(metadata(), by.Validate(ctx, obj, nil)...)
}

// validateChangedMetadata checks the metadata of an update; by says what is repeated.
func (in *Served) validateChangedMetadata(by resource.Strategy, obj, old resource.Object, tracked bool) field.ErrorList {
	if tracked && in.plainMetadata(obj, old) {
		return nil
	}
	path, meta := field.NewPath("metadata"), recorded(obj, tracked)
	update := apivalidation.ValidateObjectMetaAccessorUpdate(meta, old, path)
	errs := append(apivalidation.ValidateObjectMetaAccessor(meta, in.Namespaced, segment, path), update...)
	updates, creations := repeats(by)
	for range updates {
		errs = append(errs, update...)
	}
	for range creations {
		errs = append(errs, apivalidation.ValidateObjectMetaAccessor(meta, in.Namespaced, in.nameRule(), path)...)
	}
	return errs
}

// metadataErrorRepeater may be implemented by a [resource.Strategy]. In kube-apiserver
// several layers validate the metadata of an update, and each adds its errors; kinds
// differ in how many of their own do.
type metadataErrorRepeater interface {
	// MetadataErrorRepeats returns how many more times the errors of an update are
	// listed, and those that a creation would have as well.
	MetadataErrorRepeats() (update, creation int)
}

// repeats returns what the strategy asks for. Without it the errors of updates are
// listed once more.
func repeats(by resource.Strategy) (update, creation int) {
	if r, ok := by.(metadataErrorRepeater); ok {
		return r.MetadataErrorRepeats()
	}
	return 1, 0
}

// nameRule is what the names of the resource have to be.
func (in *Served) nameRule() apivalidation.ValidateNameFunc {
	if in.NameRule != nil {
		return in.NameRule
	}
	return apivalidation.NameIsDNSSubdomain
}

// segment is what all names have to be, and prefixes of names that are not new.
func segment(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// recorded is the metadata to check.
func recorded(obj resource.Object, tracked bool) metav1.Object {
	if tracked {
		return unrecorded{obj}
	}
	return obj
}

// plainMetadata reports whether the metadata of an object is certainly valid.
func (in *Served) plainMetadata(obj, old resource.Object) bool {
	name := wire.PlainSubdomain
	if rule := in.NameRule; rule != nil {
		name = func(text string) bool { return len(rule(text, false)) == 0 }
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		if in.NameRule != nil && obj.GetGenerateName() != "" {
			return false // what a prefix has to be is another rule
		}
		var before metav1.Object
		if old != nil {
			before = old
		}
		return wire.PlainTypedMetadata(obj, before, in.Namespaced, name)
	}
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return false
	}
	var before map[string]any
	if old != nil {
		was, ok := old.(*unstructured.Unstructured)
		if !ok {
			return false
		}
		if before, ok = was.Object["metadata"].(map[string]any); !ok {
			return false
		}
	}
	return wire.PlainMetadata(metadata, before, in.Namespaced, name)
}

// unrecorded is an object without its record of field owners.
type unrecorded struct{ metav1.Object }

func (unrecorded) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

// keepSystemFields carries over what an update cannot change.
func keepSystemFields(obj, old resource.Object) {
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
