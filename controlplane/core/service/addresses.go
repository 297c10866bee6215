// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// addressKinds are the ranges and the addresses of Services. They describe what
// the allocator does; it does not follow them.
func addressKinds() []*resource.Resource {
	type (
		ranges  = *networkingv1.ServiceCIDR
		address = *networkingv1.IPAddress
	)
	const group = networkingv1.GroupName
	return []*resource.Resource{
		kind.Definition[networkingv1.ServiceCIDR, ranges]{
			Group: group, Version: "v1", Plural: "servicecidrs", Cluster: true, Status: true, Unconditional: true,
			Metadata: kind.Metadata{KeepMetadataInStatus: true},
			Validate: validateRanges,
			Columns:  kind.Columns("Name", "CIDRs", "Age"),
			Row:      func(r ranges) []any { return []any{r.Name, strings.Join(r.Spec.CIDRs, ","), kind.Age(r)} },
		}.Resource(),
		kind.Definition[networkingv1.IPAddress, address]{
			Group: group, Version: "v1", Plural: "ipaddresses", Singular: "ipaddress", Short: []string{"ip"}, Cluster: true, Unconditional: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			NameRule: nameIsIP,
			Validate: validateIPAddress,
			Columns:  kind.Columns("Name", "ParentRef"), // the age is shown without a heading
			Row: func(a address) []any {
				parent := kind.None
				if p := a.Spec.ParentRef; p != nil {
					parent = strings.ToLower(schema.GroupResource{Group: p.Group, Resource: p.Resource}.String())
					if p.Namespace != "" {
						parent += "/" + p.Namespace
					}
					parent += "/" + p.Name
				}
				return []any{a.Name, parent, kind.Age(a)}
			},
		}.Resource(),
	}
}

func validateRanges(r, old *networkingv1.ServiceCIDR) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	spec := root.Child("spec")
	f := spec.Child("cidrs")
	if old != nil {
		is, was := r.Spec.CIDRs, old.Spec.CIDRs
		switch {
		case len(is) == len(was):
			for i := range is {
				if at := f.Index(i); is[i] != was[i] {
					at.Unchanged(valid.Self, is[i], was[i])
				}
			}
			return errs
		case len(was) == 1 && len(is) == 2: // a range of the other family is added
			if at := f.Index(0); is[0] != was[0] {
				at.Unchanged(valid.Self, is[0], was[0])
			}
		default:
			f.Unchanged(valid.Self, is, was)
			return errs
		}
	}
	switch n := len(r.Spec.CIDRs); {
	case n == 0:
		f.Required(valid.Self, "at least one CIDR required")
		return errs
	case n > 2:
		f.Invalid(valid.Self, r.Spec.CIDRs, "may only hold up to 2 values")
		return errs
	}
	var families []bool
	for i, c := range r.Spec.CIDRs {
		at := f.Index(i)
		at.Add(validation.IsValidCIDR(at.Path(), c)...)
		if p, err := netip.ParsePrefix(c); err == nil {
			families = append(families, p.Addr().Is6())
		}
	}
	if len(families) == 2 && families[0] == families[1] {
		f.Invalid(valid.Self, r.Spec.CIDRs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/96")
	}
	return errs
}

// nameIsIP is the rule of names that are addresses.
func nameIsIP(name string, _ bool) []string {
	var problems []string
	for _, err := range validation.IsValidIP(nil, name) {
		problems = append(problems, err.Detail)
	}
	return problems
}

func validateIPAddress(a, _ *networkingv1.IPAddress) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	spec := f.Child("spec")
	p := a.Spec.ParentRef
	if p == nil {
		return errs
	}
	at := spec.Child("parentRef")
	if p.Group != "" {
		at.Subdomain("group", p.Group)
	}
	at.OptionalPathSegment("resource", p.Resource)
	at.OptionalPathSegment("name", p.Name)
	at.OptionalPathSegment("namespace", p.Namespace)
	return errs
}
