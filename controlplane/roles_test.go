// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
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
		t.Error("nobody has said that crontabs may be viewed")
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
