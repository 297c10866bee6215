// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// scene is an autoscaler of a Widget, in a namespace of its own, over some passes.
type scene struct {
	name string
	// spec of the autoscaler, without its target.
	spec string
	// replicas of the Widget, and its Pods, before the first pass; see [moments].
	replicas int
	pods     string
	passes   []change
}

// change is what happens before a pass.
type change struct {
	// pods replaces the Pods, one letter for each: r ready, u never ready, p pending, f failed,
	// and in capitals the same without a metric.
	pods string
	// values are those of a metric: of each Pod, or of each series; "none" for no values. They stay.
	values string
	// code is the status that servers of metrics answer with instead.
	code int
	// replicas of the Widget are set; 0: they stay; -1: to none.
	replicas int
}

const (
	podsTarget     = "[{type: Pods, pods: {metric: {name: hits}, target: {type: AverageValue, averageValue: '10'}}}]"
	externalTarget = "[{type: External, external: {metric: {name: queue, selector: {matchLabels: {a: b}}}, target: {type: AverageValue, averageValue: '10'}}}]"
	quick          = "behavior: {scaleDown: {stabilizationWindowSeconds: 0}}"
)

// scenes are played by the controller of a cluster as well, see testdata/scenes.txt.
func scenes() []scene {
	cpu := func(target string) string {
		return "[{type: Resource, resource: {name: cpu, target: {" + target + "}}}]"
	}
	half := cpu("type: Utilization, averageUtilization: 50")
	return []scene{
		{name: "cpu", spec: "maxReplicas: 10, " + quick + ", metrics: " + half, replicas: 2, pods: "rr", passes: []change{
			{values: "500m 500m"},
			{values: "540m 540m"},
			{values: "1 700m"},
			{pods: "rrrr", values: "250m 200m 200m 200m"},
			{pods: "rr", values: "10m 10m"},
		}},
		{name: "cpu-odd", spec: "maxReplicas: 10, " + quick + ", metrics: " + half, replicas: 4, pods: "rrup", passes: []change{
			{values: "1 1 5 5"},
			{pods: "rrRf", values: "100m 100m 0 0"},
			{pods: "rrRR", values: "900m 900m 0 0"},
			{pods: "uuuu", values: "1 1 1 1"},
			{pods: "RRRR"},
			{pods: "rrrr", values: "1 1 1 1", code: 503},
		}},
		{name: "cpu-value", spec: "maxReplicas: 10, metrics: " + cpu("type: AverageValue, averageValue: 500m"), replicas: 3, pods: "rrr", passes: []change{
			{values: "700m 700m 700m"}, {values: "10m 10m 10m"}, {values: "400m 400m 400m"},
		}},
		{name: "memory", spec: "maxReplicas: 10, metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 80}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "80Mi 81Mi"}, {values: "1Gi 1Gi"},
		}},
		{name: "container", spec: "maxReplicas: 10, metrics: [{type: ContainerResource, containerResource: {name: cpu, container: c, target: {type: Utilization, averageUtilization: 50}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "800m 800m"}, {values: "500m 500m"},
		}},
		{name: "container-none", spec: "maxReplicas: 10, metrics: [{type: ContainerResource, containerResource: {name: cpu, container: x, target: {type: Utilization, averageUtilization: 50}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "800m 800m"},
		}},
		{name: "storage", spec: "maxReplicas: 10, metrics: [{type: Resource, resource: {name: ephemeral-storage, target: {type: Utilization, averageUtilization: 50}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "8 8"},
		}},
		{name: "pods", spec: "minReplicas: 2, maxReplicas: 6, " + quick + ", metrics: " + podsTarget, replicas: 3, pods: "rrr", passes: []change{
			{values: "10 10 10"}, {values: "30 30 30"}, {pods: "rrrrrr", values: "1 1 1 1 1 1"}, {pods: "rr", values: "10 10"}, {pods: "PP"}, {pods: "f"},
		}},
		{name: "object", spec: "maxReplicas: 10, " + quick + ", metrics: [{type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: main}, metric: {name: hits}, target: {type: Value, value: 2k}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "2k"}, {values: "3k"}, {pods: "rru", values: "5k"}, {values: "1k"}, {values: "1 2"}, {values: "1", code: 404},
		}},
		{name: "object-each", spec: "maxReplicas: 10, " + quick + ", metrics: [{type: Object, object: {describedObject: {apiVersion: v1, kind: Service, name: main}, metric: {name: hits, selector: {matchLabels: {a: b}}}, target: {type: AverageValue, averageValue: '100'}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "210"}, {values: "450"}, {values: "1"},
		}},
		{name: "object-namespace", spec: "maxReplicas: 10, metrics: [{type: Object, object: {describedObject: {apiVersion: v1, kind: Namespace, name: other}, metric: {name: hits}, target: {type: Value, value: '10'}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "14"},
		}},
		{name: "object-unknown", spec: "maxReplicas: 10, metrics: [{type: Object, object: {describedObject: {apiVersion: example.org/v1, kind: Moon, name: main}, metric: {name: hits}, target: {type: Value, value: '10'}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "14"},
		}},
		{name: "external", spec: "maxReplicas: 30, metrics: " + externalTarget, replicas: 1, pods: "r", passes: []change{
			{values: "5 4.5"}, {values: "100 200"}, {pods: "rrrr", values: "1000"}, {pods: "rrrrrrrr", values: "0"}, {values: "", code: 500}, {values: "70"},
		}},
		{name: "external-value", spec: "maxReplicas: 30, " + quick + ", metrics: [{type: External, external: {metric: {name: queue}, target: {type: Value, value: '10'}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "30"}, {pods: "rrrr", values: "0"}, {pods: "r", values: "10"}, {values: "none"},
		}},
		{name: "two", spec: "maxReplicas: 10, " + quick + ", metrics: " + podsTarget[:len(podsTarget)-1] + ", {type: Resource, resource: {name: ephemeral-storage, target: {type: AverageValue, averageValue: '1'}}}]", replicas: 2, pods: "rr", passes: []change{
			{values: "10 10"}, {values: "16 16"}, {values: "1 1"},
		}},
		{name: "up-policies", spec: "maxReplicas: 50, metrics: " + externalTarget + ", behavior: {scaleUp: {stabilizationWindowSeconds: 40, policies: [{type: Pods, value: 3, periodSeconds: 40}, {type: Percent, value: 50, periodSeconds: 40}], selectPolicy: Min}, scaleDown: {selectPolicy: Disabled}}", replicas: 3, pods: "rrr", passes: []change{
			{values: "400"}, {values: "400"}, {values: "400"}, {values: "400"}, {values: "10"}, {values: "300"},
		}},
		{name: "down-policies", spec: "maxReplicas: 50, metrics: " + externalTarget + ", behavior: {scaleDown: {stabilizationWindowSeconds: 40, policies: [{type: Pods, value: 4, periodSeconds: 40}, {type: Percent, value: 10, periodSeconds: 20}]}}", replicas: 20, pods: "rrr", passes: []change{
			{values: "100"}, {values: "100"}, {values: "100"}, {values: "100"}, {values: "100"}, {values: "400"},
		}},
		{name: "tolerances", spec: "maxReplicas: 50, metrics: " + externalTarget + ", behavior: {scaleUp: {tolerance: '0.5'}, scaleDown: {tolerance: '0', stabilizationWindowSeconds: 0}}", replicas: 4, pods: "rrrr", passes: []change{
			{values: "59"}, {values: "61"}, {values: "60"},
		}},
		{name: "bounds", spec: "minReplicas: 3, maxReplicas: 6, metrics: " + externalTarget, replicas: 9, pods: "r", passes: []change{
			{values: "900"}, {values: "900"}, {values: "1", replicas: 1}, {values: "1"}, {replicas: -1}, {values: "1"},
		}},
	}
}

