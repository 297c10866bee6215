// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

const (
	// recordsDir is where the operator keeps its records.
	recordsDir = "/records"
	// recordsLimit is the size at which a node evicts the Pod for its volume: twice what the
	// operator keeps, so that it never comes to that.
	recordsLimit = "512Mi"
)

// keepRecords has a container keep the records of reconciles in files, and serve them on
// loopback alone, where steer why asks by port-forward on port 6060: the address
// authenticates no one.
func keepRecords(container object) {
	container["args"] = append(container["args"].([]any), texts("--record-dir="+recordsDir, "--pprof-bind-address=127.0.0.1:6060")...)
	container["volumeMounts"] = []any{object{"name": WithRecords, "mountPath": recordsDir}}
}

// recordsVolume lives as long as the Pod: records outlive a crash of the container. A claim
// would tie the replicas to one node.
func recordsVolume() object {
	return object{"name": WithRecords, "emptyDir": object{"sizeLimit": recordsLimit}}
}

// recordsReader names the role for those who may read the records with --records
// NAMESPACE/deploy/NAME. A port-forward cannot be limited to Pods of some names that last.
func (b *builder) recordsReader() {
	role := b.namespaced(rbacVersion, "Role", b.name("records-reader"))
	role["rules"] = rules(
		only(rule("apps", "deployments", "get"), b.name("controller-manager")),
		rule("", "pods", "list"),
		rule("", "pods/portforward", "create"),
	)
	b.add(role)
}
