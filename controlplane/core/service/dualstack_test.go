// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/storage"
)

func allocatorOf(ranges ...string) *ServiceAllocator {
	var prefixes []netip.Prefix
	for _, text := range ranges {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return NewServiceAllocator(storage.NewMemory(storage.MemoryOptions{}), prefixes, oneID)
}

// TestServicesHaveTheFamiliesOfTheServer: policies, families and addresses that are asked for,
// on servers of one family and of two, as in Kubernetes' dual-stack tests.
func TestServicesHaveTheFamiliesOfTheServer(t *testing.T) {
	t.Parallel()
	const four, six = "10.0.0.0/16", "2001:db8:1::/108"
	const single, prefer, require = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	const v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
	for name, c := range map[string]struct {
		ranges   []string
		policy   corev1.IPFamilyPolicy
		families []corev1.IPFamily
		ips      []string
		selfless bool
		want     string // families, addresses and policy, or a part of the error
	}{
		"four":                         {ranges: []string{four}, want: "IPv4 10.0.1.1 SingleStack"},
		"six":                          {ranges: []string{six}, want: "IPv6 2001:db8:1::101 SingleStack"},
		"four, prefers both":           {ranges: []string{four}, policy: prefer, want: "IPv4 10.0.1.1 PreferDualStack"},
		"four, requires both":          {ranges: []string{four}, policy: require, want: "this cluster is not configured for dual-stack services"},
		"four, wants six":              {ranges: []string{four}, families: []corev1.IPFamily{v6}, want: "not configured on this cluster"},
		"six, an address of four":      {ranges: []string{six}, ips: []string{"10.0.0.9"}, want: "IPv4 is not configured on this cluster"},
		"both, by default":             {ranges: []string{four, six}, want: "IPv4 10.0.1.1 SingleStack"},
		"both, six first":              {ranges: []string{six, four}, want: "IPv6 2001:db8:1::101 SingleStack"},
		"both, wants six":              {ranges: []string{four, six}, families: []corev1.IPFamily{v6}, want: "IPv6 2001:db8:1::101 SingleStack"},
		"both, prefers both":           {ranges: []string{four, six}, policy: prefer, want: "IPv4,IPv6 10.0.1.1,2001:db8:1::101 PreferDualStack"},
		"both, requires both":          {ranges: []string{six, four}, policy: require, want: "IPv6,IPv4 2001:db8:1::101,10.0.1.1 RequireDualStack"},
		"both, six then four":          {ranges: []string{four, six}, policy: require, families: []corev1.IPFamily{v6}, want: "IPv6,IPv4 2001:db8:1::101,10.0.1.1 RequireDualStack"},
		"both, names the second":       {ranges: []string{four, six}, policy: require, ips: []string{"10.0.0.9", "2001:db8:1::9"}, want: "IPv4,IPv6 10.0.0.9,2001:db8:1::9 RequireDualStack"},
		"both, names the first":        {ranges: []string{four, six}, policy: require, ips: []string{"10.0.0.9"}, want: "IPv4,IPv6 10.0.0.9,2001:db8:1::101 RequireDualStack"},
		"both, one, two families":      {ranges: []string{four, six}, policy: single, families: []corev1.IPFamily{v4, v6}, want: "when multiple IP families are specified"},
		"both, one, two addresses":     {ranges: []string{four, six}, policy: single, ips: []string{"10.0.0.9", "2001:db8:1::9"}, want: "when multiple cluster IPs are specified"},
		"both, an address out of them": {ranges: []string{four, six}, policy: require, ips: []string{"10.0.0.9", "2001:db8:2::9"}, want: "failed to allocate IP 2001:db8:2::9: the provided network does not match the current range"},
		"headless without a selector":  {ranges: []string{six}, ips: []string{"None"}, selfless: true, want: "IPv6,IPv4 None RequireDualStack"},
		"headless, both":               {ranges: []string{four, six}, policy: prefer, ips: []string{"None"}, want: "IPv4,IPv6 None PreferDualStack"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service("a", corev1.ServiceTypeClusterIP)
			s.Spec.IPFamilies, s.Spec.ClusterIPs = c.families, c.ips
			if !c.selfless {
				s.Spec.Selector = map[string]string{"app": "a"}
			}
			if len(c.ips) > 0 {
				s.Spec.ClusterIP = c.ips[0]
			}
			if c.policy != "" {
				s.Spec.IPFamilyPolicy = &c.policy
			}
			err := admit(allocatorOf(c.ranges...), s, nil, false)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %s", err, c.want)
				}
				return
			}
			if got := stack(s); got != c.want || s.Spec.ClusterIP != s.Spec.ClusterIPs[0] {
				t.Errorf("got %s (clusterIP %s), want %s", got, s.Spec.ClusterIP, c.want)
			}
		})
	}
}

// stack shows families, addresses and policy.
func stack(s *corev1.Service) string {
	var families []string
	for _, f := range s.Spec.IPFamilies {
		families = append(families, string(f))
	}
	return strings.Join(families, ",") + " " + strings.Join(s.Spec.ClusterIPs, ",") + " " + string(kind.Value(s.Spec.IPFamilyPolicy))
}