// statusText is what a pass shows: replicas, the status without times, Events.
func statusText(replicas int64, o *autoscalingv2.HorizontalPodAutoscaler, events []string) string {
	s := &o.Status
	out := fmt.Sprintf("replicas %d, current %d, desired %d, scaled %t\n", replicas, s.CurrentReplicas, s.DesiredReplicas, s.LastScaleTime != nil)
	metrics, err := json.Marshal(s.CurrentMetrics)
	if err != nil {
		return err.Error()
	}
	out += string(metrics) + "\n"
	for _, c := range s.Conditions {
		out += fmt.Sprintf("%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	slices.Sort(events)
	for _, e := range slices.Compact(events) {
		out += "Event " + e + "\n"
	}
	return out
}

// metricServer serves the three APIs of metrics for scenes.
type metricServer struct {
	mu    sync.Mutex
	now   func() time.Time
	scene map[string]*served
}

// served is what one scene is served: the Pods and values of the last change.
type served struct {
	change
	read bool // since then
}

func (m *metricServer) set(name string, c change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.scene[name]
	if before != nil {
		if c.pods == "" {
			c.pods = before.pods
		}
		if c.values == "" && c.code == 0 {
			c.values = before.values
		}
	}
	m.scene[name] = &served{change: c}
}

func (m *metricServer) wasRead(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scene[name].read
}

// ServeHTTP implements [http.Handler].
func (m *metricServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // apis GROUP VERSION namespaces NAME ...
	if len(part) < 5 {
		discover(w, part)
		return
	}
	s := m.scene[part[4]]
	if s == nil {
		http.NotFound(w, r)
		return
	}
	s.read = true
	if s.code != 0 {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(s.code)
		_, _ = w.Write([]byte("out of order\n"))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // a list of any kind
		"apiVersion": part[1] + "/" + part[2], "kind": map[string]string{resourceGroup: "PodMetricsList", customGroup: "MetricValueList", externalGroup: "ExternalMetricValueList"}[part[1]],
		"metadata": map[string]any{}, "items": s.items(part[1], part[len(part)-2], m.now().UTC().Format(time.RFC3339)),
	})
}

// discover answers requests for groups and versions.
func discover(w http.ResponseWriter, part []string) {
	var answer any
	switch len(part) {
	case 2:
		gv := part[1] + "/v1beta2"
		version := map[string]any{"groupVersion": gv, "version": "v1beta2"}
		answer = map[string]any{"apiVersion": "v1", "kind": "APIGroup", "name": part[1], "versions": []any{version}, "preferredVersion": version}
	case 3:
		answer = map[string]any{"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": part[1] + "/" + part[2], "resources": []any{}}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// items are the values of a scene, in the form of an API.
func (s *served) items(group, name, at string) []any {
	out := []any{}
	for i, value := range strings.Fields(s.values) {
		if value == "none" {
			continue
		}
		pod := fmt.Sprintf("p%d", i)
		absent := i < len(s.pods) && s.pods[i] < 'a'
		switch {
		case group == resourceGroup && !absent && i < len(s.pods):
			out = append(out, map[string]any{"metadata": map[string]any{"name": pod}, "timestamp": at, "window": "15s",
				"containers": []any{map[string]any{"name": "c", "usage": map[string]any{"cpu": value, "memory": value}}}})
		case group == customGroup && (name != "*" || !absent && i < len(s.pods)):
			out = append(out, map[string]any{"describedObject": map[string]any{"name": pod}, "metric": map[string]any{"name": "hits"}, "timestamp": at, "value": value})
		case group == externalGroup:
			out = append(out, map[string]any{"metricName": "queue", "metricLabels": map[string]any{"a": "b"}, "timestamp": at, "value": value})
		}
	}
	return out
}

// podManifest is a Pod of a scene.
func podManifest(i int, state byte, now time.Time) map[string]any {
	before := func(d time.Duration) string { return now.Add(-d).UTC().Format(time.RFC3339) }
	status := map[string]any{"phase": "Running", "startTime": before(time.Hour)}
	ready := map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": before(time.Hour - time.Minute)}
	switch state | 0x20 {
	case 'u':
		ready["status"], ready["lastTransitionTime"] = "False", before(time.Hour-time.Second)
	case 'p':
		status["phase"], ready["status"] = "Pending", "False"
	case 'f':
		status["phase"], ready["status"] = "Failed", "False"
	}
	status["conditions"] = []any{ready}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": fmt.Sprintf("p%d", i), "labels": map[string]any{"app": "w"}},
		"spec": map[string]any{"containers": []any{map[string]any{
			"name": "c", "image": "example.com/c", "resources": map[string]any{"requests": map[string]any{"cpu": "1", "memory": "100Mi"}},
		}}},
		"status": status,
	}
}

// Manifests that all scenes share.
const (
	widgetDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced,
		names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true,
		subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .spec.selector}},
		schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}, selector: {type: string}}}, status: {type: object, properties: {replicas: {type: integer}}}}}}}]}}`
	widgetManifest = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: %s}, spec: {replicas: %d, selector: app=w}, status: {replicas: %[2]d}}"
	scalerManifest = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: %s}, spec: {scaleTargetRef: {apiVersion: example.com/v1, kind: Widget, name: w}, %s}}"
)
