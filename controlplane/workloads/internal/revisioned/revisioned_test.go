// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package revisioned_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/revisioned"
)

const (
	template = "selector: {matchLabels: {a: b}}, revisionHistoryLimit: 10, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}"
	ready    = "{phase: Running, conditions: [{type: Ready, status: 'True'}]}"
)

// revision returns the name of the revision that the first step creates, and stores it.
func revision(t *testing.T, w *clustertest.World, look func() []step.Request) string {
	t.Helper()
	for _, r := range look() {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/controllerrevisions") {
			created := clustertest.Body[appsv1.ControllerRevision](t, r)
			owner := created.OwnerReferences[0]
			w.Put(t, cluster.Revisions, created.Name, "metadata: {labels: {a: b, controller-revision-hash: "+created.Labels["controller-revision-hash"]+
				"}, ownerReferences: [{apiVersion: apps/v1, kind: "+owner.Kind+", name: "+owner.Name+", uid: "+string(owner.UID)+", controller: true}]}\nrevision: 1\ndata: "+
				string(created.Data.Raw))
			return created.Name
		}
	}
	t.Fatal("no revision is created")
	return ""
}

func pods(t *testing.T, requests []step.Request) (out []*corev1.Pod) {
	t.Helper()
	for _, r := range requests {
		if r.Method == "POST" && strings.HasSuffix(r.Path, "/pods") {
			out = append(out, clustertest.Body[corev1.Pod](t, r))
		}
	}
	return out
}

func sets(t *testing.T, spec string) (*clustertest.World, func() []step.Request) {
	t.Helper()
	w := clustertest.New()
	key := w.Put(t, cluster.StatefulSets, "db", "spec: {replicas: 2, serviceName: db, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}, "+spec+template+"}")
	return w, func() []step.Request {
		return w.Step(t, func(turn *cluster.Turn) { revisioned.StatefulSet(turn, key) })
	}
}

func TestStatefulSetCreatesItsPodsInOrder(t *testing.T) {
	t.Parallel()
	w, look := sets(t, "podManagementPolicy: OrderedReady, ")
	name := revision(t, w, look)
	created := pods(t, look())
	if len(created) != 1 || created[0].Name != "db-0" || created[0].Spec.Hostname != "db-0" || created[0].Spec.Subdomain != "db" ||
		created[0].Labels["apps.kubernetes.io/pod-index"] != "0" || created[0].Labels["controller-revision-hash"] != name {
		t.Fatalf("the Pods are %+v", created)
	}
	w.Put(t, cluster.Pods, "db-0", "metadata: {labels: {a: b, controller-revision-hash: "+name+"}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: db, controller: true}]}\nstatus: {phase: Running}")
	if created := pods(t, look()); len(created) > 0 {
		t.Errorf("%s is created before db-0 is ready", created[0].Name)
	}
	w.Put(t, cluster.Pods, "db-0", "metadata: {labels: {a: b, controller-revision-hash: "+name+"}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: db, controller: true}]}\nstatus: "+ready)
	if created := pods(t, look()); len(created) != 1 || created[0].Name != "db-1" {
		t.Errorf("after db-0 is ready: %+v", created)
	}
}

func TestStatefulSetParallelCreatesAllPods(t *testing.T) {
	t.Parallel()
	w, look := sets(t, "podManagementPolicy: Parallel, ")
	revision(t, w, look)
	if created := pods(t, look()); len(created) != 2 || created[0].Name != "db-0" || created[1].Name != "db-1" {
		t.Errorf("the Pods are %+v", created)
	}
}

func TestStatefulSetCreatesClaimsOfItsPods(t *testing.T) {
	t.Parallel()
	w, look := sets(t, "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], ")
	revision(t, w, look)
	lines := clustertest.Lines(look())
	claim, pod := strings.Index(lines, "POST /api/v1/namespaces/default/persistentvolumeclaims"), strings.Index(lines, "POST /api/v1/namespaces/default/pods")
	if claim < 0 || pod >= 0 && pod < claim {
		t.Errorf("requests:\n%s\nwant the claim before the Pod", lines)
	}
}

func TestDaemonSetCreatesAPodForEveryNode(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	for _, node := range []string{"node1", "node2"} {
		w.Put(t, cluster.Nodes, node, "status: {conditions: [{type: Ready, status: 'True'}], allocatable: {pods: '110'}}")
	}
	w.Put(t, cluster.Nodes, "tainted", "spec: {taints: [{key: a, effect: NoSchedule}]}\nstatus: {conditions: [{type: Ready, status: 'True'}], allocatable: {pods: '110'}}")
	key := w.Put(t, cluster.DaemonSets, "agent", "spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}, "+template+"}")
	look := func() []step.Request { return w.Step(t, func(turn *cluster.Turn) { revisioned.DaemonSet(turn, key) }) }
	revision(t, w, look)
	created := pods(t, look())
	if len(created) != 2 {
		t.Fatalf("%d Pods, want one for each of 2 nodes without a taint", len(created))
	}
	terms := created[0].Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if terms[0].MatchFields[0].Values[0] != "node1" || len(created[0].Spec.Tolerations) == 0 {
		t.Errorf("the first Pod is %+v", created[0].Spec)
	}
}

func TestDaemonSetDeletesPodsOfTaintedNodes(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	w.Put(t, cluster.Nodes, "node1", "spec: {taints: [{key: a, effect: NoExecute}]}\nstatus: {conditions: [{type: Ready, status: 'True'}]}")
	key := w.Put(t, cluster.DaemonSets, "agent", "spec: {updateStrategy: {type: OnDelete}, "+template+"}")
	look := func() []step.Request { return w.Step(t, func(turn *cluster.Turn) { revisioned.DaemonSet(turn, key) }) }
	name := revision(t, w, look)
	w.Put(t, cluster.Pods, "agent-1", "metadata: {labels: {a: b, controller-revision-hash: "+strings.TrimPrefix(name, "agent-")+
		"}, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: agent, controller: true}]}\nspec: {nodeName: node1}\nstatus: "+ready)
	if got := clustertest.Lines(look()); !strings.HasPrefix(got, "DELETE /api/v1/namespaces/default/pods/agent-1") {
		t.Errorf("requests:\n%s", got)
	}
}