// TestServicesGainAndReleaseTheirSecondAddress, which others can have then.
func TestServicesGainAndReleaseTheirSecondAddress(t *testing.T) {
	t.Parallel()
	a := allocatorOf("10.0.0.0/16", "2001:db8:1::/108")
	commit := func(s, old *corev1.Service) {
		t.Helper()
		if err := a.committed(context.Background(), resource.Change{Object: s, Old: old}); err != nil {
			t.Fatal(err)
		}
	}
	first := service("a", corev1.ServiceTypeClusterIP)
	if err := admit(a, first, nil, false); err != nil {
		t.Fatal(err)
	}
	policy := func(s *corev1.Service, p corev1.IPFamilyPolicy) *corev1.Service {
		s = s.DeepCopy()
		s.Spec.IPFamilyPolicy = &p
		return s
	}
	both := policy(first, corev1.IPFamilyPolicyRequireDualStack)
	if err := admit(a, both, first, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("IPv4,IPv6 10.0.1.1,2001:db8:1::101 RequireDualStack", stack(both)); diff != "" {
		t.Errorf("with both families (-want +got):\n%s", diff)
	}
	other := service("b", corev1.ServiceTypeClusterIP)
	other.Spec.ClusterIP, other.Spec.ClusterIPs = "2001:db8:1::101", []string{"2001:db8:1::101"}
	if err := admit(a, other.DeepCopy(), nil, false); err == nil || !strings.Contains(err.Error(), "provided IP is already allocated") {
		t.Errorf("the second address for another Service: %v", err)
	}
	one := policy(both, corev1.IPFamilyPolicySingleStack)
	if err := admit(a, one, both, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("IPv4 10.0.1.1 SingleStack", stack(one)); diff != "" {
		t.Errorf("with one family again (-want +got):\n%s", diff)
	}
	commit(one, both)
	if err := admit(a, other, nil, false); err != nil {
		t.Errorf("the address that was released: %v", err)
	}
}

func TestRangesOfServicesAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "10.0.0.0/24": "", "fd00::/108,10.0.0.0/24": "",
		"10.0.0.0/24,10.1.0.0/24":           "one of IPv4 and one of IPv6",
		"10.0.0.0/24,fd00::/108,fd01::/108": "one of IPv4 and one of IPv6",
		"10.0.0.0/31":                       "no room",
	} {
		var ranges []netip.Prefix
		for part := range strings.SplitSeq(text, ",") {
			if part != "" {
				ranges = append(ranges, netip.MustParsePrefix(part))
			}
		}
		if err := CheckRanges(ranges); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestRangesGainASecondFamily and change in no other way.
func TestRangesGainASecondFamily(t *testing.T) {
	t.Parallel()
	const four, six = "10.0.0.0/24", "2001:db8::/112"
	for name, c := range map[string]struct {
		was, is []string
		want    string
	}{
		"the same":       {[]string{four}, []string{four}, ""},
		"one more":       {[]string{four}, []string{four, six}, ""},
		"the same twice": {[]string{four}, []string{four, "10.1.0.0/24"}, "spec.cidrs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more than one IP for each IP family"},
		"another":        {[]string{four}, []string{six}, "spec.cidrs[0]: Invalid value: \"2001:db8::/112\": field is immutable"},
		"before it":      {[]string{four}, []string{six, four}, "spec.cidrs[0]: Invalid value: \"2001:db8::/112\": field is immutable"},
		"one less":       {[]string{four, six}, []string{four}, "spec.cidrs: Invalid value: [\"10.0.0.0/24\"]: field is immutable"},
	} {
		was, is := &networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDR{}
		was.Spec.CIDRs, is.Spec.CIDRs = c.was, c.is
		got := ""
		if err := validateRanges(is, was).ToAggregate(); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRangeOfTheServerIsUsedWhileAServiceCIDRHasItOpen(t *testing.T) {
	t.Parallel()
	own, other := netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.1.0.0/24")
	cidr := func(name string, p netip.Prefix) *networkingv1.ServiceCIDR {
		return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{p.String()}}}
	}
	deleting, notReady := cidr("kubernetes", own), cidr("kubernetes", own)
	deleting.DeletionTimestamp = &metav1.Time{}
	notReady.Status.Conditions = []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionFalse}}
	for name, c := range map[string]struct {
		cidrs []*networkingv1.ServiceCIDR
		want  []netip.Prefix
	}{
		"none":                    {nil, []netip.Prefix{own}},
		"its own":                 {[]*networkingv1.ServiceCIDR{cidr("kubernetes", own)}, []netip.Prefix{own}},
		"another as well":         {[]*networkingv1.ServiceCIDR{cidr("a", other), cidr("kubernetes", own)}, []netip.Prefix{own, other}},
		"its own being deleted":   {[]*networkingv1.ServiceCIDR{cidr("a", other), deleting}, []netip.Prefix{other}},
		"its own not ready":       {[]*networkingv1.ServiceCIDR{cidr("a", other), notReady}, []netip.Prefix{other}},
		"the same in two of them": {[]*networkingv1.ServiceCIDR{cidr("a", own), deleting}, []netip.Prefix{own}},
	} {
		a := &ServiceAllocator{ips: []netip.Prefix{own}, cidrs: map[string]offered{}}
		for _, one := range c.cidrs {
			a.addRanges(one)
		}
		if got := a.ranges(corev1.IPv4Protocol); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
