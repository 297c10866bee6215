// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/resource"
)

// ownership makes the trackers of field ownership of one definition.
type ownership struct {
	kind     schema.GroupKind
	types    *apply.Types
	versions []schema.GroupVersion
	// owned and set are the fields that a write to the object, or to its status,
	// cannot change, by API version.
	owned, set map[string]*fieldpath.Set
	// replicas is where each API version counts its replicas.
	replicas map[string]fieldpath.Path
	// convert returns an object in another version; nil: versions differ in apiVersion alone.
	convert func(ctx context.Context, obj apply.Object, to schema.GroupVersion) (apply.Object, error)
}

// ownershipOf returns the trackers of a definition.
func ownershipOf(crd *v1.CustomResourceDefinition, with Options) (*ownership, error) {
	o := &ownership{
		kind:  schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Status.AcceptedNames.Kind},
		owned: map[string]*fieldpath.Set{}, set: map[string]*fieldpath.Set{}, replicas: map[string]fieldpath.Path{},
	}
	schemas := map[string]*Schema{}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		s, err := with.Schemas.Of(v)
		if err != nil {
			return nil, err
		}
		schemas[v.Name] = s
		gv := schema.GroupVersion{Group: o.kind.Group, Version: v.Name}
		o.versions = append(o.versions, gv)
		o.replicas[gv.String()] = nil // entries of versions without a scale are kept as well
		if v.Subresources == nil {
			continue
		}
		if v.Subresources.Status != nil {
			o.owned[gv.String()] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
			o.set[gv.String()] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
		}
		if v.Subresources.Scale != nil {
			var path fieldpath.Path
			for _, name := range fieldsOf(v.Subresources.Scale.SpecReplicasPath) {
				path = append(path, fieldpath.PathElement{FieldName: &name})
			}
			o.replicas[gv.String()] = path
		}
	}
	o.types = with.Schemas.typesOf(o.kind, schemas)
	if with.Convert != nil {
		o.convert = with.Convert.one
	}
	return o, nil
}

// object returns the tracker for writes to objects in a version.
func (o *ownership) object(version string) *apply.FieldManager {
	return apply.New(apply.Endpoint{Kind: o.kind.WithVersion(version), Types: o.types, Resets: o.owned, Versions: o.versions, Convert: o.convert})
}

// status returns the tracker for writes to their status.
func (o *ownership) status(version string) *apply.FieldManager {
	return apply.New(apply.Endpoint{Kind: o.kind.WithVersion(version), Types: o.types, Resets: o.set, Versions: o.versions, Convert: o.convert, Subresource: "status"})
}

// action returns the tracker for what an action of a name changes.
func (o *ownership) action(version, name string) *apply.FieldManager {
	return apply.New(apply.Endpoint{Kind: o.kind.WithVersion(version), Types: o.types, Versions: o.versions, Convert: o.convert, Subresource: name})
}

// scale returns the tracker for writes to their scale.
func (o *ownership) scale(version string) scaleOwnership {
	return scaleOwnership{apply.NewScale(schema.GroupVersion{Group: o.kind.Group, Version: version}, o.replicas)}
}

// scaleOwnership tracks writes to the scale of custom resources.
type scaleOwnership struct{ *apply.Scale }

// Apply refuses, as Kubernetes does, an object that does not exist: to say whose a count is
// that has no owner, it would need to convert the Scale of a custom resource.
func (s scaleOwnership) Apply(ctx context.Context, live resource.Object, applied *resource.Doc, manager string, force bool) (resource.Object, error) {
	if len(live.GetManagedFields()) == 0 && applied.GetObjectKind().GroupVersionKind() == autoscalingv1.SchemeGroupVersion.WithKind("Scale") {
		return nil, errors.New("failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to proper version: " +
			"request to convert CR to an invalid group/version: autoscaling/v1")
	}
	return s.Scale.Apply(ctx, live, applied, manager, force)
}

// typesOf returns the merge types of a kind in all its versions.
func (s *Schemas) typesOf(kind schema.GroupKind, versions map[string]*Schema) *apply.Types {
	hash := sha256.New()
	names := slices.Sorted(maps.Keys(versions))
	for _, part := range []string{kind.Group, kind.Kind} {
		_, _ = io.WriteString(hash, part+"\x00") // a hash does not fail
	}
	for _, name := range names {
		_, _ = io.WriteString(hash, name+"\x00")
		_, _ = hash.Write(versions[name].id[:])
	}
	id := digest(hash.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.types[id]; known != nil {
		return known
	}
	if len(s.types) >= keptSchemas {
		clear(s.types)
	}
	types := apply.FromOpenAPI(func() map[string]*spec.Schema {
		definitions := map[string]*spec.Schema{apply.ObjectMetaName: apply.ObjectMeta()}
		for _, name := range names {
			definitions[kind.Group+"."+name+"."+kind.Kind] = apply.Kind(kind.WithVersion(name), versions[name].OpenAPI())
		}
		return definitions
	})
	s.types[id] = types
	return types
}
