// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/internal/fastname"
)

const notNegative = "must be greater than or equal to 0"

// Subdomain checks a name of an object of most kinds.
func (f *Field) Subdomain(name, value string) {
	if !fastname.Subdomain(value) {
		f.Problems(name, value, validation.IsDNS1123Subdomain(value))
	}
}

// DNSLabel checks a name that becomes a label of a domain name.
func (f *Field) DNSLabel(name, value string) {
	if !fastname.Label(value) {
		f.Problems(name, value, validation.IsDNS1123Label(value))
	}
}

// Namespace checks the name of a namespace.
func (f *Field) Namespace(name, value string) {
	f.Problems(name, value, apivalidation.ValidateNamespaceName(value, false))
}

// PathSegment requires a name that can be a segment of a path.
func (f *Field) PathSegment(name, value string) {
	if f.NonEmpty(name, value) {
		f.OptionalPathSegment(name, value)
	}
}

// OptionalPathSegment checks the same of a name that may be missing, or of which that it is
// there is declared.
func (f *Field) OptionalPathSegment(name, value string) {
	f.Problems(name, value, content.IsPathSegmentName(value))
}

// Qualified checks a name that may have a domain.
func (f *Field) Qualified(name, value string) {
	if !fastname.Qualified(value) {
		f.Problems(name, value, validation.IsQualifiedName(value))
	}
}

// LabelKey checks the key of a label.
func (f *Field) LabelKey(name, value string) {
	if fastname.Qualified(value) {
		return
	}
	if problems := validation.IsQualifiedName(value); len(problems) > 0 {
		f.Add(metavalidation.ValidateLabelName(value, f.path(name))...)
	}
}

// Labels checks keys and values of labels.
func (f *Field) Labels(name string, labels map[string]string) {
	for key, value := range labels {
		if !fastname.Qualified(key) || value != "" && !fastname.LabelValue(value) {
			f.Add(metavalidation.ValidateLabels(labels, f.path(name))...)
			return
		}
	}
}

// Annotations checks keys and size of annotations.
func (f *Field) Annotations(name string, annotations map[string]string) {
	if len(annotations) > 0 {
		f.Add(apivalidation.ValidateAnnotations(annotations, f.path(name))...)
	}
}

// TemplateMetadata checks metadata that others will complete: labels and annotations.
func (f *Field) TemplateMetadata(m *metav1.ObjectMeta) {
	f.Annotations("annotations", m.Annotations)
	f.Labels("labels", m.Labels)
	fields := reflect.ValueOf(m).Elem()
	for i := range fields.NumField() {
		switch name := fields.Type().Field(i).Name; name {
		case "Annotations", "Labels":
		default:
			if !fields.Field(i).IsZero() {
				f.Forbidden(strings.ToLower(name[:1])+name[1:], "cannot be set")
			}
		}
	}
}

// Selector checks a label selector; nil is valid.
func (f *Field) Selector(name string, s *metav1.LabelSelector) {
	if s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		f.Add(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, f.path(name))...)
	}
}

// Port checks the number of a port.
func (f *Field) Port(name string, port int32) {
	f.Problems(name, port, validation.IsValidPortNum(int(port)))
}

// PortOrName checks the number or the name of a port.
func (f *Field) PortOrName(name string, port intstr.IntOrString) {
	switch {
	case port.Type == intstr.Int:
		f.Problems(name, port.IntValue(), validation.IsValidPortNum(port.IntValue()))
	case !fastname.PortName(port.StrVal):
		f.Problems(name, port.StrVal, validation.IsValidPortName(port.StrVal))
	}
}

// Between checks a number against its bounds, both included.
func (f *Field) Between(name string, n int64, low, high int) {
	if n < int64(low) || n > int64(high) {
		f.Invalid(name, n, validation.InclusiveRangeError(low, high))
	}
}

// FileMode checks the mode bits of a file; nil is valid.
func (f *Field) FileMode(name string, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		f.Invalid(name, *mode, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

// NoBacksteps checks that a path does not leave its directory.
func (f *Field) NoBacksteps(name, value string) {
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			f.Invalid(name, value, "must not contain '..'")
			return
		}
	}
}

// Descending checks a path inside a directory.
func (f *Field) Descending(name, value string) {
	if path.IsAbs(value) {
		f.Invalid(name, value, "must be a relative path")
	}
	f.NoBacksteps(name, value)
}

// Unreserved checks a path inside a directory whose names with two dots are the
// kubelet's.
func (f *Field) Unreserved(name, value string) {
	f.Descending(name, value)
	if strings.HasPrefix(value, "..") && !strings.HasPrefix(value, "../") {
		f.Invalid(name, value, "must not start with '..'")
	}
}

// IP checks an address.
func (f *Field) IP(name, value string) {
	if problems := validation.IsValidIPForLegacyField(nil, value, true, nil); len(problems) > 0 {
		f.Add(validation.IsValidIPForLegacyField(f.path(name), value, true, nil)...)
	}
}

