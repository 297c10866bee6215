// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/internal/fastname"
	"github.com/steer-dev/steer/storage"
)

// Access refuses claims of devices by who writes them, and where: administrative
// access (KEP-5018) is for namespaces that are labelled for it, and who writes the
// status of a claim needs more than that for its allocation and for what drivers
// report (KEP-4817).
type Access struct {
	// Authorizer of the server.
	Authorizer auth.Authorizer
	// Store that namespaces are kept in.
	Store storage.Viewer
}

// Component adds the checks to claims and templates of claims.
func (a Access) Component() component.Component {
	checked := func(check func(ctx context.Context, f *valid.Field, obj, old resource.Object)) func(resource.Strategy) resource.Strategy {
		return func(s resource.Strategy) resource.Strategy { return guard{s, check} }
	}
	return component.Component{Name: "access to devices", Extend: []component.Extension{
		{Resource: claims + "." + resourcev1.GroupName, Strategy: checked(a.claim), Status: checked(a.status)},
		{Resource: templates + "." + resourcev1.GroupName, Strategy: checked(a.template)},
	}}
}

// guard adds a check to the rules of a kind.
type guard struct {
	resource.Strategy
	check func(ctx context.Context, f *valid.Field, obj, old resource.Object)
}

// Validate implements [resource.Strategy].
func (g guard) Validate(ctx context.Context, obj, old resource.Object) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	g.check(ctx, &f, obj, old)
	return append(errs, g.Strategy.Validate(ctx, obj, old)...)
}

func (a Access) claim(ctx context.Context, f *valid.Field, obj, old resource.Object) {
	if c := obj.(claim); old == nil {
		a.checkRequests(f, c.Namespace, c.Spec.Devices.Requests)
	}
}

func (a Access) template(ctx context.Context, f *valid.Field, obj, old resource.Object) {
	if t := obj.(template); old == nil {
		a.checkRequests(f, t.Namespace, t.Spec.Spec.Devices.Requests)
	}
}

// checkRequests looks after administrative access that is asked for. The path is
// that of a claim also for a template, as Kubernetes has it.
func (a Access) checkRequests(f *valid.Field, namespace string, requests []resourcev1.DeviceRequest) {
	i := slices.IndexFunc(requests, func(r resourcev1.DeviceRequest) bool { return r.Exactly != nil && isTrue(r.Exactly.AdminAccess) })
	if i < 0 {
		return
	}
	spec := f.Child("spec")
	devices := spec.Child("devices")
	list := devices.Child("requests")
	at := list.Index(i)
	a.checkNamespace(&at, namespace)
}

// checkNamespace requires the label that lets devices be administered.
func (a Access) checkNamespace(f *valid.Field, name string) {
	const member, label = "adminAccess", resourcev1.DRAAdminNamespaceLabelKey
	var namespace metav1.PartialObjectMetadata
	err := errors.New("there is no such namespace")
	if rec := a.Store.Get(storage.Key{Bucket: "namespaces", Name: name}); rec != nil {
		err = json.Unmarshal(rec.Value, &namespace)
	}
	if err != nil {
		f.Add(field.InternalError(f.PathOf(member), fmt.Errorf("could not retrieve namespace to verify admin access: %w", err)))
	} else if namespace.Labels[label] != "true" {
		f.Forbidden(member, "admin access to devices requires the `"+label+": true` label on the containing namespace")
	}
}

