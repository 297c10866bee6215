// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package networking

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// policyRules are the rules of a NetworkPolicy for what comes in or goes out.
type policyRules struct {
	// direction and peers name the fields of the list and of its peers.
	direction, peers string
	list             []policyRule
}

type policyRule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
}

// rulesOf returns the rules of both directions.
func rulesOf(p *networkingv1.NetworkPolicy) [2]policyRules {
	both := [2]policyRules{{direction: "ingress", peers: "from"}, {direction: "egress", peers: "to"}}
	for _, r := range p.Spec.Ingress {
		both[0].list = append(both[0].list, policyRule{r.Ports, r.From})
	}
	for _, r := range p.Spec.Egress {
		both[1].list = append(both[1].list, policyRule{r.Ports, r.To})
	}
	return both
}

// blocksOf calls f with the address ranges of the peers of a policy, by
// direction.
func blocksOf(p *networkingv1.NetworkPolicy, f func(at *valid.Field, b *networkingv1.IPBlock)) {
	root := valid.Root(nil)
	spec := root.Child("spec")
	for _, rules := range rulesOf(p) {
		list := spec.Child(rules.direction)
		for i, r := range rules.list {
			rule := list.Index(i)
			peers := rule.Child(rules.peers)
			for j, peer := range r.peers {
				if peer.IPBlock != nil {
					at := peers.Index(j)
					block := at.Child("ipBlock")
					f(&block, peer.IPBlock)
				}
			}
		}
	}
}

// policyOptions are what a change of a policy may leave as it was.
type policyOptions struct {
	selectors metavalidation.LabelSelectorValidationOptions
	ranges    []string // of addresses
}

func validateNetworkPolicy(p, old *networkingv1.NetworkPolicy) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &p.Spec
	f := root.Child("spec")
	var o policyOptions
	if old != nil {
		o.selectors.AllowInvalidLabelValueInSelector = len(metavalidation.ValidateLabelSelector(&old.Spec.PodSelector, o.selectors, nil)) > 0
		blocksOf(old, func(_ *valid.Field, b *networkingv1.IPBlock) {
			o.ranges = append(append(o.ranges, b.CIDR), b.Except...)
		})
	}
	f.Add(metavalidation.ValidateLabelSelector(&s.PodSelector, o.selectors, f.PathOf("podSelector"))...)
	for _, rules := range rulesOf(p) {
		list := f.Child(rules.direction)
		for i, r := range rules.list {
			at := list.Index(i)
			ports, peers := at.Child("ports"), at.Child(rules.peers)
			for j := range r.ports {
				one := ports.Index(j)
				checkPolicyPort(&one, &r.ports[j])
			}
			for j := range r.peers {
				one := peers.Index(j)
				checkPeer(&one, &r.peers[j], &o)
			}
		}
	}
	types := f.Child("policyTypes")
	if len(s.PolicyTypes) > 2 {
		types.Invalid(valid.Self, s.PolicyTypes, "may not specify more than two policyTypes")
		return errs
	}
	for i, t := range s.PolicyTypes {
		at := types.Index(i)
		valid.Supported(&at, valid.Self, t, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	}
	return errs
}

func checkPolicyPort(f *valid.Field, p *networkingv1.NetworkPolicyPort) {
	if p.Protocol != nil {
		valid.Supported(f, "protocol", *p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	}
	switch {
	case p.Port == nil:
		if p.EndPort != nil {
			f.Invalid("endPort", *p.EndPort, "may not be specified when `port` is not specified")
		}
	case p.Port.Type == intstr.String:
		if p.EndPort != nil {
			f.Invalid("endPort", *p.EndPort, "may not be specified when `port` is non-numeric")
		}
		f.PortOrName("port", *p.Port)
	default:
		f.Port("port", p.Port.IntVal)
		if p.EndPort == nil {
			return
		}
		if *p.EndPort < p.Port.IntVal {
			f.Invalid("endPort", *p.EndPort, "must be greater than or equal to `port`")
		}
		f.Port("endPort", *p.EndPort)
	}
}

func checkPeer(f *valid.Field, p *networkingv1.NetworkPolicyPeer, o *policyOptions) {
	selector := func(name string, s *metav1.LabelSelector) {
		if s != nil {
			f.Add(metavalidation.ValidateLabelSelector(s, o.selectors, f.PathOf(name))...)
		}
	}
	selector("podSelector", p.PodSelector)
	selector("namespaceSelector", p.NamespaceSelector)
	selected := p.PodSelector != nil || p.NamespaceSelector != nil
	if p.IPBlock != nil {
		at := f.Child("ipBlock")
		checkBlock(&at, p.IPBlock, o.ranges)
	}
	switch {
	case !selected && p.IPBlock == nil:
		f.Required(valid.Self, "must specify a peer")
	case selected && p.IPBlock != nil:
		f.Forbidden(valid.Self, "may not specify both ipBlock and another peer")
	}
}

// checkBlock has the rules of a range of addresses, and of what it leaves out.
// Ranges that were there before may be as they are.
func checkBlock(f *valid.Field, b *networkingv1.IPBlock, before []string) {
	if b.CIDR == "" {
		return
	}
	if !slices.Contains(before, b.CIDR) {
		f.CIDR("cidr", b.CIDR)
	}
	_, all, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return
	}
	size, _ := all.Mask.Size()
	list := f.Child("except")
	for i, text := range b.Except {
		at := list.Index(i)
		if !slices.Contains(before, text) {
			at.CIDR(valid.Self, text)
		}
		_, except, err := netutils.ParseCIDRSloppy(text)
		if err != nil {
			continue
		}
		if n, _ := except.Mask.Size(); n <= size || !all.Contains(except.IP) {
			at.Invalid(valid.Self, text, "must be a strict subset of `cidr`")
		}
	}
}

// networkPolicyWarnings are about ranges of addresses that are not written as
// others write them.
func networkPolicyWarnings(p, _ *networkingv1.NetworkPolicy) []string {
	var out []string
	blocksOf(p, func(at *valid.Field, b *networkingv1.IPBlock) {
		out = append(out, validation.GetWarningsForCIDR(at.PathOf("cidr"), b.CIDR)...)
		for i, text := range b.Except {
			out = append(out, validation.GetWarningsForCIDR(at.PathOf("except").Index(i), text)...)
		}
	})
	return out
}
