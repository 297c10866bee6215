// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suites runs the integration tests of Kubernetes, unmodified, against Steer. The
// tests come from Kubernetes' modules, in the version that module oracle requires; only the
// files that start servers are replaced, by those below testdata/overlay, in the build. What
// each test is known to do is recorded, and a test that passed and fails is an error.
package suites

import (
	"slices"
	"strings"
)

// A Suite is a package of tests.
type Suite struct {
	// Name of its file of verdicts in oracle/testdata/suites.
	Name string
	// Module and Package are where it is: the package below the module.
	Module, Package string
}

// All suites, in the order in which they run.
func All() []Suite {
	out := []Suite{{"apiextensions", "k8s.io/apiextensions-apiserver", "test/integration"}}
	for _, name := range kubernetes() {
		out = append(out, Suite{strings.ReplaceAll(name, "/", "-"), "k8s.io/kubernetes", "test/integration/" + name})
	}
	return out
}

// OnEtcd reports whether the servers of a test have their objects in its etcd, because they share
// them, or because the test asks for what only such servers do: Leases of their identities.
func (s Suite) OnEtcd(test string) bool { return slices.Contains(onEtcd()[s.Name], test) }

func onEtcd() map[string][]string {
	return map[string][]string{
		"apiserver-admissionwebhook": {"TestBrokenWebhook"},
		"apiserver-cel":              {"TestCRDsOnStartup"},
		"apiserver-openapi":          {"TestSlowAPIServiceOpenAPIDoesNotBlockHealthCheck"},
		"auth":                       {"TestDiscoveryUpgradeBootstrapping"},
		"controlplane": {
			"TestCreateLeaseOnStart", "TestLeaseGarbageCollection", "TestMultiAPIServerNodePortAllocation",
			"TestReconcilerAPIServerLeaseCombined", "TestReconcilerAPIServerLeaseMultiCombined", "TestReconcilerAPIServerLeaseMultiMoreAPIServers",
		},
		"dualstack":   {"TestDowngradeServicePreferFromDualStack", "TestUpgradeServicePreferToDualStack"},
		"servicecidr": {"TestMigrateServiceCIDR", "TestServiceCIDRMigrationScenarios", "TestSkewAllocatorsRollout", "TestValidationAdmissionPolicyServiceCIDR"},
	}
}

// kubernetes are packages of Kubernetes that ask an API server.
func kubernetes() []string {
	return []string{
		"apiserver", "apiserver/apply", "apiserver/admissionwebhook", "apiserver/cel",
		"apiserver/cel/authorizerselector/selectordisabled", "apiserver/cel/authorizerselector/selectorenabled",
		"apiserver/discovery", "apiserver/openapi", "apiserver/anonymous", "apiserver/podlogs", "apiserver/portforward",
		"auth", "client", "controlplane", "controlplane/audit", "serviceaccount",
		"garbagecollector", "namespace", "quota", "dryrun", "scale", "events", "evictions", "disruption", "podgc",
		"deployment", "replicaset", "replicationcontroller", "statefulset", "daemonset", "job", "cronjob",
		"configmap", "secrets", "storageclasses", "pods", "node", "defaulttolerationseconds", "ttlcontroller",
		"service", "endpoints", "endpointslice", "certificates", "clustertrustbundles", "pvc", "apimachinery", "apimachinery/apply",
		"servicecidr", "dualstack", "network",
	}
}
