// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/internal/fastname"
)

// surroundings of a container: what the rest of its Pod says.
type surroundings struct {
	volumes map[string]*corev1.VolumeSource
	claims  sets.Set[string]
	spec    *corev1.PodSpec
}

func (s *surroundings) hostUsers() bool { return s.spec.HostUsers == nil || *s.spec.HostUsers }

// checkContainers has the rules of the containers that do the work.
func (s *surroundings) checkContainers(f *valid.Field) {
	if len(s.spec.Containers) == 0 {
		f.Required(valid.Self, "")
		return
	}
	names := sets.New[string]()
	for i := range s.spec.Containers {
		c, at := &s.spec.Containers[i], f.Index(i)
		s.checkContainer(&at, c)
		if names.Has(c.Name) {
			at.Duplicate("name", c.Name)
		}
		names.Insert(c.Name)
		s.checkLife(&at, c)
		checkRestart(&at, c.RestartPolicy, c.RestartPolicyRules)
	}
	checkHostPorts(f, s.spec.Containers, 0)
}

// checkInitContainers has those of the containers that run before, or beside.
func (s *surroundings) checkInitContainers(f *valid.Field) {
	names := sets.New[string]()
	for i := range s.spec.Containers {
		names.Insert(s.spec.Containers[i].Name)
	}
	for i := range s.spec.InitContainers {
		c, at := &s.spec.InitContainers[i], f.Index(i)
		s.checkContainer(&at, c)
		checkRestart(&at, c.RestartPolicy, c.RestartPolicyRules)
		if names.Has(c.Name) {
			at.Duplicate("name", c.Name)
		} else if c.Name != "" {
			names.Insert(c.Name)
		}
		checkHostPorts(f, s.spec.InitContainers[i:i+1], 0)
		if IsSidecar(c) {
			s.checkLife(&at, c)
			continue
		}
		const only = "may not be set for init containers without restartPolicy=Always"
		if c.Lifecycle != nil {
			at.Forbidden("lifecycle", only)
		}
		if c.LivenessProbe != nil {
			at.Forbidden("livenessProbe", only)
		}
		if c.ReadinessProbe != nil {
			at.Forbidden("readinessProbe", only)
		}
		if c.StartupProbe != nil {
			at.Forbidden("startupProbe", only)
		}
		for j, p := range c.ResizePolicy {
			if p.RestartPolicy == corev1.RestartContainer {
				policies := at.Child("resizePolicy")
				policy := policies.Index(j)
				policy.Invalid("restartPolicy", p.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers")
			}
		}
	}
}

// IsSidecar reports whether an init container runs beside the others.
func IsSidecar(c *corev1.Container) bool {
	return kind.Value(c.RestartPolicy) == corev1.ContainerRestartPolicyAlways
}

// checkEphemeralContainers has those of the containers that people look around
// with.
func (s *surroundings) checkEphemeralContainers(f *valid.Field) {
	others := sets.New[string]()
	for _, c := range slices.Concat(s.spec.Containers, s.spec.InitContainers) {
		others.Insert(c.Name)
	}
	names := others.Clone()
	for i := range s.spec.EphemeralContainers {
		e, at := &s.spec.EphemeralContainers[i], f.Index(i)
		c := (*corev1.Container)(&e.EphemeralContainerCommon)
		s.checkContainer(&at, c)
		CheckImage(&at, c)
		if names.Has(e.Name) {
			at.Duplicate("name", e.Name)
		}
		names.Insert(e.Name)
		if e.TargetContainerName != "" && !others.Has(e.TargetContainerName) {
			at.NotFound("targetContainerName", e.TargetContainerName)
		}
		checkEphemeralFields(&at, c)
	}
}

// checkEphemeralFields refuses what a container that was not planned for cannot
// have.
func checkEphemeralFields(f *valid.Field, c *corev1.Container) {
	const never = "cannot be set for an Ephemeral Container"
	fields := reflect.ValueOf(c).Elem()
	for i := range fields.NumField() {
		switch name := fields.Type().Field(i).Name; name {
		case "Name", "Image", "Command", "Args", "WorkingDir", "EnvFrom", "Env", "VolumeMounts", "VolumeDevices", "TerminationMessagePath",
			"TerminationMessagePolicy", "ImagePullPolicy", "SecurityContext", "Stdin", "StdinOnce", "TTY":
		default:
			if !fields.Field(i).IsZero() {
				f.Forbidden(strings.ToLower(name[:1])+name[1:], never)
			}
		}
	}
	for i, m := range c.VolumeMounts {
		mounts := f.Child("volumeMounts")
		at := mounts.Index(i)
		if m.SubPath != "" {
			at.Forbidden("subPath", never)
		}
		if m.SubPathExpr != "" {
			at.Forbidden("subPathExpr", never)
		}
	}
}

// checkContainer has the rules of all containers.
func (s *surroundings) checkContainer(f *valid.Field, c *corev1.Container) {
	if f.NonEmpty("name", c.Name) {
		f.DNSLabel("name", c.Name)
	}
	f.NonEmpty("image", c.Image)
	valid.RequiredOf(f, "terminationMessagePolicy", c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	at := f.Child("ports")
	checkPorts(&at, c.Ports)
	at = f.Child("env")
	checkEnv(&at, c.Env)
	at = f.Child("envFrom")
	checkEnvFrom(&at, c.EnvFrom)
	at = f.Child("volumeMounts")
	s.checkMounts(&at, c)
	at = f.Child("volumeDevices")
	s.checkDevices(&at, c)
	valid.RequiredOf(f, "imagePullPolicy", c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	at = f.Child("resources")
	checkResources(&at, &c.Resources, CheckContainerResource, s.claims)
	at = f.Child("resizePolicy")
	s.checkResizePolicy(&at, c.ResizePolicy)
	at = f.Child("securityContext")
	checkSecurity(&at, c.SecurityContext, s.hostUsers())
}

// CheckImage has what is asked of the image of a Pod, but not of a template.
func CheckImage(f *valid.Field, c *corev1.Container) {
	if strings.TrimSpace(c.Image) != c.Image {
		f.Invalid("image", c.Image, "must not have leading or trailing whitespace")
	}
}

// portName validates the name of a port.
func portName(name string) []string {
	if fastname.PortName(name) {
		return nil
	}
	return validation.IsValidPortName(name)
}

func checkPorts(f *valid.Field, ports []corev1.ContainerPort) {
	names := sets.New[string]()
	for i := range ports {
		p, at := &ports[i], f.Index(i)
		if p.Name != "" {
			if problems := portName(p.Name); len(problems) > 0 {
				at.Problems("name", p.Name, problems)
			} else if names.Has(p.Name) {
				at.Duplicate("name", p.Name)
			} else {
				names.Insert(p.Name)
			}
		}
		if p.ContainerPort == 0 {
			at.Required("containerPort", "")
		} else {
			at.Port("containerPort", p.ContainerPort)
		}
		if p.HostPort != 0 {
			at.Port("hostPort", p.HostPort)
		}
		valid.RequiredOf(&at, "protocol", p.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
	}
}

// checkHostPorts looks for ports of the node that are taken twice.
func checkHostPorts(f *valid.Field, containers []corev1.Container, from int) {
	taken := sets.New[string]()
	for i := range containers {
		for j, p := range containers[i].Ports {
			if p.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
			if taken.Has(key) {
				container := f.Index(from + i)
				ports := container.Child("ports")
				at := ports.Index(j)
				at.Duplicate("hostPort", key)
			}
			taken.Insert(key)
		}
	}
}

// checkResizePolicy says what a change of resources does to a container.
func (s *surroundings) checkResizePolicy(f *valid.Field, policies []corev1.ContainerResizePolicy) {
	seen := map[corev1.ResourceName]bool{}
	for i, p := range policies {
		if seen[p.ResourceName] {
			at := f.Index(i)
			at.Duplicate(valid.Self, p.ResourceName)
		}
		seen[p.ResourceName] = true
		valid.RequiredOf(f, valid.Self, p.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		valid.RequiredOf(f, valid.Self, p.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		if s.spec.RestartPolicy == corev1.RestartPolicyNever && p.RestartPolicy != corev1.NotRequired {
			f.Invalid(valid.Self, p.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

// checkRestart has the rules of a container that restarts otherwise than its Pod.
func checkRestart(f *valid.Field, policy *corev1.ContainerRestartPolicy, rules []corev1.ContainerRestartRule) {
	if policy == nil {
		if len(rules) > 0 {
			f.Required("restartPolicy", "must specify restartPolicy when restart rules are used")
		} else {
			return
		}
	} else {
		valid.Supported(f, "restartPolicy", *policy, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	}
	if len(rules) > 20 {
		f.TooMany("restartPolicyRules", len(rules), 20)
	}
	list := f.Child("restartPolicyRules")
	for i, r := range rules {
		at := list.Index(i)
		valid.Supported(&at, "action", r.Action, corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)
		if r.ExitCodes == nil {
			at.Required("exitCodes", "must be specified")
			continue
		}
		codes := at.Child("exitCodes")
		valid.Supported(&codes, "operator", r.ExitCodes.Operator, corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)
		if n := len(r.ExitCodes.Values); n > 255 {
			codes.TooMany("values", n, 255)
		}
	}
}

// resourceRule checks which resources may be asked for somewhere.
type resourceRule func(f *valid.Field, name string)

// CheckContainerResource checks the name of a resource that containers ask for.
func CheckContainerResource(f *valid.Field, name string) {
	standardResource(f, name)
	switch {
	case !strings.Contains(name, "/"):
		switch corev1.ResourceName(name) {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		default:
			if !valid.IsHugePages(name) {
				f.Invalid(valid.Self, name, "must be a standard resource for containers")
			}
		}
	case !valid.IsNativeResource(name) && !valid.IsExtendedResource(name):
		f.Invalid(valid.Self, name, "doesn't follow extended resource name standard")
	}
}

func podResource(f *valid.Field, name string) {
	before := f.Len()
	standardResource(f, name)
	if f.Len() == before && !valid.IsHugePages(name) {
		valid.Supported(f, valid.Self, name, string(corev1.ResourceCPU), valid.HugePagesPrefix, string(corev1.ResourceMemory))
	}
}

// standardResource checks that a resource is known or has a domain.
func standardResource(f *valid.Field, name string) {
	before := f.Len()
	f.Qualified(valid.Self, name)
	if f.Len() == before && !strings.Contains(name, "/") && !valid.IsStandardResource(name) {
		f.Invalid(valid.Self, name, "must be a standard resource type or fully qualified")
	}
}

func checkResources(f *valid.Field, r *corev1.ResourceRequirements, rule resourceRule, claims sets.Set[string]) {
	if !fastAmounts(r) {
		checkAmounts(f, r, rule)
	}
	at := f.Child("claims")
	checkClaimNames(&at, r.Claims, claims)
}

// checkAmounts has the rules of how much there is of each resource.
func checkAmounts(f *valid.Field, r *corev1.ResourceRequirements, rule resourceRule) {
	limits, requests := f.Child("limits"), f.Child("requests")
	var huge, ordinary bool
	note := func(name corev1.ResourceName) {
		huge = huge || valid.IsHugePages(string(name))
		ordinary = ordinary || name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		at := limits.Key(string(name))
		rule(&at, string(name))
		at.Quantity(valid.Self, string(name), r.Limits[name])
		at.HugePages(string(name), r.Limits[name])
		note(name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		at, q := requests.Key(string(name)), r.Requests[name]
		rule(&at, string(name))
		at.Quantity(valid.Self, string(name), q)
		fixed := !valid.IsNativeResource(string(name)) || valid.IsHugePages(string(name))
		limit, limited := r.Limits[name]
		switch {
		case limited && fixed && q.Cmp(limit) != 0:
			requests.Invalid(valid.Self, q.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
		case limited && q.Cmp(limit) > 0:
			requests.Invalid(valid.Self, q.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
		case !limited && fixed:
			limits.Required(valid.Self, "Limit must be set for non overcommitable resources")
		}
		at.HugePages(string(name), q)
		note(name)
	}
	if huge && !ordinary {
		f.Forbidden(valid.Self, "HugePages require cpu or memory")
	}
}

// fastAmounts reports whether what is asked for is certainly valid for every kind: cpu and
// memory, of which no more is asked for than allowed. All else is for the rules.
//
//steer:fast names
func fastAmounts(r *corev1.ResourceRequirements) bool {
	for name, limit := range r.Limits {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory || limit.Sign() < 0 {
			return false
		}
	}
	for name, q := range r.Requests {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory || q.Sign() < 0 {
			return false
		}
		if limit, limited := r.Limits[name]; limited && q.Cmp(limit) > 0 {
			return false
		}
	}
	return true
}

// checkClaimNames has the rules of the devices that a container takes from those
// of its Pod.
func checkClaimNames(f *valid.Field, claims []corev1.ResourceClaim, known sets.Set[string]) {
	if len(claims) == 0 {
		return
	}
	names := sets.New[string]()
	for i, c := range claims {
		at := f.Index(i)
		if !at.NonEmpty(valid.Self, c.Name) {
			continue
		}
		if names.Has(c.Name) {
			at.Duplicate(valid.Self, c.Name)
		} else {
			key := c.Name
			if c.Request != "" {
				at.DNSLabel("request", c.Request)
				key += "/" + c.Request
			}
			if names.Has(key) {
				at.Duplicate(valid.Self, key)
			} else if c.Request == "" {
				for _, other := range sets.List(names) {
					if claim, _, partial := strings.Cut(other, "/"); partial && claim == c.Name {
						at.Duplicate(valid.Self, c.Name)
					}
				}
			}
			names.Insert(key)
		}
		if !known.Has(c.Name) {
			at.NotFound(valid.Self, c.Name)
			detail := "must be one of the names in pod.spec.resourceClaims which is empty"
			if len(known) > 0 {
				detail = "must be one of the names in pod.spec.resourceClaims: " + strings.Join(sets.List(known), ", ")
			}
			at.Last().Detail = detail
		}
	}
}
