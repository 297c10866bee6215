// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateStatus(p, old *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	root, now, before := valid.Root(&errs), &p.Status, &old.Status
	metadata := root.Child("metadata")
	annotations := metadata.Child("annotations")
	checkAnnotationChange(&annotations, p.Annotations, old.Annotations)
	if p.Annotations != nil {
		podspec.CheckAnnotations(&annotations, p.Annotations, &p.Spec)
	}
	f := root.Child("status")
	checkConditions(&f, now.Conditions)
	if name := now.NominatedNodeName; name != "" && name != before.NominatedNodeName {
		f.Subdomain("nominatedNodeName", name)
		if old.Spec.NodeName != "" {
			f.Forbidden("nominatedNodeName", "may not be set on pods that are already bound to a node")
		}
	}
	if now.ObservedGeneration < 0 {
		f.Invalid("observedGeneration", now.ObservedGeneration, negativeGeneration)
	}
	f.Unchanged("qosClass", now.QOSClass, before.QOSClass)
	checkContainerStatuses(&f, p, old)
	checkClaimStatuses(&f, now, &p.Spec)
	checkExtendedClaims(&f, now.ExtendedResourceClaimStatus, &p.Spec)
	checkAddresses(&f, "podIPs", now.PodIPs, before.PodIPs, func(a corev1.PodIP) string { return a.IP })
	if len(now.HostIPs) > 0 && now.HostIP != now.HostIPs[0].IP {
		list := f.Child("hostIPs")
		at := list.Index(0)
		at.Invalid("ip", now.HostIPs[0].IP, "must be equal to `hostIP`")
	}
	checkAddresses(&f, "hostIPs", now.HostIPs, before.HostIPs, func(a corev1.HostIP) string { return a.IP })
	return errs
}

const negativeGeneration = "must be a non-negative integer"

// checkConditions has the rules of conditions, of which others may add any.
func checkConditions(f *valid.Field, conditions []corev1.PodCondition) {
	list := f.Child("conditions")
	for i, c := range conditions {
		at := list.Index(i)
		if c.ObservedGeneration < 0 {
			at.Invalid("observedGeneration", c.ObservedGeneration, negativeGeneration)
		}
		switch c.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized:
		default:
			at.Qualified("Type", string(c.Type)) // so spelled on the wire
		}
	}
}

// checkAddresses admits one address of each family. Those that were there before
// may stay as they are.
func checkAddresses[T any](f *valid.Field, name string, now, before []T, ip func(T) string) {
	var known, addresses []string
	for _, a := range before {
		known = append(known, ip(a))
	}
	list := f.Child(name)
	for i, a := range now {
		at := list.Index(i)
		at.Add(validation.IsValidIPForLegacyField(at.Path(), ip(a), true, known)...)
		addresses = append(addresses, ip(a))
	}
	if len(now) < 2 {
		return
	}
	both, err := netutils.IsDualStackIPStrings(addresses)
	if err != nil {
		list.Add(field.InternalError(list.Path(), fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !both || len(now) > 2 {
		list.Invalid(valid.Self, valid.Untagged(now), "may specify no more than one IP for each IP family")
	}
}

// checkContainerStatuses has the rules of what a kubelet says of containers.
func checkContainerStatuses(f *valid.Field, p, old *corev1.Pod) {
	spec := &p.Spec
	anyRestarts := slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	})
	for _, l := range []struct {
		name        string
		now, before []corev1.ContainerStatus
		containers  []corev1.Container
		ephemeral   bool
	}{
		{"containerStatuses", p.Status.ContainerStatuses, old.Status.ContainerStatuses, spec.Containers, false},
		{"initContainerStatuses", p.Status.InitContainerStatuses, old.Status.InitContainerStatuses, spec.InitContainers, false},
		{"ephemeralContainerStatuses", p.Status.EphemeralContainerStatuses, old.Status.EphemeralContainerStatuses, nil, true},
	} {
		list := f.Child(l.name)
		if l.ephemeral || !anyRestarts {
			checkStaysEnded(&list, l.now, l.before, l.containers, spec.RestartPolicy)
		}
		for i := range l.now {
			s, at := &l.now[i], list.Index(i)
			checkUser(&at, s.User, spec.OS)
			if l.ephemeral {
				if len(s.AllocatedResourcesStatus) > 0 {
					at.Forbidden("allocatedResourcesStatus", "must not be specified in container status")
				}
				continue
			}
			checkHealth(&at, s, l.containers)
		}
	}
}

// checkStaysEnded refuses to let containers run again that have ended for good.
func checkStaysEnded(f *valid.Field, now, before []corev1.ContainerStatus, containers []corev1.Container, policy corev1.RestartPolicy) {
	for i, was := range before {
		if was.State.Terminated == nil {
			continue
		}
		n := slices.IndexFunc(now, func(s corev1.ContainerStatus) bool { return s.Name == was.Name && s.State.Terminated == nil })
		if n < 0 {
			continue
		}
		c := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == was.Name })
		if c < 0 || !restarts(&containers[c], policy, was.State.Terminated.ExitCode) {
			at := f.Index(i)
			at.Forbidden("state", "may not be transitioned to non-terminated state")
		}
	}
}

