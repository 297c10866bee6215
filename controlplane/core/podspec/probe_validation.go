// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// checkLife has the rules of what happens to a container while it runs.
func (s *surroundings) checkLife(f *valid.Field, c *corev1.Container) {
	grace := s.spec.TerminationGracePeriodSeconds
	if l := c.Lifecycle; l != nil {
		at := f.Child("lifecycle")
		if l.PostStart != nil {
			hook := at.Child("postStart")
			checkHook(&hook, l.PostStart, grace)
		}
		if l.PreStop != nil {
			hook := at.Child("preStop")
			checkHook(&hook, l.PreStop, grace)
		}
	}
	if p := c.LivenessProbe; p != nil {
		at := f.Child("livenessProbe")
		checkProbe(&at, p)
		if p.SuccessThreshold != 1 {
			at.Invalid("successThreshold", p.SuccessThreshold, "must be 1")
		}
	}
	if p := c.ReadinessProbe; p != nil {
		at := f.Child("readinessProbe")
		checkProbe(&at, p)
		if p.TerminationGracePeriodSeconds != nil {
			at.Invalid("terminationGracePeriodSeconds", p.TerminationGracePeriodSeconds, "must not be set for readinessProbes")
		}
	}
	if p := c.StartupProbe; p != nil {
		at := f.Child("startupProbe")
		checkProbe(&at, p)
		if p.SuccessThreshold != 1 {
			at.Invalid("successThreshold", p.SuccessThreshold, "must be 1")
		}
	}
}

func checkProbe(f *valid.Field, p *corev1.Probe) {
	h := handlers{f: f}
	h.exec(p.Exec)
	h.http(p.HTTPGet)
	h.tcp(p.TCPSocket)
	if p.GRPC != nil && h.next("grpc") {
		at := f.Child("grpc")
		at.PortOrName("port", intstr.FromInt32(p.GRPC.Port))
	}
	h.end()
	f.NotNegative("initialDelaySeconds", int64(p.InitialDelaySeconds))
	f.NotNegative("timeoutSeconds", int64(p.TimeoutSeconds))
	f.NotNegative("periodSeconds", int64(p.PeriodSeconds))
	f.NotNegative("successThreshold", int64(p.SuccessThreshold))
	f.NotNegative("failureThreshold", int64(p.FailureThreshold))
	if g := p.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		f.Invalid("terminationGracePeriodSeconds", *g, "must be greater than 0")
	}
}

func checkHook(f *valid.Field, l *corev1.LifecycleHandler, grace *int64) {
	h := handlers{f: f}
	h.exec(l.Exec)
	h.http(l.HTTPGet)
	h.tcp(l.TCPSocket)
	if l.Sleep != nil && h.next("sleep") && grace != nil && (l.Sleep.Seconds < 0 || l.Sleep.Seconds > *grace) {
		f.Invalid("sleep", l.Sleep.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace))
	}
	h.end()
}

// handlers checks a choice of one way to ask or tell a container.
type handlers struct {
	f   *valid.Field
	set bool
}

// next reports whether a handler is the first, which is the one to check.
func (h *handlers) next(name string) bool {
	if h.set {
		h.f.Forbidden(name, "may not specify more than 1 handler type")
		return false
	}
	h.set = true
	return true
}

func (h *handlers) end() {
	if !h.set {
		h.f.Required(valid.Self, "must specify a handler type")
	}
}

func (h *handlers) exec(a *corev1.ExecAction) {
	if a != nil && h.next("exec") && len(a.Command) == 0 {
		at := h.f.Child("exec")
		at.Required("command", "")
	}
}

func (h *handlers) http(a *corev1.HTTPGetAction) {
	if a == nil || !h.next("httpGet") {
		return
	}
	at := h.f.Child("httpGet")
	at.NonEmpty("path", a.Path)
	at.PortOrName("port", a.Port)
	valid.Supported(&at, "scheme", a.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	for _, header := range a.HTTPHeaders {
		at.Problems("httpHeaders", header.Name, validation.IsHTTPHeaderName(header.Name))
	}
}

func (h *handlers) tcp(a *corev1.TCPSocketAction) {
	if a != nil && h.next("tcpSocket") {
		at := h.f.Child("tcpSocket")
		at.PortOrName("port", a.Port)
	}
}
