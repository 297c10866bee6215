// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

const (
	clusterRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	bindings     = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
)

// TestRolesAreEnforced: who is no master has what roles give, from the answer to
// the binding on, whatever gathers them by label.
func TestRolesAreEnforced(t *testing.T) {
	t.Parallel()
	plane, err := controlplane.New(controlplane.Options{ManualControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop(context.Background())
	admin := apiOf(t, plane.RESTConfig())
	ann := apiOf(t, plane.RESTConfigFor(&auth.User{Name: "ann"}))
	const refusal = `403 Forbidden: configmaps is forbidden: User "ann" cannot list resource "configmaps" in API group "" in the namespace "default"`
	equal(t, "before", refusal, ann.refused("GET", configMaps, ""))
	admin.must("POST", bindings, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: ann}, "+
		"roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: User, name: ann}]}")
	ann.must("GET", configMaps, "")
	equal(t, "elsewhere", `403 Forbidden: configmaps is forbidden: User "ann" cannot list resource "configmaps" in API group "" in the namespace "kube-system"`,
		ann.refused("GET", "/api/v1/namespaces/kube-system/configmaps", ""))

	admin.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	if got := ann.refused("GET", cronTabs, ""); got == "" {
		t.Error("crontabs may be viewed without a rule")
	}
	admin.must("POST", clusterRoles, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view-crontabs, labels: {rbac.authorization.k8s.io/aggregate-to-view: 'true'}}, "+
		"rules: [{apiGroups: [stable.example.com], resources: [crontabs], verbs: [list]}]}")
	settle(t, plane)
	ann.must("GET", cronTabs, "")
	view := admin.must("GET", clusterRoles+"/view", "")
	if fields := view.GetManagedFields(); len(fields) != 2 || fields[0].Manager != "clusterrole-aggregation-controller" {
		t.Errorf("the rules belong to %+v", fields)
	}
	admin.must("DELETE", bindings+"/ann", "")
	equal(t, "after", refusal, ann.refused("GET", configMaps, ""))
}

func TestRolesAreRestoredAtTheNextStart(t *testing.T) {
	t.Parallel()
	options := controlplane.Options{DataDir: t.TempDir(), ManualControllers: true}
	open := func() (*controlplane.Plane, *api) {
		t.Helper()
		plane, err := controlplane.New(options)
		if err != nil {
			t.Fatal(err)
		}
		return plane, apiOf(t, plane.RESTConfig())
	}
	plane, admin := open()
	before := admin.must("GET", clusterRoles+"/system:discovery", "")
	admin.must("PUT", clusterRoles+"/system:discovery", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'system:discovery'}}")
	admin.must("DELETE", clusterRoles+"/system:basic-user", "")
	if err := plane.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	plane, admin = open()
	defer plane.Stop(context.Background())
	after := admin.must("GET", clusterRoles+"/system:discovery", "")
	equal(t, "labels", before.GetLabels(), after.GetLabels())
	equal(t, "uid", before.GetUID(), after.GetUID())
	count := func(u *unstructured.Unstructured) int {
		urls := 0
		rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
		for _, r := range rules {
			urls += len(r.(map[string]any)["nonResourceURLs"].([]any))
		}
		return urls
	}
	equal(t, "rules", count(before), count(after))
	admin.must("GET", clusterRoles+"/system:basic-user", "")
}

// TestBuiltInControllersAreNotRefused: all that they do in the life of a
// namespace with a bit of everything is in their roles.
func TestBuiltInControllersAreNotRefused(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	plane, err := controlplane.New(controlplane.Options{
		ManualControllers: true, Workloads: &workloads.Options{},
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop(context.Background())
	admin := apiOf(t, plane.RESTConfig())
	const ns = "/namespaces/full/"
	const template = "selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}"
	admin.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: full}}")
	admin.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	settle(t, plane)
	for path, object := range map[string]string{
		"/apis/apps/v1" + ns + "deployments": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 2, " + template + "}}",
		"/apis/apps/v1" + ns + "daemonsets":  "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: e}, spec: {" + strings.ReplaceAll(template, "app: x", "app: v") + "}}",
		"/apis/apps/v1" + ns + "statefulsets": "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {serviceName: s, replicas: 2, " +
			"persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Delete}, " +
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], " +
			strings.ReplaceAll(template, "app: x", "app: z") + "}}",
		"/apis/batch/v1" + ns + "jobs": "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}",
		"/api/v1" + ns + "replicationcontrollers": "{apiVersion: v1, kind: ReplicationController, metadata: {name: r}, spec: {replicas: 1, selector: {app: w}, " +
			"template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: i}]}}}}",
		"/api/v1" + ns + "resourcequotas":               "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: '100'}}}",
		"/api/v1" + ns + "secrets":                      "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: t, annotations: {kubernetes.io/service-account.name: default}}}",
		"/apis/stable.example.com/v1" + ns + "crontabs": "{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: c}, spec: {cronSpec: x}}",
		clusterRoles: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: more, labels: {rbac.authorization.k8s.io/aggregate-to-edit: 'true'}}, rules: [{apiGroups: [x], resources: [x], verbs: [get]}]}",
	} {
		admin.must("POST", path, object)
	}
	settle(t, plane)
	admin.must("PATCH", "/apis/apps/v1"+ns+"statefulsets/s", "spec: {replicas: 1}")
	admin.must("PATCH", "/apis/apps/v1"+ns+"deployments/d", "spec: {replicas: 1, template: {metadata: {labels: {more: x}}}}")
	settle(t, plane)
	admin.must("DELETE", "/apis/apps/v1"+ns+"daemonsets/e?propagationPolicy=Foreground", "")
	settle(t, plane)
	admin.must("DELETE", "/api/v1/namespaces/full", "")
	admin.must("DELETE", definitions+"/crontabs.stable.example.com", "")
	settle(t, plane)
	equal(t, "namespaces", []string{"default", "kube-node-lease", "kube-public", "kube-system"}, admin.names("/api/v1/namespaces"))
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "403") {
			t.Error(line)
		}
	}
}
