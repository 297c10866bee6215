// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// checkEndpointIP refuses addresses that mean something else on every machine.
func checkEndpointIP(f *valid.Field, text string) {
	ip := net.ParseIP(text)
	if ip == nil {
		f.Invalid(valid.Self, text, "must be a valid IP address")
		return
	}
	switch {
	case ip.IsUnspecified():
		f.Invalid(valid.Self, text, fmt.Sprintf("may not be unspecified (%v)", text))
	case ip.IsLoopback():
		f.Invalid(valid.Self, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
	case ip.IsLinkLocalUnicast():
		f.Invalid(valid.Self, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
	case ip.IsLinkLocalMulticast():
		f.Invalid(valid.Self, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
	}
}

func validateEndpoints(e, _ *corev1.Endpoints) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("subsets")
	for i := range e.Subsets {
		s, at := &e.Subsets[i], f.Index(i)
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			at.Required(valid.Self, "must specify `addresses` or `notReadyAddresses`")
		}
		addresses := func(name string, list []corev1.EndpointAddress) {
			in := at.Child(name)
			for j := range list {
				one := in.Index(j)
				checkAddress(&one, &list[j])
			}
		}
		addresses("addresses", s.Addresses)
		addresses("notReadyAddresses", s.NotReadyAddresses)
		ports := at.Child("ports")
		for j, p := range s.Ports {
			one := ports.Index(j)
			if p.Name != "" {
				one.DNSLabel("name", p.Name)
			} else if len(s.Ports) > 1 {
				one.Required("name", "")
			}
			one.Port("port", p.Port)
			valid.RequiredOf(&one, "protocol", p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
			if p.AppProtocol != nil {
				one.Qualified("appProtocol", *p.AppProtocol)
			}
		}
	}
	return errs
}

func checkAddress(f *valid.Field, a *corev1.EndpointAddress) {
	f.IP("ip", a.IP)
	at := f.Child("ip")
	checkEndpointIP(&at, a.IP)
	if a.Hostname != "" {
		f.DNSLabel("hostname", a.Hostname)
	}
	if a.NodeName != nil {
		f.Subdomain("nodeName", *a.NodeName)
	}
}

func validateEndpointSlice(e, old *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	f := valid.Root(&errs)
	if old == nil || !equality.Semantic.DeepEqual(e.Endpoints, old.Endpoints) {
		checkEndpoints(&f, e)
	}
	checkSlicePorts(&f, e.Ports)
	return errs
}

func checkEndpoints(f *valid.Field, e *discoveryv1.EndpointSlice) {
	const endpoints, zones, nodes, labels = 1000, 8, 8, 16
	list := f.Child("endpoints")
	if len(e.Endpoints) > endpoints {
		list.TooMany(valid.Self, len(e.Endpoints), endpoints)
		return
	}
	for i := range e.Endpoints {
		p, at := &e.Endpoints[i], list.Index(i)
		in := at.Child("addresses")
		for j, a := range p.Addresses {
			one := in.Index(j)
			checkSliceAddress(&in, &one, e.AddressType, a)
		}
		if p.NodeName != nil {
			at.Subdomain("nodeName", *p.NodeName)
		}
		topology := at.Child("deprecatedTopology")
		if n := len(p.DeprecatedTopology); n > labels {
			topology.TooMany(valid.Self, n, labels)
		}
		topology.Labels(valid.Self, p.DeprecatedTopology)
		if p.Hostname != nil {
			at.DNSLabel("hostname", *p.Hostname)
		}
		if p.Hints == nil {
			continue
		}
		hints := at.Child("hints")
		if n := len(p.Hints.ForZones); n > zones {
			hints.TooMany("forZones", n, zones)
		} else {
			in, seen := hints.Child("forZones"), sets.New[string]()
			for j, z := range p.Hints.ForZones {
				one := in.Index(j)
				if seen.Has(z.Name) {
					one.Duplicate("name", z.Name)
				}
				seen.Insert(z.Name)
				if problems := validation.IsValidLabelValue(z.Name); len(problems) > 0 {
					one.Problems("name", z.Name, problems)
				}
			}
		}
		if n := len(p.Hints.ForNodes); n > nodes {
			hints.TooMany("forNodes", n, nodes)
		} else {
			in, seen := hints.Child("forNodes"), sets.New[string]()
			for j, node := range p.Hints.ForNodes {
				one := in.Index(j)
				if seen.Has(node.Name) {
					one.Duplicate("name", node.Name)
				}
				seen.Insert(node.Name)
				one.Subdomain("name", node.Name)
			}
		}
	}
}

func checkSliceAddress(list, f *valid.Field, t discoveryv1.AddressType, a string) {
	before := f.Len()
	switch t {
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
		f.Add(validation.IsValidIP(f.Path(), a)...)
		if ip, err := netip.ParseAddr(a); err == nil && f.Len() == before {
			if (t == discoveryv1.AddressTypeIPv4) != ip.Is4() {
				list.Invalid(valid.Self, a, fmt.Sprintf("must be an %s address", t))
			}
			checkEndpointIP(f, a)
		}
	case discoveryv1.AddressTypeFQDN:
		f.Add(validation.IsFullyQualifiedDomainName(f.Path(), a)...)
	}
}

func checkSlicePorts(f *valid.Field, ports []discoveryv1.EndpointPort) {
	const most = 20000
	list, names := f.Child("ports"), sets.New[string]()
	if len(ports) > most {
		list.TooMany(valid.Self, len(ports), most)
		return
	}
	for i, p := range ports {
		at, name := list.Index(i), kind.Value(p.Name)
		if name != "" {
			at.DNSLabel("name", name)
		}
		if names.Has(name) {
			at.Duplicate("name", name)
		}
		names.Insert(name)
		valid.Supported(&at, "protocol", kind.Value(p.Protocol), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
		if p.AppProtocol != nil {
			at.Qualified("appProtocol", *p.AppProtocol)
		}
	}
}

// sliceWarnings are about names in the place of addresses, and about addresses that are written
// in an unusual way; those that controllers have written are not.
func sliceWarnings(e, old *discoveryv1.EndpointSlice) []string {
	var out []string
	if old == nil && e.AddressType == discoveryv1.AddressTypeFQDN {
		out = append(out, "spec.addressType: FQDN endpoints are deprecated")
	}
	switch e.Labels[discoveryv1.LabelManagedBy] {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return out
	}
	if e.AddressType == discoveryv1.AddressTypeFQDN {
		return out
	}
	for i := range e.Endpoints {
		for j, address := range e.Endpoints[i].Addresses {
			out = append(out, validation.GetWarningsForIP(field.NewPath("endpoints").Index(i).Child("addresses").Index(j), address)...)
		}
	}
	return out
}
