// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
)

// autoscalers is a HorizontalPodAutoscaler with a metric of every type.
func autoscalers() kindtest.Kind {
	return kindtest.Kind{Resources: Resources(), APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Valid: `
metadata: {name: a, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  - {type: ContainerResource, containerResource: {name: memory, container: c, target: {type: AverageValue, averageValue: 1Mi}}}
  - {type: Pods, pods: {metric: {name: hits}, target: {type: AverageValue, averageValue: "1"}}}
  - type: Object
    object:
      describedObject: {apiVersion: v1, kind: Service, name: web}
      metric: {name: hits}
      target: {type: Value, value: "1"}
  - {type: External, external: {metric: {name: queue}, target: {type: Value, value: "1"}}}
  behavior:
    scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 60}]}`}
}

func TestAutoscalerValidation(t *testing.T) {
	t.Parallel()
	autoscalers().Create(t, []kindtest.Case{
		{"minReplicas below one", "spec.minReplicas: -1", "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0"},
		{"maxReplicas unset", "spec.maxReplicas: null", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`\nspec.maxReplicas: Required value"},
		{"maxReplicas below minReplicas", "spec.minReplicas: 4", "spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"},
		{"target without a kind", "spec.scaleTargetRef.kind: null", "spec.scaleTargetRef.kind: Required value"},
		{"target without a group", "spec.scaleTargetRef.apiVersion: v1", `spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group`},
		{"target that is a ReplicationController", "spec.scaleTargetRef: {apiVersion: v1, kind: ReplicationController, name: web}", ""},
		{"target with a slash", "spec.scaleTargetRef.name: a/b", `spec.scaleTargetRef.name: Invalid value: "a/b": may not contain '/'`},
		{"metric without a type", "spec.metrics.0.type: null", `
spec.metrics[0].type: Required value: must specify a metric source type
spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"
spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`},
		{"metric of an unknown type", "spec.metrics.0.type: Moon", `
spec.metrics[0].type: Unsupported value: "Moon": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"
spec.metrics[0].type: Unsupported value: "Moon": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`},
		{"metric without its source", "spec.metrics.0: {type: Pods}", "spec.metrics[0].pods: Required value: must populate information for the given metric source"},
		{"metric with two sources", "spec.metrics.0.external: {metric: {name: q}, target: {type: Value, value: '1'}}", "spec.metrics[0].external: Forbidden: must populate the given metric source only"},
		{"resource without a name", "spec.metrics.0.resource.name: null", "spec.metrics[0].resource.name: Required value: must specify a resource name"},
		{"resource without a target", "spec.metrics.0.resource.target: {type: Utilization}", "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"},
		{"resource with two targets", "spec.metrics.0.resource.target.averageValue: 1", "spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"},
		{"container resource without a container", "spec.metrics.1.containerResource.container: null", "spec.metrics[1].containerResource.container: Required value: must specify a container"},
		{"container resource of an unknown name", "spec.metrics.1.containerResource.name: moons", `
spec.metrics[1].containerResource.name: Invalid value: "moons": must be a standard resource type or fully qualified
spec.metrics[1].containerResource.name: Invalid value: "moons": must be a standard resource for containers`},
		{"pods metric without a name", "spec.metrics.2.pods.metric.name: null", "spec.metrics[2].pods.metric.name: Required value: must specify a metric name"},
		{"pods metric without an average", "spec.metrics.2.pods.target: {type: Value, value: 1}", "spec.metrics[2].pods.target.averageValue: Required value: must specify a positive target averageValue"},
		{"object metric without a value", "spec.metrics.3.object.target: {type: Value}", "spec.metrics[3].object.target.averageValue: Required value: must set either a target value or averageValue"},
		{"object metric of no object", "spec.metrics.3.object.describedObject.name: null", "spec.metrics[3].object.describedObject.name: Required value"},
		{"external metric with two values", "spec.metrics.4.external.target.averageValue: 1", "spec.metrics[4].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"},
		{"target of an unknown type", "spec.metrics.0.resource.target.type: Moon", `spec.metrics[0].resource.target.type: Invalid value: "Moon": must be either Utilization, Value, or AverageValue`},
		{"utilization below one", "spec.metrics.0.resource.target.averageUtilization: 0", "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"},
		{"value that is not positive", "spec.metrics.4.external.target.value: -1", `spec.metrics[4].external.target.value: Invalid value: "-1": must be positive`},
		{"scaling to zero by an outside metric", "spec.minReplicas: 0", ""},
		{"scaling to zero without an outside metric", "spec.minReplicas: 0\nspec.metrics: null", "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"},
		{"window below zero", "spec.behavior.scaleUp.stabilizationWindowSeconds: -1", "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"},
		{"window above an hour", "spec.behavior.scaleUp.stabilizationWindowSeconds: 3601", "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"},
		{"policy selection that is unknown", "spec.behavior.scaleDown.selectPolicy: Moon", `spec.behavior.scaleDown.selectPolicy: Unsupported value: "Moon": supported values: "Disabled", "Max", "Min"`},
		{"no policies", "spec.behavior.scaleUp.policies: []", "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"},
		{"policy of an unknown type", "spec.behavior.scaleUp.policies.0.type: Moon", `spec.behavior.scaleUp.policies[0].type: Unsupported value: "Moon": supported values: "Percent", "Pods"`},
		{"policy without a value", "spec.behavior.scaleUp.policies.0.value: 0", "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero"},
		{"policy without a period", "spec.behavior.scaleUp.policies.0.periodSeconds: 0", "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero"},
		{"policy with a long period", "spec.behavior.scaleUp.policies.0.periodSeconds: 1801", "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800"},
		{"negative tolerance", "spec.behavior.scaleUp.tolerance: -1", `spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0`},
	})
}

// A target without a group, stored by an earlier version, may stay as it is.
func TestAutoscalerUpdateValidation(t *testing.T) {
	t.Parallel()
	autoscalers().With(t, "spec.scaleTargetRef.apiVersion: v1").Update(t, []kindtest.Case{
		{"another target", "spec.scaleTargetRef.name: other", ""},
		{"another kind without a group", "spec.scaleTargetRef.kind: StatefulSet", `spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group`},
		{"maxReplicas unset", "spec.maxReplicas: 0", "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`\nspec.maxReplicas: Required value"},
	})
}

func TestAutoscalerStatusValidation(t *testing.T) {
	t.Parallel()
	k := autoscalers()
	k.Subresource = "status"
	k.Update(t, []kindtest.Case{
		{"counts below zero", "status: {currentReplicas: -1, desiredReplicas: -1}", `
status.currentReplicas: Invalid value: -1: must be greater than or equal to 0
status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0`},
		{"spec is not looked at", "spec.maxReplicas: -1", ""},
	})
}

func TestAutoscalerDefaults(t *testing.T) {
	t.Parallel()
	autoscalers().Defaults(t, []kindtest.Case{
		{"replicas", "spec.minReplicas: null", "spec.minReplicas: 1"},
		{"metrics", "spec.metrics: null", `spec.metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]`},
		{"no behavior", "spec.behavior: null", "spec.behavior: null"},
		{"behavior", "spec.behavior.scaleUp.policies: null", `
spec.behavior.scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]}
spec.behavior.scaleDown: {selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}`},
	})
}

func TestAutoscalerRow(t *testing.T) {
	t.Parallel()
	autoscalers().Row(t, []kindtest.Case{
		{"without measurements", "", "a | Deployment/web | cpu: <unknown>/50%, memory: <unknown>/1Mi + 3 more... | 1 | 3 | 0 | <unknown>"},
		{"with measurements", `spec.metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
status: {currentReplicas: 2, currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 40}}}]}`, "a | Deployment/web | cpu: 40%/50% | 1 | 3 | 2 | <unknown>"},
		{"without metrics", "spec.metrics: null", "a | Deployment/web | <none> | 1 | 3 | 0 | <unknown>"},
	})
}

// Objects of autoscaling/v1 hold in annotations what the version has no fields for.
func TestAutoscalerConversion(t *testing.T) {
	t.Parallel()
	v1 := kindtest.Kind{Resources: Resources(), APIVersion: "autoscaling/v1", Kind: "HorizontalPodAutoscaler", Valid: `
metadata:
  name: a
  annotations:
    autoscaling.alpha.kubernetes.io/metrics: '[{"type":"Pods","pods":{"metricName":"hits","targetAverageValue":"1"}}]'
    autoscaling.alpha.kubernetes.io/conditions: '[{"type":"AbleToScale","status":"True"}]'
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3, targetCPUUtilizationPercentage: 50}`}
	v1.Create(t, []kindtest.Case{
		{"metric in the annotation", `metadata.annotations: {autoscaling.alpha.kubernetes.io/metrics: '[{"type":"Pods","pods":{"metricName":"","targetAverageValue":"1"}}]'}`, "spec.metrics[0].pods.metric.name: Required value: must specify a metric name"},
		{"unreadable annotation", `metadata.annotations: {autoscaling.alpha.kubernetes.io/metrics: 'no JSON'}`, ""},
	})
	v1.Defaults(t, []kindtest.Case{
		{"conditions are status", "", `metadata.annotations: {autoscaling.alpha.kubernetes.io/metrics: '[{"type":"Pods","pods":{"metricName":"hits","targetAverageValue":"1"}}]'}`},
		{"CPU without a target", "spec.targetCPUUtilizationPercentage: null\nmetadata.annotations: null", "spec.targetCPUUtilizationPercentage: 80"},
	})
}
