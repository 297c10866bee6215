// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/crdvalidation"
)

// Kind describes a kind by a definition and by functions on its Go type T, a pointer such
// as *v1.Note. Only Definition is required. Clients may speak protobuf in the versions whose Go
// type has methods Marshal and Unmarshal, as `steer generate` writes them for types marked with
// +protobuf=true.
type Kind[T resource.Object] struct {
	// Definition is a CustomResourceDefinition as YAML or JSON, as `steer generate` writes
	// it. It is not sent to any cluster: names, scope, versions, schemas, columns,
	// selectable fields, status and scale are taken from it.
	Definition []byte
	// Version that T describes. Empty: the storage version.
	Version string
	// Rules in Go; they apply to requests in every version.
	Rules Rules[T]
	// Versions are other versions with Go types of their own, see [Spoke]. The objects of a
	// version that is not listed differ from T in apiVersion alone.
	Versions []Version[T]
	// Subresources besides status and scale, in every version. Those with an action get the
	// object in the version of T; see [Action].
	Subresources []resource.Subresource
	// Backend answers the verbs in place of the server's store; see
	// [resource.Resource.Backend]. Its objects are in the version that T describes,
	// whatever the version of a request, and may be of the Go type T. nil: the store.
	Backend any
	// Update and Deletion are those of [resource.Resource].
	Update   resource.UpdateRules
	Deletion resource.DeletionRules
	// Committed is called after a change is durable and before it is answered, with an
	// object of any version; see [resource.Resource.Committed].
	Committed func(ctx context.Context, change resource.Change) error
}

// Rules are rules on objects of a Go type, in addition to those of the schema. All may be
// nil. old is nil for a creation, and must not be changed.
type Rules[T resource.Object] struct {
	// Default sets fields that the client left out, after the defaults of the schema. It
	// must not change an object that it was called for before.
	Default func(obj T)
	// Prepare sets what clients may not set, the status of a new object included. It sees
	// objects that are not validated yet.
	Prepare func(ctx context.Context, obj, old T)
	// PrepareStatus does the same for writes of the status.
	PrepareStatus func(ctx context.Context, obj, old T)
	// Validate validates an object that the schema accepts.
	Validate func(ctx context.Context, obj, old T) field.ErrorList
	// ValidateStatus does the same for writes of the status.
	ValidateStatus func(ctx context.Context, obj, old T) field.ErrorList
	// Warnings returns warnings about an object that is accepted.
	Warnings func(ctx context.Context, obj, old T) []string
}

func (r *Rules[T]) empty() bool {
	return r.Default == nil && r.Prepare == nil && r.PrepareStatus == nil && r.Validate == nil && r.ValidateStatus == nil && r.Warnings == nil
}

