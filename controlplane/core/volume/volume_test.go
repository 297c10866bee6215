// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
	"github.com/steer-dev/steer/controlplane/core/volume"
)

func claims() kindtest.Kind {
	return kindtest.Kind{Resources: volume.Resources(), APIVersion: "v1", Kind: "PersistentVolumeClaim", Valid: `
metadata: {name: c, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: fast
  resources: {requests: {storage: 1Gi}}`}
}

func TestClaimValidation(t *testing.T) {
	t.Parallel()
	claims().Create(t, []kindtest.Case{
		{"no access mode", "spec.accessModes: []", "spec.accessModes: Required value: at least 1 access mode is required"},
		{"unknown access mode", "spec.accessModes: [Moon]", `spec.accessModes: Unsupported value: "Moon": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"`},
		{"one Pod and others", "spec.accessModes: [ReadWriteOncePod, ReadWriteMany]", "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
		{"no size", "spec.resources: {}", "spec.resources[storage]: Required value"},
		{"size that is not positive", "spec.resources.requests.storage: 0", `spec.resources[storage]: Invalid value: "0": must be greater than zero`},
		{"class", "spec.storageClassName: A_b", `spec.storageClassName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"volume mode", "spec.volumeMode: Moon", `spec.volumeMode: Unsupported value: "Moon": supported values: "Block", "Filesystem"`},
		{"selector", "spec.selector: {matchLabels: {a: -}}", `spec.selector.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"data source without a name", "spec.dataSource: {kind: PersistentVolumeClaim, name: ''}", `
spec.dataSource.name: Required value
spec.dataSourceRef.name: Required value`},
		{"two data sources", "spec.dataSource: {kind: PersistentVolumeClaim, name: a}\nspec.dataSourceRef: {kind: PersistentVolumeClaim, name: b}", "spec: Invalid value: {}: must match dataSourceRef"},
	})
	claims().Update(t, []kindtest.Case{
		{"size", "spec.resources.requests.storage: 2Gi", "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"},
		{"access modes", "spec.accessModes: [ReadWriteMany]", "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"},
		{"volume", "spec.volumeName: v", ""},
	})
	claims().With(t, "spec.volumeName: v\nstatus: {phase: Bound, capacity: {storage: 1Gi}}").Update(t, []kindtest.Case{
		{"larger, as it is bound", "spec.resources.requests.storage: 2Gi", ""},
		{"smaller than the volume", "spec.resources.requests.storage: 1Mi", "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"},
		{"another volume", "spec.volumeName: w", "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"},
		{"access modes of a bound claim", "spec.accessModes: [ReadWriteMany]", "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"},
	})
	status := claims()
	status.Subresource = "status"
	status.Update(t, []kindtest.Case{
		{"negative capacity", "status.capacity: {storage: -1}", "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity"},
		{"unknown resource of the resize", "status.allocatedResourceStatuses: {cpu: ControllerResizeInProgress}", `status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"`},
		{"unknown status of the resize", "status.allocatedResourceStatuses: {storage: Moon}", `status.allocatedResourceStatuses: Unsupported value: "storage": supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"`},
	})
}

func TestClaimDefaults(t *testing.T) {
	t.Parallel()
	claims().Defaults(t, []kindtest.Case{
		{"mode and phase", "", "spec.volumeMode: Filesystem\nstatus: {phase: Pending}"},
		{"data source of old", "spec.dataSource: {kind: PersistentVolumeClaim, name: a}", "spec.dataSourceRef: {apiGroup: null, kind: PersistentVolumeClaim, name: a}"},
		{"data source of another kind", "spec.dataSource: {apiGroup: example.com, kind: K, name: a}", "spec.dataSource: null"},
		{"data source of another namespace", "spec.dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: other}", "spec.dataSourceRef: null"},
	})
	claims().Row(t, []kindtest.Case{
		{"bound", "spec.volumeName: v\nstatus: {phase: Bound, capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce]}", "c | Bound | v | 1Gi | RWO | fast | <unset> | <unknown> | <unset>"},
		{"lost", "spec.storageClassName: null\nstatus: {phase: Lost}", "c | Lost |  |  |  |  | <unset> | <unknown> | <unset>"},
	})
	claims().Warnings(t, []kindtest.Case{
		{"fraction of a byte", "spec.resources.requests.storage: 1500m", `spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`},
		{"class in the annotation", "metadata.annotations: {volume.beta.kubernetes.io/storage-class: a}", `metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead`},
	})
}

func volumes() kindtest.Kind {
	return kindtest.Kind{Resources: volume.Resources(), APIVersion: "v1", Kind: "PersistentVolume", Valid: `
metadata: {name: v}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /data}`}
}

func TestVolumeValidation(t *testing.T) {
	t.Parallel()
	volumes().Create(t, []kindtest.Case{
		{"no capacity", "spec.capacity: null", `
spec.capacity: Required value
spec.capacity: Unsupported value: null: supported values: "storage"`},
		{"capacity that is not positive", "spec.capacity.storage: 0", `spec.capacity[storage]: Invalid value: "0": must be greater than zero`},
		{"two capacities", "spec.capacity.cpu: 1", `spec.capacity: Unsupported value: {"cpu":"1","storage":"1Gi"}: supported values: "storage"`},
		{"no access mode", "spec.accessModes: []", "spec.accessModes: Required value"},
		{"no source", "spec.hostPath: null", "spec: Required value: must specify a volume type"},
		{"two sources", "spec.nfs: {server: s, path: /}", "spec.nfs: Forbidden: may not specify more than 1 volume type"},
		{"path with dots", "spec.hostPath.path: /a/../b", `spec.hostPath.path: Invalid value: "/a/../b": must not contain '..'`},
		{"recycling the root", "spec.hostPath.path: /\nspec.persistentVolumeReclaimPolicy: Recycle", "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"},
		{"reclaim policy", "spec.persistentVolumeReclaimPolicy: Moon", `spec.persistentVolumeReclaimPolicy: Unsupported value: "Moon": supported values: "Delete", "Recycle", "Retain"`},
		{"local without affinity", "spec.hostPath: null\nspec.local: {path: /data}", "spec.nodeAffinity: Required value: Local volume requires node affinity"},
		{"driver without a handle", "spec.hostPath: null\nspec.csi: {driver: d, volumeHandle: ''}", "spec.csi.volumeHandle: Required value"},
		{"network volume without a server", "spec.hostPath: null\nspec.nfs: {server: '', path: /}", "spec.nfs.server: Required value"},
		{"relative network path", "spec.hostPath: null\nspec.nfs: {server: s, path: a}", `spec.nfs.path: Invalid value: "a": must be an absolute path`},
		{"iscsi", "spec.hostPath: null\nspec.iscsi: {targetPortal: '', iqn: moon, lun: 256}", `
spec.iscsi.targetPortal: Required value
spec.iscsi.iqn: Invalid value: "moon": must be valid format
spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive`},
		{"attributes without a driver", "spec.volumeAttributesClassName: a", "spec.csi: Required value: has to be specified when using volumeAttributesClassName"},
		{"empty affinity", "spec.nodeAffinity: {}", "spec.nodeAffinity.required: Required value: must specify required node constraints"},
	})
	volumes().Update(t, []kindtest.Case{
		{"source", "spec.hostPath.path: /other", "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"},
		{"volume mode", "spec.volumeMode: Block", `volumeMode: Invalid value: "Block": field is immutable`},
		{"reclaim policy", "spec.persistentVolumeReclaimPolicy: Delete", ""},
	})
	volumes().Defaults(t, []kindtest.Case{{"spec", "", "spec.persistentVolumeReclaimPolicy: Retain\nspec.volumeMode: Filesystem\nspec.hostPath.type: ''\nstatus.phase: Pending"}})
	volumes().Row(t, []kindtest.Case{{"bound", "spec.claimRef: {namespace: default, name: c}\nspec.persistentVolumeReclaimPolicy: Delete\nstatus.phase: Bound", "v | 1Gi | RWO | Delete | Bound | default/c |  | <unset> |  | <unknown> | <unset>"}})
	volumes().Warnings(t, []kindtest.Case{
		{"recycling", "spec.persistentVolumeReclaimPolicy: Recycle", "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."},
		{"source that is gone", "spec.hostPath: null\nspec.photonPersistentDisk: {pdID: d}", "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"},
	})
}

func TestStorageClassValidation(t *testing.T) {
	t.Parallel()
	k := kindtest.Kind{Resources: volume.Resources(), APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Valid: `
metadata: {name: c}
provisioner: example.com/p
parameters: {a: b}`}
	k.Create(t, []kindtest.Case{
		{"no provisioner", "provisioner: ''", "provisioner: Required value"},
		{"provisioner that is no name", "provisioner: a b", `provisioner: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		{"parameter without a name", "parameters: {'': a}", `parameters: Invalid value: "": field can not be empty.`},
		{"reclaim policy", "reclaimPolicy: Moon", `reclaimPolicy: Unsupported value: "Moon": supported values: "Delete", "Retain"`},
		{"binding mode", "volumeBindingMode: Moon", `volumeBindingMode: Unsupported value: "Moon": supported values: "Immediate", "WaitForFirstConsumer"`},
		{"topology without values", "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: []}]}]", "allowedTopologies[0].matchLabelExpressions[0].values: Required value"},
	})
	k.Update(t, []kindtest.Case{
		{"parameters", "parameters: {a: c}", `parameters: Invalid value: null: field is immutable`},
		{"provisioner of another", "provisioner: other", `provisioner: Invalid value: null: field is immutable`},
		{"expansion", "allowVolumeExpansion: true", ""},
	})
	k.Defaults(t, []kindtest.Case{{"policies", "", "reclaimPolicy: Delete\nvolumeBindingMode: Immediate"}})
	k.Row(t, []kindtest.Case{{"default class", "metadata.annotations: {storageclass.kubernetes.io/is-default-class: 'true'}", "c (default) | example.com/p | Delete | Immediate | false | <unknown>"}})
	k.Warnings(t, []kindtest.Case{{"deprecated label", "allowedTopologies: [{matchLabelExpressions: [{key: failure-domain.beta.kubernetes.io/zone, values: [a]}]}]", `allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead`}})
}

func TestStorageKindsValidation(t *testing.T) {
	t.Parallel()
	of := func(kind, valid string) kindtest.Kind {
		return kindtest.Kind{Resources: volume.Resources(), APIVersion: "storage.k8s.io/v1", Kind: kind, Valid: "metadata: {name: a, namespace: default}\n" + valid}
	}
	attributes := of("VolumeAttributesClass", "driverName: d\nparameters: {a: b}")
	attributes.Create(t, []kindtest.Case{{"no parameters", "parameters: {}", "parameters: Required value: must contain at least one key/value pair"}, {"no driver", "driverName: ''", "driverName: Required value"}})
	attributes.Update(t, []kindtest.Case{{"parameters", "parameters: {a: c}", "parameters: Forbidden: updates to parameters are forbidden."}, {"driver", "driverName: e", "driverName: Forbidden: updates to driverName are forbidden."}})

	attachments := of("VolumeAttachment", "spec: {attacher: a, nodeName: node1, source: {persistentVolumeName: v}}")
	attachments.Create(t, []kindtest.Case{
		{"no attacher", "spec.attacher: ''", "spec.attacher: Required value"}, {"no node", "spec.nodeName: ''", `spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}, {"no source", "spec.source: {}", "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"},
	})
	attachments.Update(t, []kindtest.Case{{"spec", "spec.nodeName: node2", `spec: Invalid value: null: field is immutable`}})

	drivers := of("CSIDriver", "spec: {}")
	drivers.Create(t, []kindtest.Case{
		{"audience twice", "spec.tokenRequests: [{audience: a}, {audience: a}]", `spec.tokenRequests[1].audience: Duplicate value: "a"`},
		{"short token", "spec.tokenRequests: [{audience: a, expirationSeconds: 1}]", "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes"},
		{"life cycle", "spec.volumeLifecycleModes: [Moon]", `spec.volumeLifecycleModes: Unsupported value: "Moon": supported values: "Persistent", "Ephemeral"`},
		{"short period", "spec.nodeAllocatableUpdatePeriodSeconds: 9", "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds"},
	})
	drivers.Update(t, []kindtest.Case{{"attachment", "spec.attachRequired: false", "spec.attachedRequired: Invalid value: false: field is immutable"}})
	drivers.Defaults(t, []kindtest.Case{{"spec", "", `
spec.attachRequired: true
spec.podInfoOnMount: false
spec.storageCapacity: false
spec.fsGroupPolicy: ReadWriteOnceWithFSType
spec.requiresRepublish: false
spec.seLinuxMount: false
spec.volumeLifecycleModes: [Persistent]`}})

	nodes := of("CSINode", "spec: {drivers: [{name: d, nodeID: i, topologyKeys: [zone], allocatable: {count: 1}}]}")
	nodes.Create(t, []kindtest.Case{
		{"driver twice", "spec.drivers: [{name: d, nodeID: i}, {name: d, nodeID: i}]", `spec.drivers[1].name: Duplicate value: "d"`},
		{"no node id", "spec.drivers.0.nodeID: ''", "spec.drivers[0].nodeID: Required value"},
		{"topology key twice", "spec.drivers.0.topologyKeys: [a, a]", `spec.drivers[0]: Duplicate value: "a"`},
		{"negative count", "spec.drivers.0.allocatable.count: -1", "spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"},
	})
	nodes.Update(t, []kindtest.Case{{"node id", "spec.drivers.0.nodeID: j", `spec.drivers: Invalid value: {"Name":"d","NodeID":"j","TopologyKeys":["zone"],"Allocatable":null}: field is immutable`}, {"no drivers", "spec.drivers: []", ""}})

	capacities := of("CSIStorageCapacity", "storageClassName: c\ncapacity: 1Gi")
	capacities.Create(t, []kindtest.Case{
		{"class", "storageClassName: A_b", `storageClassName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}, {"negative", "capacity: -1", `capacity: Invalid value: "-1": must be greater than or equal to 0`}, {"topology", "nodeTopology: {matchLabels: {a: -}}", `nodeTopology.matchLabels: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
	})
	capacities.Update(t, []kindtest.Case{{"another class", "storageClassName: d", `storageClassName: Invalid value: "d": field is immutable`}, {"capacity", "capacity: 2Gi", ""}})
}
