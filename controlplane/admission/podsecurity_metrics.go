// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Modes of PodSecurity.
const (
	modeEnforce = "enforce"
	modeAudit   = "audit"
	modeWarn    = "warn"
)

// podSecurityCounts are the metrics of PodSecurity, by the names and labels of
// kube-apiserver. No request is exempt here, so that the second one stays at zero.
type podSecurityCounts struct {
	evaluations, exemptions *prometheus.CounterVec
	served                  api.Version
	// open are the counters of Pods in namespaces that ask for nothing, by operation.
	open map[resource.Operation]prometheus.Counter
}

func newPodSecurityCounts() podSecurityCounts {
	c := podSecurityCounts{
		evaluations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_security_evaluations_total",
			Help: "Verdicts of PodSecurity, by decision (allow or deny), level and version of the policy, mode, operation, resource (pod or controller) and subresource; of the modes audit and warn denials alone.",
		}, []string{"decision", "policy_level", "policy_version", "mode", "request_operation", "resource", "subresource"}),
		exemptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pod_security_exemptions_total",
			Help: "Requests that PodSecurity exempts, by operation, resource (pod or controller) and subresource: none.",
		}, []string{"request_operation", "resource", "subresource"}),
		served: api.MajorMinorVersion(1, apiserver.KubernetesMinor()), open: map[resource.Operation]prometheus.Counter{},
	}
	for _, operation := range []resource.Operation{resource.Create, resource.Update} {
		c.open[operation] = c.evaluations.WithLabelValues("allow", string(api.LevelPrivileged), api.VersionLatest, modeEnforce, lower(operation), "pod", "")
		for _, of := range []string{"pod", "controller"} {
			c.exemptions.WithLabelValues(lower(operation), of, "")
		}
	}
	return c
}

func lower(operation resource.Operation) string { return strings.ToLower(string(operation)) }

// evaluated counts a verdict.
func (c *podSecurityCounts) evaluated(r *resource.AdmissionRequest, allowed bool, asked api.LevelVersion, mode string) {
	if counter := c.open[r.Operation]; counter != nil && allowed && asked == openPolicy() && mode == modeEnforce && r.Subresource == "" {
		counter.Inc()
		return
	}
	decision, of, version := "deny", "controller", asked.Version.String()
	if allowed {
		decision = "allow"
	}
	if _, isPod := r.Object.(*corev1.Pod); isPod {
		of = "pod"
	}
	switch {
	case asked.Level == api.LevelPrivileged:
		version = api.VersionLatest
	case !asked.Version.Latest() && c.served.Older(asked.Version):
		version = "future" // whatever a label says
	}
	c.evaluations.WithLabelValues(decision, string(asked.Level), version, mode, lower(r.Operation), of, r.Subresource).Inc()
}
