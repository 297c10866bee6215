// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	deployments = "/apis/apps/v1/namespaces/default/deployments"
	ableToScale = "AbleToScale True SucceededGetScale the HPA controller was able to get the target's current scale"
	notToZero   = "\nScaledToZero False NotScaledToZero the HPA controller did not scale the workload to zero"
	noResources = "unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
	noCustom    = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
)

// scaling is the status of an autoscaler: replicas, how many metrics, conditions.
func (a *api) scaling(name string) string {
	a.tb.Helper()
	var o autoscalingv2.HorizontalPodAutoscaler
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.must("GET", autoscalers+"/"+name, "").Object, &o); err != nil {
		a.tb.Fatal(err)
	}
	out := fmt.Sprintf("%d of %d, %d metrics, scaled %t", o.Status.CurrentReplicas, o.Status.DesiredReplicas, len(o.Status.CurrentMetrics), o.Status.LastScaleTime != nil)
	for _, c := range o.Status.Conditions {
		if c.LastTransitionTime.IsZero() {
			a.tb.Errorf("%s: condition %s without a time", name, c.Type)
		}
		out += fmt.Sprintf("\n%s %s %s %s", c.Type, c.Status, c.Reason, c.Message)
	}
	return out
}

func (a *api) deployment(name string, replicas int) {
	a.tb.Helper()
	a.must("POST", deployments, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: %d, selector: {matchLabels: {app: a}},
		template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}`, name, replicas))
}

func (a *api) autoscaler(name, kind, target, metrics string) {
	a.tb.Helper()
	if metrics != "" {
		metrics = ", metrics: " + metrics
	}
	a.must("POST", autoscalers, fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: %s},
		spec: {minReplicas: 2, maxReplicas: 5, scaleTargetRef: {%s, name: %s}%s}}`, name, kind, target, metrics))
}

// TestAutoscalerConditionsExplainWhyItDoesNotScale has the words of the real controller where no metrics are
// served, from a conversation with oracle/cmd/controllers.
func TestAutoscalerConditionsExplainWhyItDoesNotScale(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	const kind, average = "apiVersion: apps/v1, kind: Deployment", "target: {type: AverageValue, averageValue: 1}"
	const failed = "the HPA was unable to compute the replica count: "
	api.deployment("ok", 3)
	api.deployment("zero", 0)
	api.deployment("low", 1)
	api.deployment("high", 9)
	for _, name := range []string{"zero", "low", "high"} {
		api.autoscaler(name, kind, name, "")
	}
	api.autoscaler("gone", kind, "nothing", "")
	api.autoscaler("what", "apiVersion: apps/v1, kind: Foo", "x", "")
	api.autoscaler("never", "apiVersion: networking.k8s.io/v1, kind: Ingress", "x", "")
	for name, metrics := range map[string]string{
		"ok":    "",
		"res":   "[{type: Resource, resource: {name: memory, " + average + "}}]",
		"cont":  "[{type: ContainerResource, containerResource: {name: cpu, container: c, target: {type: Utilization, averageUtilization: 5}}}]",
		"contv": "[{type: ContainerResource, containerResource: {name: cpu, container: c, " + average + "}}]",
		"pods":  "[{type: Pods, pods: {metric: {name: m, selector: {matchLabels: {a: b}}}, " + average + "}}]",
		"obj":   "[{type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: ing}, metric: {name: m}, " + average + "}}]",
		"ext":   "[{type: External, external: {metric: {name: m}, " + average + "}}]",
		"extv":  "[{type: External, external: {metric: {name: m, selector: {matchLabels: {a: b}}}, target: {type: Value, value: 1}}}]",
		"two":   "[{type: Pods, pods: {metric: {name: m}, " + average + "}}, {type: Resource, resource: {name: memory, " + average + "}}]",
	} {
		api.autoscaler(name, kind, "ok", metrics)
	}
	if _, err := plane.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	cpu := "FailedGetResourceMetric " + failed + "failed to get cpu utilization: unable to get metrics for resource cpu: " + noResources
	for name, want := range map[string]string{
		"ok":    cpu,
		"res":   "FailedGetResourceMetric " + failed + "failed to get memory usage: unable to get metrics for resource memory: " + noResources,
		"cont":  "FailedGetContainerResourceMetric " + failed + "failed to get cpu utilization: unable to get metrics for resource cpu: " + noResources,
		"contv": "FailedGetContainerResourceMetric " + failed + "failed to get cpu usage: unable to get metrics for resource cpu: " + noResources,
		"pods":  "FailedGetPodsMetric " + failed + "unable to get metric m: " + noCustom,
		"obj":   "FailedGetObjectMetric " + failed + "unable to get metric m on Ingress default/ing: " + noCustom,
		"ext": "FailedGetExternalMetric " + failed + "unable to get external metric default/m/nil: unable to fetch metrics from external metrics API: " +
			"the server could not find the requested resource (get m.external.metrics.k8s.io)",
		"extv": "FailedGetExternalMetric " + failed + "unable to get external metric default/m/&LabelSelector{MatchLabels:map[string]string{a: b,}," +
			"MatchExpressions:[]LabelSelectorRequirement{},}: unable to fetch metrics from external metrics API: " +
			"the server could not find the requested resource (get m.external.metrics.k8s.io)",
	} {
		equal(t, name, "3 of 0, 1 metrics, scaled false\n"+ableToScale+"\nScalingActive False "+want, api.scaling(name))
	}
	equal(t, "two", "3 of 0, 2 metrics, scaled false\n"+ableToScale+"\nScalingActive False FailedGetPodsMetric "+failed+"unable to get metric m: "+noCustom, api.scaling("two"))
	const rescaled = "AbleToScale True SucceededRescale the HPA controller was able to update the target scale to "
	equal(t, "low", "1 of 2, 0 metrics, scaled true\n"+rescaled+"2"+notToZero, api.scaling("low"))
	equal(t, "high", "9 of 5, 0 metrics, scaled true\n"+rescaled+"5"+notToZero, api.scaling("high"))
	equal(t, "zero", "0 of 0, 0 metrics, scaled false\n"+ableToScale+
		"\nScalingActive False ScalingDisabled scaling is disabled since the replica count of the target is zero", api.scaling("zero"))
	const lost = "0 of 0, 0 metrics, scaled false\nAbleToScale False FailedGetScale the HPA controller was unable to get the target's current scale: "
	equal(t, "gone", lost+`deployments.apps "nothing" not found`, api.scaling("gone"))
	equal(t, "what", lost+`no matches for kind "Foo" in group "apps"`, api.scaling("what"))
	equal(t, "never", lost+"the server could not find the requested resource", api.scaling("never"))
}