// restarts reports whether a container runs again after it has ended with a code:
// by the first of its rules that matches, by its own policy, by that of the Pod.
func restarts(c *corev1.Container, policy corev1.RestartPolicy, code int32) bool {
	own := policy
	if c.RestartPolicy != nil {
		for _, r := range c.RestartPolicyRules {
			if r.ExitCodes == nil {
				continue
			}
			listed := slices.Contains(r.ExitCodes.Values, code)
			if listed == (r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return true // both actions there are
			}
		}
		own = corev1.RestartPolicy(*c.RestartPolicy)
	}
	return own == corev1.RestartPolicyAlways || own == corev1.RestartPolicyOnFailure && code != 0
}

func checkUser(f *valid.Field, u *corev1.ContainerUser, os *corev1.PodOS) {
	if u == nil || u.Linux == nil {
		return
	}
	user := f.Child("user")
	if os != nil && os.Name == corev1.Windows {
		user.Forbidden("linux", "cannot be set for a windows pod")
		return
	}
	at := user.Child("linux")
	if id := u.Linux.UID; id < 0 || id > math.MaxUint32 { // what a runtime has found, not what a Pod may ask for
		at.Invalid("uid", id, fmt.Sprintf("must be between 0 and %d, inclusive", int64(math.MaxUint32)))
	}
	at.Problems("gid", u.Linux.GID, validation.IsValidGroupID(u.Linux.GID))
	groups := at.Child("supplementalGroups")
	for i, id := range u.Linux.SupplementalGroups {
		group := groups.Index(i)
		group.Problems(valid.Self, id, validation.IsValidGroupID(id))
	}
}

// checkHealth has the rules of the devices that a container was given.
func checkHealth(f *valid.Field, s *corev1.ContainerStatus, containers []corev1.Container) {
	list := f.Child("allocatedResourcesStatus")
	n := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
	for i, a := range s.AllocatedResourcesStatus {
		at := list.Index(i)
		if n >= 0 {
			checkHealthName(&at, string(a.Name), &containers[n].Resources)
		}
		resources, seen := at.Child("resources"), sets.New[corev1.ResourceID]()
		for j, r := range a.Resources {
			one := resources.Index(j)
			valid.Supported(&one, "health", r.Health, corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown)
			switch {
			case r.Message == nil:
			case *r.Message == "":
				one.Required("message", "must be non-empty if specified")
			case len(*r.Message) > corev1.ResourceHealthMessageMaxLength:
				one.TooLong("message", corev1.ResourceHealthMessageMaxLength)
			}
			if seen.Has(r.ResourceID) {
				one.Duplicate("resourceID", r.ResourceID)
			}
			seen.Insert(r.ResourceID)
		}
	}
}

func checkHealthName(f *valid.Field, name string, r *corev1.ResourceRequirements) {
	if len(name) < len(claimPrefix) || name[:len(claimPrefix)] != claimPrefix {
		if _, ok := r.Requests[corev1.ResourceName(name)]; !ok {
			f.Invalid("name", name, "must match one of the container's resource requests")
		}
		return
	}
	if !slices.ContainsFunc(r.Claims, func(c corev1.ResourceClaim) bool {
		full := claimPrefix + c.Name
		if c.Request != "" {
			full += "/" + c.Request
		}
		return full == name
	}) {
		f.Invalid("name", name,
			"must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty")
	}
}

// claimPrefix begins the name of a resource that comes from a claim.
const claimPrefix = "claim:"

// checkClaimStatuses has the rules of the claims that were made for a Pod.
func checkClaimStatuses(f *valid.Field, s *corev1.PodStatus, spec *corev1.PodSpec) {
	list, seen := f.Child("resourceClaimStatuses"), sets.New[string]()
	for i, c := range s.ResourceClaimStatuses {
		at := list.Index(i)
		if !slices.ContainsFunc(spec.ResourceClaims, func(r corev1.PodResourceClaim) bool { return r.Name == c.Name }) {
			at.Invalid("name", c.Name, "must match the name of an entry in `spec.resourceClaims`")
		}
		if seen.Has(c.Name) {
			at.Duplicate("name", c.Name)
		}
		seen.Insert(c.Name)
		if c.ResourceClaimName != nil {
			at.Subdomain("resourceClaimName", *c.ResourceClaimName)
		}
	}
}

// checkExtendedClaims has the rules of the claim that stands for the extended
// resources that containers request.
func checkExtendedClaims(in *valid.Field, s *corev1.PodExtendedResourceClaimStatus, spec *corev1.PodSpec) {
	if s == nil {
		return
	}
	f := in.Child("extendedResourceClaimStatus")
	list, seen := f.Child("requestMappings"), sets.New[corev1.ContainerExtendedResourceRequest]()
	if len(s.RequestMappings) == 0 {
		list.Required(valid.Self, "at least one request mapping is required")
	}
	all := slices.Concat(spec.InitContainers, spec.Containers)
	for i, m := range s.RequestMappings {
		at := list.Index(i)
		n := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == m.ContainerName })
		if n < 0 {
			at.Invalid("containerName", m.ContainerName, "must match the name of an entry in spec.initContainers.name or spec.containers.name")
		} else if _, ok := all[n].Resources.Requests[corev1.ResourceName(m.ResourceName)]; !ok {
			at.Invalid("resourceName", m.ResourceName,
				"must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests")
		}
		f.DNSLabel("requestName", m.RequestName) // without its place in the list on the wire
		if seen.Has(m) {
			at.Duplicate("containerName", m.ContainerName)
			at.Duplicate("resourceName", m.ResourceName)
			at.Duplicate("requestName", m.RequestName)
		}
		seen.Insert(m)
	}
	if f.NonEmpty("resourceClaimName", s.ResourceClaimName) {
		f.Subdomain("resourceClaimName", s.ResourceClaimName)
	}
}
