// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
)

func validateService(s, old *corev1.Service) field.ErrorList {
	errs := validName(s, old, apivalidation.NameIsDNS1035Label)
	at, spec := field.NewPath("spec"), &s.Spec
	headless := spec.ClusterIP == corev1.ClusterIPNone
	if len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName {
		errs = append(errs, field.Required(at.Child("ports"), ""))
	}
	if spec.Type == corev1.ServiceTypeExternalName {
		if spec.ExternalName == "" {
			errs = append(errs, field.Required(at.Child("externalName"), ""))
		} else {
			for _, problem := range validation.IsDNS1123Subdomain(spec.ExternalName) {
				errs = append(errs, field.Invalid(at.Child("externalName"), spec.ExternalName, problem))
			}
		}
	}
	names := sets.New[string]()
	for i := range spec.Ports {
		p, port := at.Child("ports").Index(i), &spec.Ports[i]
		if port.Name == "" {
			if len(spec.Ports) > 1 {
				errs = append(errs, field.Required(p.Child("name"), ""))
			}
		} else {
			errs = append(errs, validLabelName(p.Child("name"), port.Name)...)
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		errs = append(errs, validPort(p.Child("port"), port.Port)...)
		errs = append(errs, supported(p.Child("protocol"), port.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		if port.TargetPort.Type == intstr.Int {
			errs = append(errs, validPort(p.Child("targetPort"), port.TargetPort.IntVal)...)
		} else {
			for _, problem := range validation.IsValidPortName(port.TargetPort.StrVal) {
				errs = append(errs, field.Invalid(p.Child("targetPort"), port.TargetPort, problem))
			}
		}
	}
	errs = append(errs, supported(at.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)...)
	errs = append(errs, supported(at.Child("type"), spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	if old != nil && old.Spec.Type != corev1.ServiceTypeExternalName && spec.Type != corev1.ServiceTypeExternalName && old.Spec.ClusterIP != "" {
		errs = append(errs, immutable(at.Child("clusterIP"), spec.ClusterIP, old.Spec.ClusterIP)...)
	}
	return errs
}

func validateEndpointSlice(e, old *discoveryv1.EndpointSlice) field.ErrorList {
	at := field.NewPath("addressType")
	var errs field.ErrorList
	if e.AddressType == "" {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, supported(at, e.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)...)
	}
	for i, endpoint := range e.Endpoints {
		if len(endpoint.Addresses) == 0 {
			errs = append(errs, field.Required(field.NewPath("endpoints").Index(i).Child("addresses"), "must contain at least 1 address"))
		}
	}
	if old != nil {
		errs = append(errs, immutable(at, e.AddressType, old.AddressType)...)
	}
	return errs
}

func validateClaim(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	at, s := field.NewPath("spec"), &c.Spec
	var errs field.ErrorList
	if len(s.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	for _, mode := range s.AccessModes {
		errs = append(errs, supported(at.Child("accessModes"), mode, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
	}
	if size, ok := s.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(at.Child("resources").Key("storage"), ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("resources").Key("storage"), size.String(), "must be greater than zero"))
	}
	if old == nil {
		return errs
	}
	rest := s.DeepCopy()
	rest.Resources.Requests = old.Spec.Resources.Requests
	rest.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	if old.Spec.VolumeName == "" {
		rest.VolumeName = "" // the binder's to set
	}
	if old.Spec.StorageClassName == nil {
		rest.StorageClassName = nil
	}
	if !equality.Semantic.DeepEqual(*rest, old.Spec) {
		errs = append(errs, field.Forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"))
	}
	return errs
}

func validateVolume(v, old *corev1.PersistentVolume) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if len(v.Spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), ""))
	}
	if len(v.Spec.Capacity) == 0 {
		errs = append(errs, field.Required(at.Child("capacity"), ""))
	} else if _, ok := v.Spec.Capacity[corev1.ResourceStorage]; !ok || len(v.Spec.Capacity) > 1 {
		errs = append(errs, field.NotSupported(at.Child("capacity"), v.Spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	if v.Spec.PersistentVolumeSource == (corev1.PersistentVolumeSource{}) {
		errs = append(errs, field.Required(at, "must specify a volume type"))
	}
	errs = append(errs, supported(at.Child("persistentVolumeReclaimPolicy"), v.Spec.PersistentVolumeReclaimPolicy,
		corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)...)
	if old != nil && !equality.Semantic.DeepEqual(v.Spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(at.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))
	}
	return errs
}

func validateStorageClass(c, old *storagev1.StorageClass) field.ErrorList {
	var errs field.ErrorList
	if c.Provisioner == "" {
		errs = append(errs, field.Required(field.NewPath("provisioner"), ""))
	}
	if old == nil {
		return errs
	}
	if !equality.Semantic.DeepEqual(c.Parameters, old.Parameters) {
		errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
	}
	if c.Provisioner != old.Provisioner {
		errs = append(errs, field.Forbidden(field.NewPath("provisioner"), "updates to provisioner are forbidden."))
	}
	if value(c.ReclaimPolicy) != value(old.ReclaimPolicy) {
		errs = append(errs, field.Forbidden(field.NewPath("reclaimPolicy"), "updates to reclaimPolicy are forbidden."))
	}
	return append(errs, immutable(field.NewPath("volumeBindingMode"), c.VolumeBindingMode, old.VolumeBindingMode)...)
}

func validateRuntimeClass(c, old *nodev1.RuntimeClass) field.ErrorList {
	errs := validLabelName(field.NewPath("handler"), c.Handler)
	if old != nil {
		errs = append(errs, immutable(field.NewPath("handler"), c.Handler, old.Handler)...)
	}
	return errs
}

func validatePriorityClass(c, old *schedulingv1.PriorityClass) field.ErrorList {
	const highest = 1_000_000_000
	if old != nil {
		var errs field.ErrorList
		if c.Value != old.Value {
			errs = append(errs, field.Invalid(field.NewPath("value"), c.Value, "field is immutable"))
		}
		return append(errs, immutable(field.NewPath("preemptionPolicy"), c.PreemptionPolicy, old.PreemptionPolicy)...)
	}
	if c.Value > highest && c.Name != "system-node-critical" && c.Name != "system-cluster-critical" {
		return field.ErrorList{field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %d", highest))}
	}
	return nil
}

func validateIngress(i, _ *networkingv1.Ingress) field.ErrorList {
	at := field.NewPath("spec")
	if len(i.Spec.Rules) == 0 && i.Spec.DefaultBackend == nil {
		return field.ErrorList{field.Invalid(at, i.Spec.Rules, "either `defaultBackend` or `rules` must be specified")}
	}
	var errs field.ErrorList
	for n, rule := range i.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		paths := at.Child("rules").Index(n).Child("http", "paths")
		if len(rule.HTTP.Paths) == 0 {
			errs = append(errs, field.Required(paths, ""))
		}
		for m, p := range rule.HTTP.Paths {
			if p.PathType == nil {
				errs = append(errs, field.Required(paths.Index(m).Child("pathType"), "pathType must be specified"))
			} else {
				errs = append(errs, supported(paths.Index(m).Child("pathType"), *p.PathType,
					networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)...)
			}
		}
	}
	return errs
}

func validateDisruptionBudget(b, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if b.Spec.MinAvailable != nil && b.Spec.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(at, b.Spec, "minAvailable and maxUnavailable cannot be both set"))
	}
	if b.Spec.MinAvailable != nil {
		errs = append(errs, validAmount(at.Child("minAvailable"), *b.Spec.MinAvailable)...)
	}
	if b.Spec.MaxUnavailable != nil {
		errs = append(errs, validAmount(at.Child("maxUnavailable"), *b.Spec.MaxUnavailable)...)
	}
	return errs
}

func validateAutoscaler(a, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if n := a.Spec.MinReplicas; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(at.Child("minReplicas"), *n, "must be greater than or equal to 1"))
	}
	if a.Spec.MaxReplicas < 1 {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), a.Spec.MaxReplicas, "must be greater than 0"))
	}
	if n := a.Spec.MinReplicas; n != nil && a.Spec.MaxReplicas < *n {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), a.Spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	target := at.Child("scaleTargetRef")
	if a.Spec.ScaleTargetRef.Kind == "" {
		errs = append(errs, field.Required(target.Child("kind"), ""))
	}
	if a.Spec.ScaleTargetRef.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	return errs
}

