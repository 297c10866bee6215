// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package revisioned_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/revisioned"
)

// before stores an older revision of the StatefulSet db, of the image h.
const before = "metadata: {labels: {a: b}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: db, controller: true}]}\nrevision: 1\n" +
	"data: {spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: h}]}}}}"

func TestStatefulSetReplacesAndRemovesItsPods(t *testing.T) {
	t.Parallel()
	const rolling, manual = "updateStrategy: {type: RollingUpdate}", "updateStrategy: {type: OnDelete}"
	up := func(i int) member { return member{name: fmt.Sprintf("db-%d", i), ready: true} }
	old := func(i int) member { return member{name: fmt.Sprintf("db-%d", i), ready: true, old: true} }
	for name, c := range map[string]struct {
		spec   string
		pods   []member
		want   string
		status string // replicas, ready, current, updated
	}{
		"all are of the newest revision":       {"replicas: 2, " + rolling, []member{up(0), up(1)}, "", "2 2 2 2"},
		"the last one is replaced first":       {"replicas: 2, " + rolling, []member{old(0), old(1)}, "-db-1", "2 2 1 0"},
		"then the one before it":               {"replicas: 2, " + rolling, []member{old(0), up(1)}, "-db-0", "2 2 0 1"},
		"waits for a Pod that is not ready":    {"replicas: 2, " + rolling, []member{old(0), {name: "db-1"}}, "", "2 1 1 1"},
		"none below the partition":             {"replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}", []member{old(0), old(1), up(2)}, "", "3 3 2 1"},
		"two at once":                          {"replicas: 3, podManagementPolicy: Parallel, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}", []member{old(0), old(1), old(2)}, "-db-2 -db-1", "3 3 1 0"},
		"one of two that may be missing is":    {"replicas: 3, podManagementPolicy: Parallel, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}", []member{old(0), old(1), {name: "db-2"}}, "-db-1", "3 2 1 1"},
		"none by hand":                         {"replicas: 2, " + manual, []member{old(0), old(1)}, "", "2 2 2 0"},
		"a Pod that failed":                    {"replicas: 2, " + manual, []member{{name: "db-0", phase: "Failed"}, up(1)}, "-db-0", "2 1 0 1"},
		"the last of the surplus":              {"replicas: 1, " + manual, []member{up(0), up(1), up(2)}, "-db-2", "3 3 0 2"},
		"the surplus waits for a Pod":          {"replicas: 1, " + manual, []member{{name: "db-0"}, up(1)}, "", "2 1 0 2"},
		"the surplus waits for its end":        {"replicas: 1, " + manual, []member{up(0), up(1), {name: "db-2", ready: true, going: true}}, "", "3 3 0 2"},
		"a surplus that is not ready goes":     {"replicas: 1, " + manual, []member{up(0), {name: "db-1"}}, "-db-1", "2 1 0 1"},
		"an unready one is waited for":         {"replicas: 1, " + manual, []member{up(0), {name: "db-1"}, {name: "db-2"}}, "", "3 1 0 3"},
		"all of the surplus at once":           {"replicas: 1, podManagementPolicy: Parallel, " + manual, []member{up(0), {name: "db-1"}, up(2)}, "-db-2 -db-1", "3 2 0 1"},
		"ordinals from a start":                {"replicas: 1, ordinals: {start: 5}, " + manual, []member{up(4)}, "+db-5", "1 1 0 1"},
		"what is below the start is a surplus": {"replicas: 1, ordinals: {start: 5}, " + manual, []member{up(4), up(5)}, "-db-4", "2 2 0 1"},
		"a Pod with another name is ignored":   {"replicas: 1, " + manual, []member{up(0), {name: "db-x", ready: true}}, "", "1 1 0 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New()
			key := w.Put(t, cluster.StatefulSets, "db", "spec: {"+c.spec+", "+template+"}\nstatus: {currentRevision: db-before}")
			look := func() []step.Request {
				return w.Step(t, func(turn *cluster.Turn) { revisioned.StatefulSet(turn, key) })
			}
			now := revision(t, w, look)
			w.Put(t, cluster.Revisions, "db-before", strings.Replace(before, "revision: 1", "revision: 0", 1))
			for i := range c.pods {
				c.pods[i].put(t, w, "StatefulSet", "db", now, "db-before")
			}
			requests := look()
			if got := changes(t, requests); got != c.want {
				t.Errorf("the changes are %q, want %q", got, c.want)
			}
			last := requests[len(requests)-1]
			if last.Path != "/apis/apps/v1/namespaces/default/statefulsets/db/status" {
				t.Fatalf("requests:\n%s", clustertest.Lines(requests))
			}
			s := clustertest.Body[appsv1.StatefulSet](t, last).Status
			if got := fmt.Sprint(s.Replicas, s.ReadyReplicas, s.CurrentReplicas, s.UpdatedReplicas); got != c.status {
				t.Errorf("the status is %s, want %s", got, c.status)
			}
		})
	}
}

