// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
)

// A panel shows some expressions over time.
type panel struct {
	title, unit string
	about       string // what a reader should make of it
	lines       []line
}

// A line is an expression, with the text that names its series.
type line struct{ expr, legend string }

// panels are those of the board, two in a row; what tells first that something is wrong comes
// first.
func panels() []panel {
	return []panel{
		{"Leaders", "short", "One replica leads, and reconciles; the others wait.", []line{
			{`sum by (name) (leader_election_master_status{job})`, "{{name}}"},
		}},
		{"Objects that are not ready", "short", "By the condition Ready of what is reconciled.", []line{
			{`sum by (kind, reason) (max by (kind, exported_namespace, reason) (operator_status_condition_count{job, type="Ready", status!="True"}))`, "{{kind}} {{reason}}"},
		}},
		{"Reconciles", "ops", "Results by controller. Errors are retried with growing delays.", []line{
			{`sum by (controller, result) (rate(controller_runtime_reconcile_total{job}[5m]))`, "{{controller}} {{result}}"},
		}},
		{"Errors and panics", "ops", "A line that stays above zero is an object that no retry helps.", []line{
			{`sum by (controller) (rate(controller_runtime_reconcile_errors_total{job}[5m]))`, "{{controller}} errors"},
			{`sum by (controller) (rate(controller_runtime_reconcile_panics_total{job}[5m]))`, "{{controller}} panics"},
		}},
		{"Duration of reconciles", "s", "99 of 100 take at most this.", []line{
			{`histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{job}[5m])))`, "{{controller}}"},
		}},
		{"Longest running reconcile", "s", "One that never ends keeps its worker.", []line{
			{`max by (controller) (workqueue_longest_running_processor_seconds{job})`, "{{controller}}"},
		}},
		{"Queue", "short", "Requests that are ready and wait for a worker.", []line{
			{`sum by (controller) (workqueue_depth{job})`, "{{controller}}"},
		}},
		{"Wait in the queue", "s", "99 of 100 wait at most this.", []line{
			{`histogram_quantile(0.99, sum by (controller, le) (rate(workqueue_queue_duration_seconds_bucket{job}[5m])))`, "{{controller}}"},
		}},
		{"Workers at work", "percentunit", "At 100 % for long, more concurrency or faster reconciles are needed.", []line{
			{`sum by (controller) (controller_runtime_active_workers{job}) / sum by (controller) (controller_runtime_max_concurrent_reconciles{job})`, "{{controller}}"},
		}},
		{"Requests to the API server", "ops", "403 is a right that is missing, 409 a conflict that is tried again.", []line{
			{`sum by (method, code) (rate(rest_client_requests_total{job}[5m]))`, "{{method}} {{code}}"},
		}},
		{"Duration of requests", "s", "99 of 100 take at most this, until the header of the answer.", []line{
			{`histogram_quantile(0.99, sum by (verb, le) (rate(rest_client_request_duration_seconds_bucket{job}[5m])))`, "{{verb}}"},
		}},
		{"Webhooks", "ops", "By the HTTP status of the answer; a denied request is a 200.", []line{
			{`sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{job}[5m]))`, "{{webhook}} {{code}}"},
		}},
		{"Memory", "bytes", "Resident, by process.", []line{
			{`process_resident_memory_bytes{job}`, "{{instance}}"},
		}},
		{"Processor", "short", "Cores in use, by process.", []line{
			{`rate(process_cpu_seconds_total{job}[5m])`, "{{instance}}"},
		}},
	}
}

// board adds the board, in the form that Grafana 10 and newer read, in a ConfigMap with the
// label that the sidecar of Grafana's charts looks for. Its reader chooses the data source.
func (b *builder) board() {
	const width, height = 12, 8 // of 24 columns
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var all []any
	for i, p := range panels() {
		var targets []any
		for n, l := range p.lines {
			targets = append(targets, object{
				"refId": string(rune('A' + n)), "datasource": source, "expr": b.scraped(l.expr), "legendFormat": l.legend,
			})
		}
		all = append(all, object{
			"id": i + 1, "type": "timeseries", "title": p.title, "description": p.about, "datasource": source, "targets": targets,
			"gridPos":     object{"w": width, "h": height, "x": i % 2 * width, "y": i / 2 * height},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []any{}},
		})
	}
	const longest = 40 // of a uid
	uid := "operator-" + b.project.Name
	if len(uid) > longest {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(uid)) // it never fails
		uid = fmt.Sprintf("operator-%x", hash.Sum64())
	}
	text, err := json.MarshalIndent(object{
		"uid": uid, "title": "Operator " + b.project.Name, "tags": texts("operator"), "schemaVersion": 39, "editable": true,
		"refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "panels": all,
		"templating": object{"list": []any{object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
	}, "", "  ")
	if err != nil {
		b.failed = cmp.Or(b.failed, fmt.Errorf("write the board: %w", err))
	}
	config := b.namespaced("v1", "ConfigMap", b.name("board"))
	config["metadata"].(object)["labels"] = merge(b.labels(), object{"grafana_dashboard": "1"})
	config["data"] = object{b.project.Name + ".json": string(text) + "\n"}
	b.add(config)
}
