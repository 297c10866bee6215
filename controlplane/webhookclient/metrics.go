// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"crypto/x509"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count the certificates of webhooks that are refused for their age, under the names of
// kube-apiserver.
type metrics struct{ missingSAN, insecureSHA1 prometheus.Counter }

func newMetrics() metrics {
	return metrics{
		missingSAN: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_webhooks_x509_missing_san_total",
			Help: "Requests to webhooks whose certificate has a common name and no subject alternative names.",
		}),
		insecureSHA1: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_webhooks_x509_insecure_sha1_total",
			Help: "Requests to webhooks whose certificate is signed with SHA-1.",
		}),
	}
}

// Collectors are what a registry has to register.
func (c *Client) Collectors() []prometheus.Collector {
	return []prometheus.Collector{c.metrics.missingSAN, c.metrics.insecureSHA1}
}

// observe counts an error of a request.
func (m *metrics) observe(err error) {
	var name x509.HostnameError
	if errors.As(err, &name) && strings.Contains(name.Error(), "certificate relies on legacy Common Name field") {
		m.missingSAN.Inc()
	}
	var authority x509.UnknownAuthorityError // has the reason in its message alone
	if errors.As(err, &authority) {
		if _, algorithm, _ := strings.Cut(authority.Error(), "insecure algorithm "); strings.Contains(algorithm, "SHA1") {
			m.insecureSHA1.Inc()
		}
	}
}