// validRBACName checks the names of roles and bindings, which may hold colons.
func validRBACName[P apiserver.Object](obj, old P) field.ErrorList {
	return validName(obj, old, path.ValidatePathSegmentName) //nolint:staticcheck // deprecated for Kubernetes' own use; its messages are on the wire
}

func validateClusterRole(r, old *rbacv1.ClusterRole) field.ErrorList {
	return append(validRBACName(r, old), validateRules(r.Rules, false, field.NewPath("rules"))...)
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range rules {
		p := at.Index(i)
		if len(r.Verbs) == 0 {
			errs = append(errs, field.Required(p.Child("verbs"), "verbs must contain at least one value"))
		}
		if len(r.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(p.Child("nonResourceURLs"), r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(p.Child("nonResourceURLs"), r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			errs = append(errs, field.Required(p.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			errs = append(errs, field.Required(p.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

func validateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, supported(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName)...)
	}
	if namespaced {
		errs = append(errs, supported(at.Child("kind"), ref.Kind, "Role", "ClusterRole")...)
	} else {
		errs = append(errs, supported(at.Child("kind"), ref.Kind, "ClusterRole")...)
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	for i, s := range subjects {
		p := field.NewPath("subjects").Index(i)
		if s.Name == "" {
			errs = append(errs, field.Required(p.Child("name"), ""))
		}
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			if s.APIGroup != "" {
				errs = append(errs, field.NotSupported(p.Child("apiGroup"), s.APIGroup, []string{""}))
			}
			if !namespaced && s.Namespace == "" {
				errs = append(errs, field.Required(p.Child("namespace"), ""))
			}
		case rbacv1.UserKind, rbacv1.GroupKind:
			if s.APIGroup != rbacv1.GroupName {
				errs = append(errs, field.NotSupported(p.Child("apiGroup"), s.APIGroup, []string{rbacv1.GroupName}))
			}
		default:
			errs = append(errs, field.NotSupported(p.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		}
	}
	return errs
}