// Resource returns the resource for [apiserver.Server.Install]. Stored objects may be
// older than the definition: the server sets the defaults of those that it finds.
func (k Kind[T]) Resource() (*resource.Resource, error) {
	crd, err := Parse(k.Definition)
	if err != nil {
		return nil, err
	}
	if k.Version == "" {
		k.Version, _ = StorageVersion(crd)
	}
	f, err := k.forms(crd)
	if err != nil {
		return nil, err
	}
	options := Options{Since: resource.SinceInstalled, Schemas: NewSchemas()}
	if len(k.Versions) > 0 {
		options.Convert = f.convert
	}
	r, err := Resource(crd, options)
	if err != nil {
		return nil, err
	}
	r.Backend, r.Update, r.Deletion, r.Committed = k.Backend, k.Update, k.Deletion, k.Committed
	if k.Backend != nil {
		r.Storage.Version = k.Version
	}
	for i := range r.Versions {
		v := &r.Versions[i]
		v.NewMessage = f.of[v.Name].message
		if !k.Rules.empty() {
			v.Strategy.(*strategy).hooks = &typed[T]{rules: k.Rules, form: f.of[v.Name]}
		}
	}
	below, err := k.subresources(crd, r, options)
	if err != nil {
		return nil, err
	}
	for i := range r.Versions {
		r.Versions[i].Subresources = append(r.Versions[i].Subresources, below...)
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r, nil
}

// subresources returns those besides status and scale. Actions get the object in the version
// of T, and what they change has the rules of the kind.
func (k Kind[T]) subresources(crd *v1.CustomResourceDefinition, r *resource.Resource, o Options) ([]resource.Subresource, error) {
	below := slices.Clone(k.Subresources)
	if !slices.ContainsFunc(below, func(sub resource.Subresource) bool { return sub.Action != nil }) {
		return below, nil
	}
	at := slices.IndexFunc(r.Versions, func(v resource.Version) bool { return v.Name == k.Version })
	if at < 0 {
		return nil, fmt.Errorf("custom: the definition %s neither serves nor stores the version %q, which the actions need: correct Kind.Version", crd.Name, k.Version)
	}
	owners, err := ownershipOf(crd, o)
	if err != nil {
		return nil, err
	}
	for i := range below {
		if sub := &below[i]; sub.Action != nil && sub.Target == nil {
			sub.Target = &resource.Target{
				Version: k.Version, Strategy: actionStrategy{r.Versions[at].Strategy.(*strategy)}, FieldManager: owners.action(k.Version, sub.Name),
			}
		}
	}
	return below, nil
}

// forms returns how the objects of each version become a T and the reverse.
func (k Kind[T]) forms(crd *v1.CustomResourceDefinition) (*forms[T], error) {
	f := &forms[T]{group: crd.Spec.Group, kind: crd.Spec.Names.Kind, of: map[string]form[T]{}}
	for _, v := range crd.Spec.Versions {
		f.of[v.Name] = own[T](f.group + "/" + v.Name)
	}
	if _, ok := f.of[k.Version]; !ok {
		return nil, fmt.Errorf("custom: the definition %s has no version %q: correct Kind.Version", crd.Name, k.Version)
	}
	seen := []string{k.Version}
	for _, v := range k.Versions {
		if _, ok := f.of[v.name]; !ok || slices.Contains(seen, v.name) {
			return nil, fmt.Errorf("custom: the definition %s has no version %q besides %q: correct Kind.Versions", crd.Name, v.name, seen)
		}
		seen = append(seen, v.name)
		f.of[v.name] = v.form(f.group + "/" + v.name)
	}
	return f, nil
}

// Parse returns a definition from YAML or JSON, with its defaults and with its names
// accepted. An error names every fault of the definition.
func Parse(definition []byte) (*v1.CustomResourceDefinition, error) {
	crd := &v1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, crd); err != nil {
		return nil, fmt.Errorf("custom: the definition is not a CustomResourceDefinition: %w", err)
	}
	if want := v1.SchemeGroupVersion.WithKind("CustomResourceDefinition"); crd.GroupVersionKind() != want {
		return nil, fmt.Errorf("custom: the definition is a %v, want %v: embed the file that `steer generate` writes below config/crd", crd.GroupVersionKind(), want)
	}
	v1.SetObjectDefaults_CustomResourceDefinition(crd)
	crd.Status = v1.CustomResourceDefinitionStatus{AcceptedNames: crd.Spec.Names}
	if name, ok := StorageVersion(crd); ok {
		crd.Status.StoredVersions = []string{name}
	}
	var internal apiextensions.CustomResourceDefinition
	if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
		return nil, fmt.Errorf("custom: definition %s: %w", crd.Name, err)
	}
	if errs := crdvalidation.Validate(context.Background(), &internal); len(errs) > 0 {
		return nil, fmt.Errorf("custom: definition %s: %w", crd.Name, errs.ToAggregate())
	}
	if c := crd.Spec.Conversion; c != nil && c.Strategy == v1.WebhookConverter {
		return nil, fmt.Errorf("custom: definition %s: %w", crd.Name, errWebhook)
	}
	return crd, nil
}

var errWebhook = errors.New("spec.conversion names a webhook: a custom API server converts objects itself, with Kind.Versions")

// As returns an object that a backend, an admission or [resource.Change] has, as the Go
// type T of its version. The result shares no memory with obj, unless obj is a T.
func As[T resource.Object](obj resource.Object) (T, error) {
	if typed, ok := obj.(T); ok {
		return typed, nil
	}
	var none T
	d, ok := obj.(*resource.Doc)
	if !ok {
		return none, fmt.Errorf("custom: the object is a %T, want %T", obj, none)
	}
	return own[T](d.GetAPIVersion()).load(d.Content())
}
