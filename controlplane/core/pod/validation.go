// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validatePod(p, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	if old == nil {
		return validatePodSpec(&p.Spec, path)
	}
	return validatePodChange(p, old, path)
}

// validatePodChange admits only the few changes that a Pod can follow.
func validatePodChange(p, old *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(p.Spec.Containers) != len(old.Spec.Containers) {
		return field.ErrorList{field.Forbidden(path.Child("containers"), "pod updates may not add or remove containers")}
	}
	if len(p.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return field.ErrorList{field.Forbidden(path.Child("initContainers"), "pod updates may not add or remove containers")}
	}
	for i, c := range p.Spec.Containers {
		if c.Image == "" {
			errs = append(errs, field.Required(path.Child("containers").Index(i).Child("image"), ""))
		}
	}
	if now, before := p.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds; now != nil {
		switch {
		case *now < 0 || *now > 1<<31-1:
			errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *now, validation.InclusiveRangeError(0, 1<<31-1)))
		case before != nil && *before < *now:
			errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *now, "must be less than or equal to previous value"))
		}
	} else if before != nil {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), now, "must not update from a positive integer to nil value"))
	}
	if !keepsTolerations(p.Spec.Tolerations, old.Spec.Tolerations) {
		errs = append(errs, field.Forbidden(path.Child("tolerations"), "existing toleration can not be modified except its tolerationSeconds"))
	}
	// What may change is made equal; any other difference is one too many.
	rest := p.Spec.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	rest.Tolerations = old.Spec.Tolerations
	if len(old.Spec.SchedulingGates) > 0 { // a gated Pod is not placed yet
		rest.SchedulingGates, rest.NodeSelector, rest.Affinity = old.Spec.SchedulingGates, old.Spec.NodeSelector, old.Spec.Affinity
	}
	if grace := old.Spec.TerminationGracePeriodSeconds; grace != nil && *grace < 0 && kind.Value(rest.TerminationGracePeriodSeconds) == 1 {
		rest.TerminationGracePeriodSeconds = grace
	}
	if !equality.Semantic.DeepEqual(*rest, old.Spec) {
		errs = append(errs, field.Forbidden(path, "pod updates may not change fields other than `spec.containers[*].image`,"+
			"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

// keepsTolerations tells whether all tolerations are still there.
func keepsTolerations(now, before []corev1.Toleration) bool {
	for _, old := range before {
		found := false
		for _, t := range now {
			t.TolerationSeconds = old.TolerationSeconds
			found = found || equality.Semantic.DeepEqual(t, old)
		}
		if !found {
			return false
		}
	}
	return true
}

func validatePodSpec(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	volumes := sets.New[string]()
	for i := range s.Volumes {
		v, p := &s.Volumes[i], path.Child("volumes").Index(i)
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(p.Child("name"), ""))
		case volumes.Has(v.Name):
			errs = append(errs, field.Duplicate(p.Child("name"), v.Name))
		default:
			errs = append(errs, valid.LabelName(p.Child("name"), v.Name)...)
		}
		volumes.Insert(v.Name)
		errs = append(errs, validateVolumeSource(&v.VolumeSource, p)...)
	}
	names := sets.New[string]()
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	for i := range s.Containers {
		errs = append(errs, validateContainer(&s.Containers[i], path.Child("containers").Index(i), names, volumes)...)
	}
	for i := range s.InitContainers {
		errs = append(errs, validateContainer(&s.InitContainers[i], path.Child("initContainers").Index(i), names, volumes)...)
	}
	if s.RestartPolicy == "" {
		errs = append(errs, field.Required(path.Child("restartPolicy"), ""))
	} else {
		errs = append(errs, valid.OneOf(path.Child("restartPolicy"), s.RestartPolicy,
			corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)...)
	}
	errs = append(errs, valid.OneOf(path.Child("dnsPolicy"), s.DNSPolicy,
		corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)...)
	if s.ServiceAccountName != "" {
		for _, problem := range validation.IsDNS1123Subdomain(s.ServiceAccountName) {
			errs = append(errs, field.Invalid(path.Child("serviceAccountName"), s.ServiceAccountName, problem))
		}
	}
	if s.NodeName != "" {
		for _, problem := range validation.IsDNS1123Subdomain(s.NodeName) {
			errs = append(errs, field.Invalid(path.Child("nodeName"), s.NodeName, problem))
		}
	}
	errs = append(errs, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > 1<<31-1) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, 1<<31-1)))
	}
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *g, "must be greater than or equal to 0"))
	}
	return errs
}

