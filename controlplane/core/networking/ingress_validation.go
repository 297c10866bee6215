// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package networking

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// classAnnotation named the class of an Ingress before there was a field for it.
const classAnnotation = "kubernetes.io/ingress.class"

func validateIngress(i, old *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &i.Spec
	f := root.Child("spec")
	if len(s.Rules) == 0 && s.DefaultBackend == nil {
		f.Invalid(valid.Self, s.Rules, "either `defaultBackend` or `rules` must be specified")
	}
	if s.DefaultBackend != nil {
		at := f.Child("defaultBackend")
		checkBackend(&at, s.DefaultBackend)
	}
	checkIngressRules(&f, i, old)
	checkIngressTLS(&f, i, old)
	if s.IngressClassName != nil {
		f.Subdomain("ingressClassName", *s.IngressClassName)
	}
	if named, ok := i.Annotations[classAnnotation]; ok && old == nil && s.IngressClassName != nil && named != *s.IngressClassName {
		at := root.Child("annotations")
		at.Invalid(classAnnotation, named, "must match `ingressClassName` when both are specified")
	}
	return errs
}

// isWildcard reports whether a host stands for more than one.
func isWildcard(host string) bool { return strings.Contains(host, "*") }

// checkHost has the rules of a host of rules and certificates.
func checkHost(f *valid.Field, host string) {
	if isWildcard(host) {
		f.Problems(valid.Self, host, validation.IsWildcardDNS1123Subdomain(host))
	} else {
		f.Subdomain(valid.Self, host)
	}
}

// notAddress checks the host name of a rule or of a load balancer, which is no
// address.
func notAddress(f *valid.Field, host string) {
	if _, err := netip.ParseAddr(host); err == nil {
		f.Invalid(valid.Self, host, "must be a DNS name, not an IP address")
	}
}

func checkIngressRules(f *valid.Field, i, old *networkingv1.Ingress) {
	list := f.Child("rules")
	// What was wrong below a wildcard from the beginning may stay.
	lenient := old != nil && slices.ContainsFunc(old.Spec.Rules, func(r networkingv1.IngressRule) bool {
		var errs field.ErrorList
		root := valid.Root(&errs)
		checkPaths(&root, r.HTTP)
		return isWildcard(r.Host) && len(errs) > 0
	})
	for n := range i.Spec.Rules {
		r, at := &i.Spec.Rules[n], list.Index(n)
		if r.Host != "" {
			host := at.Child("host")
			notAddress(&host, r.Host)
			checkHost(&host, r.Host)
		}
		if !lenient || !isWildcard(r.Host) {
			checkPaths(&at, r.HTTP)
		}
	}
}

func checkPaths(f *valid.Field, rule *networkingv1.HTTPIngressRuleValue) {
	if rule == nil {
		return
	}
	http := f.Child("http")
	list := http.Child("paths")
	if len(rule.Paths) == 0 {
		list.Required(valid.Self, "")
	}
	for i := range rule.Paths {
		p, at := &rule.Paths[i], list.Index(i)
		if p.PathType == nil {
			at.Required("pathType", "pathType must be specified")
			continue
		}
		known := valid.Supported(&at, "pathType", *p.PathType,
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix)
		if known {
			checkPath(&at, p.Path, *p.PathType != networkingv1.PathTypeImplementationSpecific)
		}
		backend := at.Child("backend")
		checkBackend(&backend, &p.Backend)
	}
}

// checkPath has the rules of a path, with those of paths that every controller
// understands alike if strict is set.
func checkPath(f *valid.Field, path string, strict bool) {
	if !strings.HasPrefix(path, "/") && (strict || path != "") {
		f.Invalid("path", path, "must be an absolute path")
	}
	if !strict {
		return
	}
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(path, part) {
			f.Invalid("path", path, fmt.Sprintf("must not contain '%s'", part))
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(path, end) {
			f.Invalid("path", path, fmt.Sprintf("cannot end with '%s'", end))
		}
	}
}

