// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/controlplane/core/volume"
)

// Check has the rules of Pods and of templates; name is that of the Pod, and
// empty for a template.
func Check(f *valid.Field, s *corev1.PodSpec, name string, isPod bool) {
	if s.TerminationGracePeriodSeconds == nil {
		f.Required("terminationGracePeriodSeconds", "")
	}
	around := surroundings{spec: s, claims: sets.New[string]()}
	at := f.Child("volumes")
	around.volumes = volume.CheckPodVolumes(&at, s.Volumes, name, isPod)
	for _, c := range s.ResourceClaims {
		if c.Name != "" {
			around.claims.Insert(c.Name)
		}
	}
	at = f.Child("resourceClaims")
	checkClaims(&at, s.ResourceClaims)
	at = f.Child("containers")
	around.checkContainers(&at)
	at = f.Child("initContainers")
	around.checkInitContainers(&at)
	if len(s.EphemeralContainers) > 0 {
		at = f.Child("ephemeralContainers")
		around.checkEphemeralContainers(&at)
	}
	if s.Resources != nil {
		at = f.Child("resources")
		checkPodResources(&at, s, around.claims)
	}
	checkHostNetwork(f, s, isPod)
	valid.RequiredOf(f, "restartPolicy", s.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	valid.RequiredOf(f, "dnsPolicy", s.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	f.Labels("nodeSelector", s.NodeSelector)
	at = f.Child("securityContext")
	checkPodSecurity(&at, s.SecurityContext, s)
	if s.HostPID && kind.Value(s.ShareProcessNamespace) {
		f.Invalid("shareProcessNamespace", true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
	at = f.Child("affinity")
	checkAffinity(&at, s.Affinity)
	at = f.Child("dnsConfig")
	checkDNS(&at, s.DNSConfig, s.DNSPolicy)
	checkGates(f, s)
	at = f.Child("topologySpreadConstraints")
	checkSpread(&at, s.TopologySpreadConstraints)
	checkHostProcess(f, s)
	checkHostUsers(f, s)
	checkHostname(f, s)
	if s.ServiceAccountName != "" {
		f.Subdomain("serviceAccountName", s.ServiceAccountName)
	}
	if s.NodeName != "" {
		f.Subdomain("nodeName", s.NodeName)
	}
	if s.ActiveDeadlineSeconds != nil {
		f.Between("activeDeadlineSeconds", *s.ActiveDeadlineSeconds, 1, math.MaxInt32)
	}
	if s.Hostname != "" {
		f.DNSLabel("hostname", s.Hostname)
	}
	if s.Subdomain != "" {
		f.DNSLabel("subdomain", s.Subdomain)
	}
	at = f.Child("tolerations")
	at.Tolerations(s.Tolerations)
	checkAliases(f, s.HostAliases)
	if s.PriorityClassName != "" {
		f.Subdomain("priorityClassName", s.PriorityClassName)
	}
	if s.RuntimeClassName != nil {
		f.Subdomain("runtimeClassName", *s.RuntimeClassName)
	}
	if s.PreemptionPolicy != nil {
		valid.RequiredOf(f, "preemptionPolicy", *s.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	if s.Overhead != nil {
		at = f.Child("overhead")
		CheckOverhead(&at, s.Overhead)
	}
	checkOS(f, s)
	checkEnvFiles(f, s)
}

// CheckOverhead has the rules of what a Pod takes beside its containers.
func CheckOverhead(f *valid.Field, overhead corev1.ResourceList) {
	checkResources(f, &corev1.ResourceRequirements{Limits: overhead}, CheckContainerResource, nil)
}

// checkClaims has the rules of the devices that a Pod claims.
func checkClaims(f *valid.Field, claims []corev1.PodResourceClaim) {
	names := sets.New[string]()
	for i := range claims {
		c, at := &claims[i], f.Index(i)
		switch {
		case !at.NonEmpty("name", c.Name):
		case names.Has(c.Name):
			at.Duplicate("name", c.Name)
		default:
			at.DNSLabel("name", c.Name)
			names.Insert(c.Name)
		}
		if c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil {
			at.Invalid(valid.Self, valid.Untagged(c), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
		}
		if c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil {
			at.Invalid(valid.Self, valid.Untagged(c), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
		if n := c.ResourceClaimName; n != nil {
			at.Subdomain("resourceClaimName", *n)
		}
		if n := c.ResourceClaimTemplateName; n != nil {
			at.Subdomain("resourceClaimTemplateName", *n)
		}
	}
}

// checkPodResources has the rules of what all containers of a Pod share.
func checkPodResources(f *valid.Field, s *corev1.PodSpec, claims sets.Set[string]) {
	if s.OS != nil && s.OS.Name == corev1.Windows {
		f.Forbidden(valid.Self, "may not be set for a windows pod")
		return
	}
	if s.Resources.Claims != nil {
		f.Forbidden("claims", "claims may not be set for Resources at pod-level")
	}
	checkResources(f, s.Resources, podResource, claims)
	sum := Needed(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests })
	requests := f.Child("requests")
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		own, total := s.Resources.Requests[name], sum[name]
		if _, ok := s.Resources.Requests[name]; ok && total.Cmp(own) > 0 {
			at := requests.Key(string(name))
			at.Invalid(valid.Self, own.String(), fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", total.String()))
		}
	}
	sum = Needed(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
	limits := f.Child("limits")
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		own, total := s.Resources.Limits[name], sum[name]
		if _, ok := s.Resources.Limits[name]; ok && valid.IsHugePages(string(name)) && total.Cmp(own) > 0 {
			at := limits.Key(string(name))
			at.Invalid(valid.Self, own.String(), fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", total.String()))
		}
	}
	containers := f.Child("containers")
	for i := range s.Containers {
		at := containers.Index(i)
		for _, name := range slices.Sorted(maps.Keys(s.Containers[i].Resources.Limits)) {
			limit := s.Containers[i].Resources.Limits[name]
			if own, ok := s.Resources.Limits[name]; ok && limit.Cmp(own) > 0 {
				one := at.Key(string(name))
				one.Invalid("limits", limit.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", own.String()))
			}
		}
	}
}

// Needed adds up what containers ask for: all that run at once, or what an init
// container needs beside the sidecars before it, if that is more.
func Needed(s *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	add := func(to, what corev1.ResourceList) {
		for name, q := range what {
			sum := to[name].DeepCopy()
			sum.Add(q)
			to[name] = sum
		}
	}
	total, sidecars, first := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.Containers {
		add(total, of(&s.Containers[i]))
	}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		now := corev1.ResourceList{}
		if IsSidecar(c) {
			add(total, of(c))
			add(sidecars, of(c))
		} else {
			add(now, of(c))
		}
		add(now, sidecars)
		for name, q := range now {
			if q.Cmp(first[name]) > 0 {
				first[name] = q
			}
		}
	}
	for name, q := range first {
		if q.Cmp(total[name]) > 0 {
			total[name] = q
		}
	}
	return total
}

// checkHostNetwork has the rules of ports of the node itself.
func checkHostNetwork(f *valid.Field, s *corev1.PodSpec, isPod bool) {
	if !s.HostNetwork {
		return
	}
	list := f.Child("containers")
	for i := range s.Containers {
		container := list.Index(i)
		ports := container.Child("ports")
		for j, p := range s.Containers[i].Ports {
			if (isPod || p.HostPort != 0) && p.HostPort != p.ContainerPort {
				at := ports.Index(j)
				at.Invalid("hostPort", p.HostPort, "must match `containerPort` when `hostNetwork` is true")
			}
		}
	}
}

// checkDNS has the rules of how a Pod resolves names.
func checkDNS(f *valid.Field, c *corev1.PodDNSConfig, policy corev1.DNSPolicy) {
	if policy == corev1.DNSNone {
		if c == nil {
			f.Required(valid.Self, fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", corev1.DNSNone))
			return
		}
		if len(c.Nameservers) == 0 {
			f.Required("nameservers", fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", corev1.DNSNone))
			return
		}
	}
	if c == nil {
		return
	}
	const servers, paths, characters = 3, 32, 2048
	if len(c.Nameservers) > servers {
		f.Invalid("nameservers", c.Nameservers, fmt.Sprintf("must not have more than %v nameservers", servers))
	}
	list := f.Child("nameservers")
	for i, ip := range c.Nameservers {
		at := list.Index(i)
		at.IP(valid.Self, ip)
	}
	if len(c.Searches) > paths {
		f.Invalid("searches", c.Searches, fmt.Sprintf("must not have more than %v search paths", paths))
	}
	if len(strings.Join(c.Searches, " ")) > characters {
		f.Invalid("searches", c.Searches, fmt.Sprintf("must not have more than %v characters (including spaces) in the search list", characters))
	}
	list = f.Child("searches")
	for i, domain := range c.Searches {
		if domain != "." {
			at, domain := list.Index(i), strings.TrimSuffix(domain, ".")
			at.Problems(valid.Self, domain, validation.IsDNS1123SubdomainWithUnderscore(domain))
		}
	}
	list = f.Child("options")
	for i, o := range c.Options {
		if o.Name == "" {
			at := list.Index(i)
			at.Required(valid.Self, "must not be empty")
		}
	}
}

// checkGates has the rules of what a Pod waits for, before and after it is
// placed.
func checkGates(f *valid.Field, s *corev1.PodSpec) {
	list := f.Child("readinessGates")
	for i, g := range s.ReadinessGates {
		at := list.Index(i)
		at.Qualified("conditionType", string(g.ConditionType))
	}
	list = f.Child("schedulingGates")
	seen := sets.New[string]()
	for i, g := range s.SchedulingGates {
		at := list.Index(i)
		at.Qualified(valid.Self, g.Name)
		if seen.Has(g.Name) {
			at.Duplicate(valid.Self, g.Name)
		}
		seen.Insert(g.Name)
	}
}

func checkHostname(f *valid.Field, s *corev1.PodSpec) {
	const name, longest = "hostnameOverride", 64
	if s.HostnameOverride == nil {
		return
	}
	if kind.Value(s.SetHostnameAsFQDN) {
		f.Forbidden(name, "may not be specified when setHostnameAsFQDN is true")
	}
	if s.HostNetwork {
		f.Forbidden(name, "may not be specified when hostNetwork is true")
	}
	if len(*s.HostnameOverride) > longest {
		f.TooLong(name, longest)
	}
	f.Subdomain(name, *s.HostnameOverride)
}

func checkAliases(f *valid.Field, aliases []corev1.HostAlias) {
	list := f.Child("hostAliases")
	for i, a := range aliases {
		at := list.Index(i)
		at.IP("ip", a.IP)
		names := at.Child("hostnames")
		for j, name := range a.Hostnames {
			one := names.Index(j)
			one.Subdomain(valid.Self, name)
		}
	}
}

// checkEnvFiles has the rules of environments that are read from files.
func checkEnvFiles(f *valid.Field, s *corev1.PodSpec) {
	fromFile := func(e corev1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil }
	if !anyContainer(s, func(c *corev1.Container) bool { return slices.ContainsFunc(c.Env, fromFile) }) {
		return
	}
	EachContainer(f, s, func(at *valid.Field, c *corev1.Container) {
		for i := range c.Env {
			if !fromFile(c.Env[i]) {
				continue
			}
			env := at.Child("env")
			one := env.Index(i)
			from := one.Child("valueFrom")
			ref := from.Child("fileKeyRef")
			name := c.Env[i].ValueFrom.FileKeyRef.VolumeName
			n := slices.IndexFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name })
			switch {
			case n < 0:
				ref.NotFound("volumeName", name)
			case s.Volumes[n].EmptyDir == nil:
				ref.Invalid("volumeName", name, "referenced volume must be of type emptyDir")
			}
		}
	})
}