func validateVolumeSource(v *corev1.VolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	set := 0
	for _, name := range volumeSources(v) {
		if set++; set > 1 {
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 volume type"))
		}
	}
	if set == 0 {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	if v.Secret != nil && v.Secret.SecretName == "" {
		errs = append(errs, field.Required(path.Child("secret", "secretName"), ""))
	}
	if v.ConfigMap != nil && v.ConfigMap.Name == "" {
		errs = append(errs, field.Required(path.Child("configMap", "name"), ""))
	}
	if v.HostPath != nil && v.HostPath.Path == "" {
		errs = append(errs, field.Required(path.Child("hostPath", "path"), ""))
	}
	if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "" {
		errs = append(errs, field.Required(path.Child("persistentVolumeClaim", "claimName"), ""))
	}
	return errs
}

func validateContainer(c *corev1.Container, path *field.Path, names, volumes sets.Set[string]) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Name == "":
		errs = append(errs, field.Required(path.Child("name"), ""))
	case names.Has(c.Name):
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	default:
		errs = append(errs, valid.LabelName(path.Child("name"), c.Name)...)
	}
	names.Insert(c.Name)
	if c.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	} else if strings.TrimSpace(c.Image) != c.Image {
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	if c.ImagePullPolicy == "" {
		errs = append(errs, field.Required(path.Child("imagePullPolicy"), ""))
	} else {
		errs = append(errs, valid.OneOf(path.Child("imagePullPolicy"), c.ImagePullPolicy,
			corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	}
	if c.TerminationMessagePolicy != "" {
		errs = append(errs, valid.OneOf(path.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
			corev1.TerminationMessageFallbackToLogsOnError, corev1.TerminationMessageReadFile)...)
	}
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	for i, e := range c.Env {
		p := path.Child("env").Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else {
			for _, problem := range validation.IsRelaxedEnvVarName(e.Name) {
				errs = append(errs, field.Invalid(p.Child("name"), e.Name, problem))
			}
		}
		if e.ValueFrom != nil && e.Value != "" {
			errs = append(errs, field.Invalid(p.Child("valueFrom"), "", "may not be specified when `value` is not empty"))
		}
	}
	mounted := sets.New[string]()
	for i, m := range c.VolumeMounts {
		p := path.Child("volumeMounts").Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		} else if !volumes.Has(m.Name) {
			errs = append(errs, field.NotFound(p.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			errs = append(errs, field.Required(p.Child("mountPath"), ""))
		}
		if mounted.Has(m.MountPath) {
			errs = append(errs, field.Invalid(p.Child("mountPath"), m.MountPath, "must be unique"))
		}
		mounted.Insert(m.MountPath)
	}
	return append(errs, validateResources(&c.Resources, path.Child("resources"))...)
}

func validatePorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, port := range ports {
		p := path.Index(i)
		if port.Name != "" {
			problems := validation.IsValidPortName(port.Name)
			for _, problem := range problems {
				errs = append(errs, field.Invalid(p.Child("name"), port.Name, problem))
			}
			if len(problems) == 0 && names.Has(port.Name) {
				errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(p.Child("containerPort"), ""))
		} else {
			errs = append(errs, valid.Port(p.Child("containerPort"), port.ContainerPort)...)
		}
		if port.HostPort != 0 {
			errs = append(errs, valid.Port(p.Child("hostPort"), port.HostPort)...)
		}
		if port.Protocol == "" {
			errs = append(errs, field.Required(p.Child("protocol"), ""))
		} else {
			errs = append(errs, valid.OneOf(p.Child("protocol"), port.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		}
	}
	return errs
}

func validateResources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range kind.SortedKeys(r.Limits) {
		errs = append(errs, valid.Quantity(path.Child("limits").Key(name), r.Limits[corev1.ResourceName(name)])...)
	}
	for _, name := range kind.SortedKeys(r.Requests) {
		p, request := path.Child("requests").Key(name), r.Requests[corev1.ResourceName(name)]
		errs = append(errs, valid.Quantity(p, request)...)
		if limit, ok := r.Limits[corev1.ResourceName(name)]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(path.Child("requests"), request.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return errs
}

// ValidateTemplate checks the Pods that a template makes.
func ValidateTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	return append(errs, validatePodSpec(&t.Spec, path.Child("spec"))...)
}

// volumeSources lists the JSON names of the sources that are set, in order.
func volumeSources(v *corev1.VolumeSource) []string {
	var out []string
	fields := reflect.ValueOf(v).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).IsNil() {
			out = append(out, jsonName(fields.Type().Field(i)))
		}
	}
	return out
}

func jsonName(f reflect.StructField) string {
	tag := f.Tag.Get("json")
	if i := slices.Index([]byte(tag), ','); i >= 0 {
		return tag[:i]
	}
	return tag
}