func checkBackend(f *valid.Field, b *networkingv1.IngressBackend) {
	switch {
	case b.Resource != nil && b.Service != nil:
		f.Invalid(valid.Self, "", "cannot set both resource and service backends")
	case b.Resource != nil:
		at := f.Child("resource")
		checkReference(&at, b.Resource)
	case b.Service != nil:
		service := f.Child("service")
		if service.NonEmpty("name", b.Service.Name) {
			service.DNSLabel("name", b.Service.Name)
		}
		port := service.Child("port")
		switch p := b.Service.Port; {
		case p.Name != "" && p.Number != 0:
			f.Invalid(valid.Self, "", "cannot set both port name & port number")
		case p.Name != "":
			port.Problems("name", p.Name, validation.IsValidPortName(p.Name))
		case p.Number != 0:
			port.Port("number", p.Number)
		default:
			f.Required(valid.Self, "port name or number is required")
		}
	default:
		f.Invalid(valid.Self, "", "resource or service backend is required")
	}
}

// checkReference has the rules of what names an object of any kind.
func checkReference(f *valid.Field, r *corev1.TypedLocalObjectReference) {
	if r.APIGroup != nil {
		f.Subdomain("apiGroup", *r.APIGroup)
	}
	f.PathSegment("kind", r.Kind)
	f.PathSegment("name", r.Name)
}

func checkIngressTLS(f *valid.Field, i, old *networkingv1.Ingress) {
	wrong := func(t networkingv1.IngressTLS) bool {
		return t.SecretName != "" && len(validation.IsDNS1123Subdomain(t.SecretName)) > 0
	}
	lenient := old != nil && slices.ContainsFunc(old.Spec.TLS, wrong)
	list := f.Child("tls")
	for n, t := range i.Spec.TLS {
		at := list.Index(n)
		hosts := at.Child("hosts")
		for m, host := range t.Hosts {
			one := hosts.Index(m)
			checkHost(&one, host)
		}
		if !lenient && t.SecretName != "" {
			at.Subdomain("secretName", t.SecretName)
		}
	}
}

func validateIngressStatus(i, old *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	status := root.Child("status")
	balancer := status.Child("loadBalancer")
	list := balancer.Child("ingress")
	var before []string
	for _, in := range old.Status.LoadBalancer.Ingress {
		before = append(before, in.IP)
	}
	for n, in := range i.Status.LoadBalancer.Ingress {
		at := list.Index(n)
		if in.IP != "" && !slices.Contains(before, in.IP) {
			at.IP("ip", in.IP)
		}
		if in.Hostname != "" {
			at.Subdomain("hostname", in.Hostname)
			host := at.Child("hostname")
			notAddress(&host, in.Hostname)
		}
	}
	return errs
}

// ingressWarnings are about a new Ingress that names its class in the old way.
func ingressWarnings(i, old *networkingv1.Ingress) []string {
	if _, ok := i.Annotations[classAnnotation]; ok && old == nil && i.Spec.IngressClassName == nil {
		return []string{`annotation "` + classAnnotation + `" is deprecated, please use 'spec.ingressClassName' instead`}
	}
	return nil
}

func validateIngressClass(c, old *networkingv1.IngressClass) field.ErrorList {
	const longest = 250
	var errs field.ErrorList
	root, s := valid.Root(&errs), &c.Spec
	f := root.Child("spec")
	if old != nil {
		f.Unchanged("controller", s.Controller, old.Spec.Controller)
	}
	if len(s.Controller) > longest {
		f.TooLong("controller", longest)
	}
	f.Add(validation.IsDomainPrefixedPath(f.PathOf("controller"), s.Controller)...)
	p := s.Parameters
	if p == nil {
		return errs
	}
	at := f.Child("parameters")
	if p.APIGroup != nil {
		at.Subdomain("apiGroup", *p.APIGroup)
	}
	at.OptionalPathSegment("kind", p.Kind)
	at.OptionalPathSegment("name", p.Name)
	const cluster, namespaced = networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace
	switch kind.Value(p.Scope) {
	case cluster:
		if p.Namespace != nil {
			at.Forbidden("namespace", "`parameters.scope` is set to 'Cluster'")
		}
	case namespaced:
		if p.Namespace == nil {
			at.Required("namespace", "`parameters.scope` is set to 'Namespace'")
		} else {
			at.Namespace("namespace", *p.Namespace)
		}
	default:
		valid.NotSupported(&at, "scope", *p.Scope, cluster, namespaced)
	}
	return errs
}