// CIDR checks a range of addresses.
func (f *Field) CIDR(name, value string) {
	if problems := validation.IsValidCIDRForLegacyField(nil, value, true, nil); len(problems) > 0 {
		f.Add(validation.IsValidCIDRForLegacyField(f.path(name), value, true, nil)...)
	}
}

// Unchanged checks that a field has not changed.
func (f *Field) Unchanged(name string, now, before any) {
	if !equality.Semantic.DeepEqual(now, before) {
		f.Add(field.Invalid(f.path(name), shown(now), "field is immutable").WithOrigin("immutable"))
	}
}

// Immutable is Unchanged for the fields whose errors do not show the value.
func (f *Field) Immutable(name string, now, before any) {
	if !equality.Semantic.DeepEqual(now, before) {
		f.Add(field.Invalid(f.path(name), nil, "field is immutable").WithOrigin("immutable"))
	}
}

// shown is a value as errors show it: structs with the names of Go.
func shown(v any) any {
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && t.Kind() == reflect.Struct {
		return Untagged(v)
	}
	return v
}

// Amount checks a count or percentage, as ValidatePositiveIntOrPercent of Kubernetes does.
func (f *Field) Amount(name string, v intstr.IntOrString) {
	if v.Type == intstr.String {
		f.Problems(name, v, validation.IsValidPercent(v.StrVal))
	} else {
		f.NotNegative(name, int64(v.IntVal))
	}
}

// AtMost100Percent checks a percentage, as IsNotMoreThan100Percent of Kubernetes does; counts
// are valid.
func (f *Field) AtMost100Percent(name string, v intstr.IntOrString) {
	if n, ok := Percentage(v); ok && n > 100 {
		f.Invalid(name, v, "must not be greater than 100%")
	}
}

// Percentage reports whether a value is a valid percentage, and which.
func Percentage(v intstr.IntOrString) (int, bool) {
	if v.Type != intstr.String || len(validation.IsValidPercent(v.StrVal)) > 0 {
		return 0, false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, 100, false)
	return n, err == nil
}

// Finalizers checks that the finalizers of an object which have no domain are those of
// Kubernetes.
func (f *Field) Finalizers(name string, finalizers []string) {
	list := f.Child(name)
	for i, finalizer := range finalizers {
		at := list.Index(i)
		at.Finalizer(Self, finalizer)
	}
}

// Finalizer checks one of them.
func (f *Field) Finalizer(name, value string) {
	switch {
	case strings.Contains(value, "/"), value == string(corev1.FinalizerKubernetes), value == metav1.FinalizerOrphanDependents, value == metav1.FinalizerDeleteDependents:
		return
	}
	f.Invalid(name, value, "name is neither a standard finalizer name nor is it fully qualified")
}

// QuantityNotNegative checks an amount.
func (f *Field) QuantityNotNegative(name string, q resource.Quantity) {
	if q.Sign() < 0 {
		f.Add(field.Invalid(f.path(name), q.String(), notNegative).WithOrigin("minimum"))
	}
}

// Quantity checks the amount of a resource, which for some is a count.
func (f *Field) Quantity(name, resourceName string, q resource.Quantity) {
	if q.Sign() < 0 {
		f.Invalid(name, q.String(), notNegative)
	}
	if countedInWhole(resourceName) && q.MilliValue()%1000 != 0 {
		f.Invalid(name, q.String(), "must be an integer")
	}
}

// countedInWhole reports whether there is no half of a resource: objects in quotas,
// and what devices and others extend nodes with.
func countedInWhole(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return IsExtendedResource(name)
}

// IsNativeResource reports whether a resource is one of Kubernetes itself.
func IsNativeResource(name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, corev1.ResourceDefaultNamespacePrefix)
}

// IsExtendedResource reports whether a resource is an extended resource of nodes.
func IsExtendedResource(name string) bool {
	if IsNativeResource(name) || strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

// IsHugePages reports whether a resource is memory in large pages.
func IsHugePages(name string) bool { return strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) }

// hugePages checks that an amount of memory is made of its pages.
func (f *Field) hugePages(name string, q resource.Quantity) {
	size, err := resource.ParseQuantity(strings.TrimPrefix(name, corev1.ResourceHugePagesPrefix))
	if err != nil || size.Sign() <= 0 || size.MilliValue()%1000 != 0 || q.Value()%size.Value() != 0 {
		f.Invalid(Self, q.String(), fmt.Sprintf("%s is not positive integer multiple of %s", q.String(), name))
	}
}

// HugePages checks an amount of any resource; those that are not of large pages
// are valid.
func (f *Field) HugePages(name string, q resource.Quantity) {
	if IsHugePages(name) {
		f.hugePages(name, q)
	}
}

// HugePagesPrefix begins the names of memory in large pages.
const HugePagesPrefix = corev1.ResourceHugePagesPrefix

// IsStandardResource reports whether Kubernetes knows a resource that has no
// domain.
func IsStandardResource(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceRequestsStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
		corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return IsHugePages(name) || strings.HasPrefix(name, corev1.ResourceRequestsHugePagesPrefix)
}