func TestStatefulSetCreatesPodsBelowThePartitionOfTheOldTemplate(t *testing.T) {
	t.Parallel()
	for partition, want := range map[int]string{0: "i", 1: "h"} {
		w := clustertest.New()
		key := w.Put(t, cluster.StatefulSets, "db", fmt.Sprintf("spec: {replicas: 1, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: %d}}, %s}\nstatus: {currentRevision: db-before}", partition, template))
		w.Put(t, cluster.Revisions, "db-before", before)
		created := pods(t, w.Step(t, func(turn *cluster.Turn) { revisioned.StatefulSet(turn, key) }))
		if got := created[0].Spec.Containers[0].Image; got != want {
			t.Errorf("partition %d: the image is %s, want %s", partition, got, want)
		}
	}
}

func TestStatefulSetMountsTheClaimsOfAPod(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.StatefulSets, "db", "spec: {replicas: 1, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}, "+
		"volumeClaimTemplates: [{metadata: {name: data, labels: {tier: fast}}, spec: {accessModes: [ReadWriteOnce]}}], "+template+"}")
	look := func() []step.Request {
		return w.Step(t, func(turn *cluster.Turn) { revisioned.StatefulSet(turn, key) })
	}
	var claim *corev1.PersistentVolumeClaim
	for _, r := range look() {
		if strings.HasSuffix(r.Path, "/persistentvolumeclaims") {
			claim = clustertest.Body[corev1.PersistentVolumeClaim](t, r)
		}
	}
	if claim == nil || claim.Name != "data-db-0" || claim.Labels["tier"] != "fast" || claim.Labels["a"] != "b" || len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].UID != "db" {
		t.Errorf("the claim is %+v", claim)
	}
	w.Put(t, cluster.Claims, "data-db-0", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}")
	if created := pods(t, look()); len(created) > 0 {
		t.Errorf("%s is created while its claim terminates", created[0].Name)
	}
	w.Put(t, cluster.Claims, "data-db-0", "{}")
	created := pods(t, look())
	if len(created) != 1 || len(created[0].Spec.Volumes) != 1 || created[0].Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-db-0" {
		t.Errorf("the Pods are %+v", created)
	}
}

func TestStatefulSetHandsClaimsToPodsThatItScalesDown(t *testing.T) {
	t.Parallel()
	const put, remove = "PUT /api/v1/namespaces/default/persistentvolumeclaims/data-db-0", "DELETE /api/v1/namespaces/default/pods/db-0"
	for policy, want := range map[string]string{"Delete": put + "\n" + remove, "Retain": remove} {
		w := clustertest.New()
		key := w.Put(t, cluster.StatefulSets, "db", "spec: {replicas: 0, persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: "+policy+
			"}, volumeClaimTemplates: [{metadata: {name: data}}], "+template+"}")
		look := func() []step.Request {
			return w.Step(t, func(turn *cluster.Turn) { revisioned.StatefulSet(turn, key) })
		}
		now := revision(t, w, look)
		w.Put(t, cluster.Claims, "data-db-0", "{}")
		(&member{name: "db-0", ready: true}).put(t, w, "StatefulSet", "db", now, "")
		requests := look()
		if got := clustertest.Lines(requests); !strings.HasPrefix(got, want) {
			t.Errorf("%s: requests:\n%s\nwant\n%s", policy, got, want)
			continue
		}
		if policy != "Delete" {
			continue
		}
		var claim struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		if err := json.Unmarshal(requests[0].Body, &claim); err != nil || len(claim.Metadata.OwnerReferences) != 1 || claim.Metadata.OwnerReferences[0].Kind != "Pod" || claim.Metadata.OwnerReferences[0].UID != "db-0" {
			t.Errorf("the claim is %s (%v)", requests[0].Body, err)
		}
	}
}

func TestStatefulSetRollbackReusesTheRevision(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	spec := func(image, limit string) string {
		return "spec: {replicas: 0, " + strings.NewReplacer("image: i", "image: "+image, "revisionHistoryLimit: 10", "revisionHistoryLimit: "+limit).Replace(template) + "}"
	}
	key := w.Put(t, cluster.StatefulSets, "db", spec("h", "10"))
	w.Put(t, cluster.Revisions, "first", before)
	w.Put(t, cluster.Revisions, "second", strings.NewReplacer("revision: 1", "revision: 2", "image: h", "image: i").Replace(before))
	w.Put(t, cluster.Revisions, "third", strings.NewReplacer("revision: 1", "revision: 3", "image: h", "image: j").Replace(before))
	look := func() []step.Request {
		return w.Step(t, func(turn *cluster.Turn) { revisioned.StatefulSet(turn, key) })
	}
	requests := look()
	if got, want := clustertest.Lines(requests), "PUT /apis/apps/v1/namespaces/default/controllerrevisions/first\nPUT /apis/apps/v1/namespaces/default/statefulsets/db/status"; got != want {
		t.Fatalf("requests:\n%s\nwant\n%s", got, want)
	}
	if r := clustertest.Body[appsv1.ControllerRevision](t, requests[0]); r.Revision != 4 {
		t.Errorf("the revision is %d, want 4", r.Revision)
	}
	w.Put(t, cluster.StatefulSets, "db", spec("j", "1"))
	if got, want := clustertest.Lines(look()), "DELETE /apis/apps/v1/namespaces/default/controllerrevisions/first\nPUT /apis/apps/v1/namespaces/default/statefulsets/db/status"; got != want {
		t.Errorf("beyond the limit of the history:\n%s\nwant\n%s", got, want)
	}
}
