// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
	"github.com/steer-dev/steer/controlplane/core/workload"
)

// template is the Pod template of the valid objects, indented for a spec.
const template = `
  template:
    metadata: {labels: {a: b}}
    spec:
      containers: [{name: c, image: i}]`

func owner(apiVersion, kind, spec string) kindtest.Kind {
	return kindtest.Kind{Resources: workload.Resources(), APIVersion: apiVersion, Kind: kind, Valid: "metadata: {name: w, namespace: default}\nspec:\n" + spec + template}
}

func deployments() kindtest.Kind {
	return owner("apps/v1", "Deployment", "  selector: {matchLabels: {a: b}}")
}

func TestDeploymentValidation(t *testing.T) {
	t.Parallel()
	deployments().Create(t, []kindtest.Case{
		{"replicas", "spec.replicas: -1", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"no selector", "spec.selector: null", "spec.selector: Required value\nspec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"empty selector", "spec.selector: {}", "spec.selector: Invalid value: {}: empty selector is invalid for deployment"},
		{"selector of other Pods", "spec.selector.matchLabels: {a: c}", "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"template without containers", "spec.template.spec.containers: []", "spec.template.spec.containers: Required value"},
		{"restart policy", "spec.template.spec.restartPolicy: Never", `spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
		{"active deadline", "spec.template.spec.activeDeadlineSeconds: 1", "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"},
		{"strategy of an unknown type", "spec.strategy: {type: Moon}", `spec.strategy: Unsupported value: {"Type":"Moon","RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"`},
		{"recreate with bounds", "spec.strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}", "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"},
		{"bounds that admit no step", "spec.strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}", "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"},
		{"unavailable above all", "spec.strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 101%}}", `spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%`},
		{"surge that is no number", "spec.strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: moon}}", `spec.strategy.rollingUpdate.maxSurge: Invalid value: "moon": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`},
		{"ready seconds", "spec.minReadySeconds: -1", "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"history", "spec.revisionHistoryLimit: -1", "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"},
		{"deadline below the ready seconds", "spec.minReadySeconds: 10\nspec.progressDeadlineSeconds: 10", "spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"},
	})
	deployments().Update(t, []kindtest.Case{
		{"selector", "spec.selector.matchLabels: {c: d}\nspec.template.metadata.labels: {c: d}", `spec.selector: Invalid value: {"matchLabels":{"c":"d"}}: field is immutable`},
		{"template", "spec.template.spec.containers.0.image: j", ""},
	})
	status := deployments()
	status.Subresource = "status"
	status.Update(t, []kindtest.Case{
		{"negative counts", "status: {replicas: -1, observedGeneration: -1}", `
status.observedGeneration: Invalid value: -1: must be greater than or equal to 0
status.replicas: Invalid value: -1: must be greater than or equal to 0
status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas
status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas
status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas`},
		{"more ready than there are", "status: {replicas: 1, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 3}", `
status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas
status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas
status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas
status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas`},
		{"collisions go back", "status: {collisionCount: -1}", "status.collisionCount: Invalid value: -1: must be greater than or equal to 0"},
	})
}

func TestDeploymentDefaults(t *testing.T) {
	t.Parallel()
	deployments().Defaults(t, []kindtest.Case{
		{"spec", "", `
spec.replicas: 1
spec.revisionHistoryLimit: 10
spec.progressDeadlineSeconds: 600
spec.strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
spec.template.spec.restartPolicy: Always
metadata.generation: 1`},
		{"recreate", "spec.strategy: {type: Recreate}", "spec.strategy: {type: Recreate}"},
		{"status is not set by a creation", "status: {replicas: 3}", "status: {}"},
	})
}

func TestDeploymentRow(t *testing.T) {
	t.Parallel()
	deployments().Row(t, []kindtest.Case{
		{"partly ready", "spec.replicas: 3\nstatus: {readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2}", "w | 2/3 | 1 | 2 | <unknown> | c | i | a=b"},
	})
}

func TestReplicaSetValidation(t *testing.T) {
	t.Parallel()
	k := owner("apps/v1", "ReplicaSet", "  selector: {matchLabels: {a: b}}")
	k.Create(t, []kindtest.Case{
		{"replicas", "spec.replicas: -1", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"selector of other Pods", "spec.selector.matchLabels: {a: c}", "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"volume that one node may write", "spec.replicas: 2\nspec.template.spec.volumes: [{name: v, gcePersistentDisk: {pdName: d}}]", ""},
	})
	k.Update(t, []kindtest.Case{{"selector", "spec.selector.matchLabels: {c: d}\nspec.template.metadata.labels: {c: d}", `spec.selector: Invalid value: {"matchLabels":{"c":"d"}}: field is immutable`}})
	k.Defaults(t, []kindtest.Case{{"replicas", "", "spec.replicas: 1"}})
}

func TestReplicationControllerValidation(t *testing.T) {
	t.Parallel()
	k := owner("v1", "ReplicationController", "  selector: {a: b}")
	k.Create(t, []kindtest.Case{
		{"selector", "spec.selector: {a: c}", "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"no template", "spec.template: null", "spec.template: Required value"},
		{"selector of the template", "spec.selector: null", ""},
	})
	k.Defaults(t, []kindtest.Case{{"selector and labels", "spec.selector: null", "spec.selector: {a: b}\nmetadata.labels: {a: b}\nspec.replicas: 1"}})
}

func TestStatefulSetValidation(t *testing.T) {
	t.Parallel()
	k := owner("apps/v1", "StatefulSet", "  serviceName: s\n  selector: {matchLabels: {a: b}}")
	k.Create(t, []kindtest.Case{
		{"management policy", "spec.podManagementPolicy: Moon", `spec.podManagementPolicy: Invalid value: "Moon": must be 'OrderedReady' or 'Parallel'`},
		{"strategy of an unknown type", "spec.updateStrategy: {type: Moon}", `spec.updateStrategy: Invalid value: {"Type":"Moon","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'`},
		{"partition", "spec.updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: -1}}", "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0"},
		{"deletion with a partition", "spec.updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}", `spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":1,"MaxUnavailable":null}: only allowed for updateStrategy 'RollingUpdate'`},
		{"first ordinal", "spec.ordinals: {start: -1}", "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"},
		{"retention of claims", "spec.persistentVolumeClaimRetentionPolicy: {whenScaled: Moon, whenDeleted: Retain}", `spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Moon": supported values: "Retain", "Delete"`},
		{"restart policy", "spec.template.spec.restartPolicy: Never", `spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
	})
	k.Update(t, []kindtest.Case{
		{"service", "spec.serviceName: other", `spec.serviceName: Invalid value: "other": field is immutable`},
		{"replicas", "spec.replicas: 3", ""},
	})
	k.Defaults(t, []kindtest.Case{{"spec", "", `
spec.replicas: 1
spec.revisionHistoryLimit: 10
spec.podManagementPolicy: OrderedReady
spec.updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxUnavailable: 1}}
spec.persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}`}})
}

func TestDaemonSetValidation(t *testing.T) {
	t.Parallel()
	k := owner("apps/v1", "DaemonSet", "  selector: {matchLabels: {a: b}}")
	k.Create(t, []kindtest.Case{
		{"selector of other Pods", "spec.selector.matchLabels: {a: c}", "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"strategy of an unknown type", "spec.updateStrategy: {type: Moon}", `spec.updateStrategy: Unsupported value: {"Type":"Moon","RollingUpdate":null}: supported values: "RollingUpdate", "OnDelete"`},
		{"bounds that admit no step", "spec.updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}", "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
		{"surge and unavailable", "spec.updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}", "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"},
		{"volume that one node may write", "spec.template.spec.volumes: [{name: v, gcePersistentDisk: {pdName: d}}]", ""},
	})
	k.Defaults(t, []kindtest.Case{{"strategy", "", "spec.updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}"}})
}

func TestControllerRevisionValidation(t *testing.T) {
	t.Parallel()
	k := kindtest.Kind{Resources: workload.Resources(), APIVersion: "apps/v1", Kind: "ControllerRevision", Valid: `
metadata: {name: r, namespace: default}
data: {a: b}
revision: 1`}
	k.Create(t, []kindtest.Case{
		{"no data", "data: null", "data: Required value: data is mandatory"},
		{"revision", "revision: -1", "revision: Invalid value: -1: must be greater than or equal to 0"},
	})
	k.Update(t, []kindtest.Case{
		{"data", "data: {a: c}", `data: Invalid value: {"a":"c"}: field is immutable`},
		{"revision", "revision: 2", ""},
	})
}

func jobs(t *testing.T) kindtest.Kind {
	t.Helper()
	return owner("batch/v1", "Job", "  completions: 3").With(t, "spec.template.spec.restartPolicy: Never")
}

func TestJobValidation(t *testing.T) {
	t.Parallel()
	jobs(t).Create(t, []kindtest.Case{
		{"parallelism", "spec.parallelism: -1", "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"},
		{"completions", "spec.completions: -1", "spec.completions: Invalid value: -1: must be greater than or equal to 0"},
		{"deadline", "spec.activeDeadlineSeconds: -1", "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"retries", "spec.backoffLimit: -1", "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"},
		{"time to live", "spec.ttlSecondsAfterFinished: -1", "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0"},
		{"restart policy", "spec.template.spec.restartPolicy: Always", `spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`},
		{"completion mode", "spec.completionMode: Moon", `spec.completionMode: Unsupported value: "Moon": supported values: "NonIndexed", "Indexed"`},
		{"indexed without completions", "spec.completionMode: Indexed\nspec.completions: null\nspec.parallelism: 1", "spec.completions: Required value: when completion mode is Indexed"},
		{"retries of an index without indexes", "spec.backoffLimitPerIndex: 1", "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"},
		{"failed indexes without their retries", "spec.completionMode: Indexed\nspec.maxFailedIndexes: 1", "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"},
		{"replacement of Pods", "spec.podReplacementPolicy: Moon", `spec.podReplacementPolicy: Unsupported value: "Moon": supported values: "Failed", "TerminatingOrFailed"`},
		{"policy with another restart policy", "spec.podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}]}\nspec.template.spec.restartPolicy: OnFailure", `spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified`},
		{"rule without a condition", "spec.podFailurePolicy: {rules: [{action: Ignore}]}", "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"},
		{"rule of an unknown action", "spec.podFailurePolicy: {rules: [{action: Moon, onPodConditions: [{type: DisruptionTarget, status: 'True'}]}]}", `spec.podFailurePolicy.rules[0].action: Unsupported value: "Moon": supported values: "Count", "FailIndex", "FailJob", "Ignore"`},
		{"exit code zero", "spec.podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [0]}}]}", "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator"},
		{"manual selector without one", "spec.manualSelector: true", "spec.selector: Required value\nspec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"},
		{"controller", "spec.managedBy: moon", `spec.managedBy: Invalid value: "moon": must be a domain-prefixed path (such as "acme.io/foo")`},
	})
}

func TestJobUpdateValidation(t *testing.T) {
	t.Parallel()
	jobs(t).Update(t, []kindtest.Case{
		{"completions", "spec.completions: 4", "spec.completions: Invalid value: 4: field is immutable"},
		{"template", "spec.template.spec.containers.0.image: j", `spec.template: Invalid value: {"labels":{"a":"b","batch.kube...`},
		{"parallelism", "spec.parallelism: 5", ""},
		{"suspension", "spec.suspend: true", ""},
		{"completion mode", "spec.completionMode: Indexed", `spec.completionMode: Invalid value: "Indexed": field is immutable`},
	})
	suspended := jobs(t).With(t, "spec.suspend: true")
	suspended.Update(t, []kindtest.Case{
		{"node selector while suspended", "spec.template.spec.nodeSelector: {a: b}", ""},
		{"image while suspended", "spec.template.spec.containers.0.image: j", `spec.template.spec: Invalid value: {"Volumes":null,"InitContainers":null,"Containers":[{"Name":"c","Image":"j","Command":null,"Args":null,"WorkingDir":"","Ports":null,"EnvFrom":null,"Env":null,"Resources":{"Limits":null,"Requests":null,"Claims":null},"ResizePolicy":null,"RestartPolicy":null,"RestartPolicyRules":null,"VolumeMounts":null,"VolumeDevices":null,"LivenessProbe":null,"ReadinessProbe":null,"StartupProbe":null,"Lifecycle":null,"TerminationMessagePath":"/dev/termination-log","TerminationMessagePolicy":"File","ImagePullPolicy":"Always","SecurityContext":null,"Stdin":false,"StdinOnce":false,"TTY":false}],"EphemeralContainers":null,"RestartPolicy":"Never","TerminationGracePeriodSeconds":30,"ActiveDeadlineSeconds":null,"DNSPolicy":"ClusterFirst","NodeSelector":null,"ServiceAccountName":"","DeprecatedServiceAccount":"","AutomountServiceAccountToken":null,"NodeName":"","HostNetwork":false,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"SecurityContext":{"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,"SupplementalGroups":null,"SupplementalGroupsPolicy":null,"FSGroup":null,"Sysctls":null,"FSGroupChangePolicy":null,"SeccompProfile":null,"AppArmorProfile":null,"SELinuxChangePolicy":null},"ImagePullSecrets":null,"Hostname":"","Subdomain":"","Affinity":null,"SchedulerName":"default-scheduler","Tolerations":null,"HostAliases":null,"PriorityClassName":"","Priority":null,"DNSConfig":null,"ReadinessGates":null,"RuntimeClassName":null,"EnableServiceLinks":null,"PreemptionPolicy":null,"Overhead":null,"TopologySpreadConstraints":null,"SetHostnameAsFQDN":null,"OS":null,"HostUsers":null,"SchedulingGates":null,"ResourceClaims":null,"Resources":null,"HostnameOverride":null,"SchedulingGroup":null,"EvictionResponders":null}: field is immutable`},
	})
}

func TestJobStatusValidation(t *testing.T) {
	t.Parallel()
	k := jobs(t)
	k.Subresource = "status"
	k.Update(t, []kindtest.Case{
		{"negative counts", "status: {active: -1, succeeded: -1, failed: -1}", `
status.active: Invalid value: -1: must be greater than or equal to 0
status.succeeded: Invalid value: -1: must be greater than or equal to 0
status.failed: Invalid value: -1: must be greater than or equal to 0
status.failed: Invalid value: -1: cannot decrease the failed counter
status.succeeded: Invalid value: -1: cannot decrease the succeeded counter`},
		{"complete and failed", `status: {startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:01:00Z", conditions: [{type: Complete, status: "True"}, {type: Failed, status: "True"}]}`, `
status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions
status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition
status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition`},
		{"complete without its time", `status: {startTime: "2026-01-01T00:00:00Z", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`, "status.completionTime: Required value: completionTime is required for Complete jobs"},
	})
}

func TestJobDefaults(t *testing.T) {
	t.Parallel()
	jobs(t).Defaults(t, []kindtest.Case{
		{"spec", "", `
spec.parallelism: 1
spec.backoffLimit: 6
spec.completionMode: NonIndexed
spec.suspend: false
spec.podReplacementPolicy: TerminatingOrFailed
spec.selector.matchLabels: {batch.kubernetes.io/controller-uid: uid}
spec.template.metadata.labels: {a: b, batch.kubernetes.io/controller-uid: uid, batch.kubernetes.io/job-name: w, controller-uid: uid, job-name: w}`},
		{"neither completions nor parallelism", "spec.completions: null", "spec.completions: 1\nspec.parallelism: 1"},
		{"parallelism alone", "spec.completions: null\nspec.parallelism: 2", "spec.completions: null"},
	})
	jobs(t).Row(t, []kindtest.Case{
		{"running", "status: {succeeded: 1, active: 1}", "w | Running | 1/3 |  | <unknown> | c | i | <none>"},
		{"work queue", "spec.completions: null\nspec.parallelism: 2", "w | Running | 0/1 of 2 |  | <unknown> | c | i | <none>"},
	})
}

func TestCronJobValidation(t *testing.T) {
	t.Parallel()
	k := kindtest.Kind{Resources: workload.Resources(), APIVersion: "batch/v1", Kind: "CronJob", Valid: `
metadata: {name: c, namespace: default}
spec:
  schedule: "*/5 * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`}
	k.Create(t, []kindtest.Case{
		{"no schedule", "spec.schedule: ''", "spec.schedule: Required value"},
		{"schedule of four fields", "spec.schedule: '* * * *'", `spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]`},
		{"schedule with a time zone", "spec.schedule: 'TZ=UTC * * * * *'", `spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`},
		{"unknown time zone", "spec.timeZone: Moon/Base", `spec.timeZone: Invalid value: "Moon/Base": unknown time zone Moon/Base`},
		{"local time zone", "spec.timeZone: Local", `spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones`},
		{"deadline", "spec.startingDeadlineSeconds: -1", "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"concurrency policy", "spec.concurrencyPolicy: Moon", `spec.concurrencyPolicy: Unsupported value: "Moon": supported values: "Allow", "Forbid", "Replace"`},
		{"history", "spec.successfulJobsHistoryLimit: -1\nspec.failedJobsHistoryLimit: -1", `
spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0
spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0`},
		{"manual selector", "spec.jobTemplate.spec.manualSelector: true", `spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"`},
		{"long name", "metadata.name: cccccccccccccccccccccccccccccccccccccccccccccccccccc3", `metadata.name: Invalid value: "cccccccccccccccccccccccccccccccccccccccccccccccccccc3": must be no more than 52 characters`},
	})
	k.Defaults(t, []kindtest.Case{{"spec", "", `
spec.concurrencyPolicy: Allow
spec.suspend: false
spec.successfulJobsHistoryLimit: 3
spec.failedJobsHistoryLimit: 1`}})
	k.Row(t, []kindtest.Case{{"suspended", "spec.suspend: true\nspec.timeZone: Europe/Berlin\nstatus.active: [{name: j}]", "c | */5 * * * * | Europe/Berlin | True | 1 | <none> | <unknown> | c | i | <none>"}})
}
