// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// TestServersBehindSimulatedPodsAreNotConnectedTo is about webhooks, conversions and APIServices.
// Within Reach there is only this machine, so that the test connects to no other whatever the
// plane does.
func TestServersBehindSimulatedPodsAreNotConnectedTo(t *testing.T) {
	t.Parallel()
	plane, admin := planeOf(t, controlplane.Options{
		ManualControllers: true, Workloads: &workloads.Options{},
		Webhooks: webhookclient.Options{Reach: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	admin.must("POST", "/apis/apps/v1/namespaces/default/deployments", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2,
		selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}}}`)
	admin.must("POST", "/api/v1/namespaces/default/services", `{apiVersion: v1, kind: Service, metadata: {name: hooks},
		spec: {selector: {app: x}, ports: [{port: 443, targetPort: 9443}]}}`)
	settle(t, plane)
	const want = "the endpoints of the service default/hooks are simulated Pods, which run nothing: run the server on this machine"

	admin.must("POST", validatePath, configuration(validatedKind, "v", "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}"))
	if got := admin.refused("POST", "/api/v1/namespaces/default/configmaps", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"); !strings.Contains(got, want) {
		t.Errorf("webhook: %s", got)
	}
	crd := cronTabCRD("crontabs", "CronTab", "ct")
	crd = strings.Replace(crd, "  versions:\n", `  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: default, name: hooks}}}}
  versions:
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, 1)
	admin.must("POST", definitions, crd)
	settle(t, plane)
	admin.must("POST", "/apis/stable.example.com/v1/namespaces/default/crontabs", cronTab("a"))
	if got := admin.refused("GET", "/apis/stable.example.com/v2/namespaces/default/crontabs/a", ""); !strings.Contains(got, want) {
		t.Errorf("conversion: %s", got)
	}
	admin.must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.other.example.com},
		spec: {group: other.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: hooks}}}`)
	settle(t, plane)
	at := admin.must("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.other.example.com", "")
	conditions, _, err := unstructured.NestedSlice(at.Object, "status", "conditions")
	if err != nil || len(conditions) != 1 || !strings.Contains(conditions[0].(map[string]any)["message"].(string), want) {
		t.Errorf("APIService: %v, %v", conditions, err)
	}
}