// TestAutoscalerKeepsItsTargetWithinBounds: at once, but not more often than every 15 seconds.
func TestAutoscalerKeepsItsTargetWithinBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane, api := newPlane(t)
		replicas := func(path string, want int64) {
			t.Helper()
			if _, err := plane.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedInt64(api.must("GET", path, "").Object, "spec", "replicas")
			equal(t, "replicas", want, got)
		}
		api.autoscaler("a", "apiVersion: apps/v1, kind: Deployment", "a", "")
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		api.deployment("a", 1)
		replicas(deployments+"/a", 2)
		api.must("PATCH", deployments+"/a", "spec: {replicas: 4}")
		replicas(deployments+"/a", 4)
		time.Sleep(15 * time.Second)
		replicas(deployments+"/a", 4)
		if got := api.scaling("a"); !strings.HasPrefix(got, "4 of 2,") {
			t.Errorf("status: %s", got)
		}
		api.must("PATCH", deployments+"/a", "spec: {replicas: 9}")
		replicas(deployments+"/a", 9)
		time.Sleep(15 * time.Second)
		replicas(deployments+"/a", 5)

		const widgets = "/apis/example.com/v1/namespaces/default/widgets"
		api.autoscaler("w", "apiVersion: example.com/v1, kind: Widget", "w", "")
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		api.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
			metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: widgets, kind: Widget},
			versions: [{name: v1, served: true, storage: true, subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}},
			schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}},
			status: {type: object, properties: {replicas: {type: integer}}}}}}}]}}`)
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		api.must("POST", widgets, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {replicas: 1}}")
		replicas(widgets+"/w", 2)
		time.Sleep(15 * time.Second)
		replicas(widgets+"/w", 2)
		equal(t, "status", "2 of 2, 0 metrics, scaled true\n"+ableToScale+notToZero+"\nScalingActive False InvalidSelector the HPA target's scale is missing a selector", api.scaling("w"))
	})
}

// TestAutoscalerScalesKindsOfOtherServers by their scale.
func TestAutoscalerScalesKindsOfOtherServers(t *testing.T) {
	t.Parallel()
	api := withNotes(t, strings.Replace(noteDefinition, "{type: object}",
		"{type: object, x-kubernetes-preserve-unknown-fields: true}}, subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}", 1))
	api.must("POST", notesOf+"default/notes", "{apiVersion: example.com/v1, kind: Note, metadata: {name: one}, spec: {replicas: 9}}")
	api.autoscaler("one", "apiVersion: example.com/v1, kind: Note", "one", "")
	api.until(t, notesOf+"default/notes?watch=true", func(_ string, o *unstructured.Unstructured) bool {
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		return replicas == 5
	})
	api.until(t, autoscalers+"?watch=true", func(string, *unstructured.Unstructured) bool {
		return strings.HasPrefix(api.scaling("one"), "9 of 5, 0 metrics, scaled true\nAbleToScale True SucceededRescale")
	})
}
