// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import "strings"

// runbooks is the page that says of each alert what to do; the name of the alert in lower
// case is the anchor.
const runbooks = "https://github.com/steer-dev/steer/blob/main/docs/metrics.md#"

// An alert fires once its expression has had a result for a time without a gap.
type alert struct {
	name, expr string
	wait       string // duration of Prometheus; empty: none
	severity   string
	summary    string // of one line; may use $labels and $value
}

// Severities, as the alerts of Kubernetes have them: critical wakes a person, a warning waits
// for the next working day.
const (
	critical = "critical"
	warning  = "warning"
)

// alertsOfOperators are the alerts. In an expression {job stands for the selector of the
// operator's series. Series that carry a namespace of their own have it as
// exported_namespace, since Prometheus gives each series the namespace of its target.
func alertsOfOperators() []alert {
	return []alert{
		{
			"OperatorAbsent", `absent(leader_election_master_status{job})`, "5m", critical,
			"no replica of the operator is scraped: none runs, or Prometheus may not ask it",
		},
		{
			"OperatorWithoutLeader", `max by (name) (leader_election_master_status{job}) == 0`, "2m", critical,
			"no replica holds the lease {{ $labels.name }}: nothing is reconciled",
		},
		{
			"OperatorReconcileErrors", `sum by (controller) (increase(controller_runtime_reconcile_errors_total{job}[15m])) > 0`, "30m", warning,
			"the controller {{ $labels.controller }} fails again and again, {{ $value | humanize }} times in 15 minutes",
		},
		{
			"OperatorReconcilePanics", `sum by (controller) (increase(controller_runtime_reconcile_panics_total{job}[15m])) > 0`, "", warning,
			"the controller {{ $labels.controller }} panics",
		},
		{
			"OperatorReconcileStuck", `max by (controller) (workqueue_longest_running_processor_seconds{job}) > 300`, "5m", warning,
			"a reconcile of the controller {{ $labels.controller }} has run for {{ $value | humanizeDuration }}",
		},
		{
			"OperatorQueueGrows",
			`sum by (controller) (min_over_time(workqueue_depth{job}[10m])) > 0 and sum by (controller) (deriv(workqueue_depth{job}[10m])) > 0`,
			"15m", warning,
			"the queue of the controller {{ $labels.controller }} is never empty, and grows",
		},
		{
			"OperatorWebhookFails",
			`sum(increase(controller_runtime_webhook_requests_total{job, code!="200"}[5m])) + sum(increase(controller_runtime_webhook_panics_total{job}[5m])) + sum(increase(controller_runtime_conversion_webhook_panics_total{job}[5m])) > 0`,
			"10m", critical,
			"webhooks of the operator fail: the API server refuses what they are asked about",
		},
		{
			// Files are read at handshakes, which may be rare: none of an hour has found a good pair.
			"OperatorCertificateUnreadable",
			`sum by (instance) (increase(certwatcher_read_certificate_errors_total{job}[1h])) > 0.9 * sum by (instance) (increase(certwatcher_read_certificate_total{job}[1h]))`,
			"15m", warning,
			"{{ $labels.instance }} cannot read its renewed certificate, and shows the former one until that expires",
		},
		{
			"OperatorForbidden", `sum by (method) (increase(rest_client_requests_total{job, code="403"}[15m])) > 0`, "15m", warning,
			"the API server forbids {{ $labels.method }} requests of the operator",
		},
		{
			"OperatorObjectNotReady",
			`max by (kind, exported_namespace, name) (operator_status_condition_current_status_seconds{job, type="Ready", status="False"}) > 900`, "", warning,
			"{{ $labels.kind }} {{ $labels.exported_namespace }}/{{ $labels.name }} has not been ready for {{ $value | humanizeDuration }}",
		},
	}
}

// scraped is an expression about the series of the operator: a ServiceMonitor gives them the
// name of the Service as their job.
func (b *builder) scraped(expr string) string {
	return strings.ReplaceAll(expr, "{job", `{job="`+b.name(metricsService)+`"`)
}

// alerts adds them in a PrometheusRule.
func (b *builder) alerts() {
	var all []any
	for _, a := range alertsOfOperators() {
		rule := object{
			"alert": a.name, "expr": b.scraped(a.expr),
			"labels":      object{"severity": a.severity, "operator": b.project.Name},
			"annotations": object{"summary": b.project.Name + ": " + a.summary, "runbook_url": runbooks + strings.ToLower(a.name)},
		}
		if a.wait != "" {
			rule["for"] = a.wait
		}
		all = append(all, rule)
	}
	rules := b.namespaced("monitoring.coreos.com/v1", "PrometheusRule", b.name("alerts"))
	rules["spec"] = object{"groups": []any{object{"name": "operator." + b.project.Name, "rules": all}}}
	b.add(rules)
}