// status looks after what a write of the status changes.
func (a Access) status(ctx context.Context, f *valid.Field, obj, old resource.Object) {
	c, was := obj.(claim), old.(claim)
	at := f.Child("status")
	a.checkAdministered(&at, c, was)
	r := resource.RequestFrom(ctx)
	if r == nil {
		return
	}
	may := auth.Attributes{
		User: r.User, Verb: r.Verb, ResourceRequest: true, Group: resourcev1.GroupName, Version: r.Version.Name, Resource: claims, Path: r.Path,
	}
	if now, before := &c.Status, &was.Status; !equality.Semantic.DeepEqual(now.Allocation, before.Allocation) || !equality.Semantic.DeepEqual(now.ReservedFor, before.ReservedFor) {
		bind := may
		bind.Subresource = resourcev1.SubresourceBinding
		if err := a.allowed(ctx, &bind); err != nil {
			at.Forbidden("allocation", fmt.Sprintf(`changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%s" permission: %s`, r.Verb, err))
		}
	}
	if c.Status.Allocation == nil {
		return
	}
	may.Subresource, may.Namespace = resourcev1.SubresourceDriver, r.Namespace
	verbs := []string{resourcev1.VerbPrefixArbitraryNode + r.Verb}
	if runsOn(r.User, nodeOf(c.Status.Allocation)) {
		verbs = slices.Insert(verbs, 0, resourcev1.VerbPrefixAssociatedNode+r.Verb)
	}
	for _, driver := range sets.List(changedDrivers(c.Status.Devices, was.Status.Devices)) {
		may.Name = driver
		if err := a.anyAllowed(ctx, may, verbs); err != nil {
			at.Forbidden("devices", fmt.Sprintf(`changing status.devices requires resource="resourceclaims/driver", verb="%s" permission: %s`, verbs, err))
		}
	}
}

// checkAdministered looks after administrative access that is granted; once it is, it
// stays.
func (a Access) checkAdministered(f *valid.Field, c, old claim) {
	granted := func(c claim) int {
		if c.Status.Allocation == nil {
			return -1
		}
		return slices.IndexFunc(c.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool { return isTrue(r.AdminAccess) })
	}
	i := granted(c)
	if i < 0 || granted(old) >= 0 {
		return
	}
	allocation := f.Child("allocation")
	devices := allocation.Child("devices")
	list := devices.Child("results")
	at := list.Index(i)
	a.checkNamespace(&at, c.Namespace)
}

// anyAllowed returns why none of the verbs is allowed, in the words of the first.
func (a Access) anyAllowed(ctx context.Context, may auth.Attributes, verbs []string) error {
	var first error
	for _, verb := range verbs {
		may.Verb = verb
		err := a.allowed(ctx, &may)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// allowed returns why something is not, in the words of an answer of its own.
func (a Access) allowed(ctx context.Context, may *auth.Attributes) error {
	err := auth.Check(ctx, a.Authorizer, may)
	if err == nil {
		return nil
	}
	what := may.Resource + "." + may.Group
	if may.Name != "" {
		what += fmt.Sprintf(" %q", may.Name)
	}
	return fmt.Errorf("%s is forbidden: %w", what, err)
}

// changedDrivers are the drivers of which devices say something else than before.
func changedDrivers(now, before []resourcev1.AllocatedDeviceStatus) sets.Set[string] {
	out, left := sets.New[string](), map[id]*resourcev1.AllocatedDeviceStatus{}
	for i := range before {
		left[idOfStatus(&before[i])] = &before[i]
	}
	for i := range now {
		d, key := &now[i], idOfStatus(&now[i])
		if was, ok := left[key]; !ok || !equality.Semantic.DeepEqual(was, d) {
			out.Insert(d.Driver)
		}
		delete(left, key)
	}
	for key := range left {
		out.Insert(key.Driver)
	}
	return out
}

// nodeOf is the node that devices are allocated on; empty: none, or more than one.
func nodeOf(a *resourcev1.AllocationResult) string {
	if a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := &a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 0 || len(term.MatchFields) != 1 {
		return ""
	}
	if f := &term.MatchFields[0]; f.Key == metav1.ObjectNameField && f.Operator == "In" && len(f.Values) == 1 {
		return f.Values[0]
	}
	return ""
}

// runsOn reports whether a user is a service account whose token is bound to the node.
func runsOn(u *auth.User, node string) bool {
	account, is := strings.CutPrefix(u.Name, "system:serviceaccount:")
	nodes := u.Extra["authentication.kubernetes.io/node-name"]
	return node != "" && is && strings.Count(account, ":") == 1 && len(nodes) == 1 && nodes[0] == node && fastname.Subdomain(node)
}

func isTrue(b *bool) bool { return b != nil && *b }
