// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateService(s, old *corev1.Service) field.ErrorList {
	errs := valid.Name(s, old, apivalidation.NameIsDNS1035Label)
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
			errs = append(errs, valid.LabelName(p.Child("name"), port.Name)...)
			if names.Has(port.Name) {
				errs = append(errs, field.Duplicate(p.Child("name"), port.Name))
			}
			names.Insert(port.Name)
		}
		errs = append(errs, valid.Port(p.Child("port"), port.Port)...)
		errs = append(errs, valid.OneOf(p.Child("protocol"), port.Protocol, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		if port.TargetPort.Type == intstr.Int {
			errs = append(errs, valid.Port(p.Child("targetPort"), port.TargetPort.IntVal)...)
		} else {
			for _, problem := range validation.IsValidPortName(port.TargetPort.StrVal) {
				errs = append(errs, field.Invalid(p.Child("targetPort"), port.TargetPort, problem))
			}
		}
	}
	errs = append(errs, valid.OneOf(at.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)...)
	errs = append(errs, valid.OneOf(at.Child("type"), spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	if old != nil && old.Spec.Type != corev1.ServiceTypeExternalName && spec.Type != corev1.ServiceTypeExternalName && old.Spec.ClusterIP != "" {
		if spec.ClusterIP != old.Spec.ClusterIP {
			errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIPs, "may not change once set"))
		}
	}
	return errs
}

func validateEndpointSlice(e, old *discoveryv1.EndpointSlice) field.ErrorList {
	at := field.NewPath("addressType")
	var errs field.ErrorList
	if e.AddressType == "" {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, valid.OneOf(at, e.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)...)
	}
	for i, endpoint := range e.Endpoints {
		if len(endpoint.Addresses) == 0 {
			errs = append(errs, field.Required(field.NewPath("endpoints").Index(i).Child("addresses"), "must contain at least 1 address"))
		}
	}
	if old != nil {
		errs = append(errs, valid.Immutable(at, e.AddressType, old.AddressType)...)
	}
	return errs
}
