// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/replicas"
)

const (
	rolling  = "strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}"
	recreate = "strategy: {type: Recreate}"
)

// set is a stored ReplicaSet of the Deployment web.
type set struct {
	name, image            string
	replicas, available    int
	desired, most, version int // annotations
	status                 string
}

func (s *set) put(t *testing.T, w *clustertest.World) {
	t.Helper()
	w.Put(t, cluster.ReplicaSets, s.name, fmt.Sprintf(`
metadata:
  labels: {a: b}
  annotations: {deployment.kubernetes.io/revision: '%d', deployment.kubernetes.io/desired-replicas: '%d', deployment.kubernetes.io/max-replicas: '%d'}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: web, controller: true}]
spec: {replicas: %d, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b, pod-template-hash: x}}, spec: {containers: [{name: c, image: %s}]}}}
status: {replicas: %d, readyReplicas: %d, availableReplicas: %d, terminatingReplicas: 0, %s}`,
		s.version, s.desired, s.most, s.replicas, s.image, s.replicas, s.available, s.available, s.status))
}

// outline shows requests as what they do to the ReplicaSets, one to a line, and the status
// of the Deployment that they write, nil if they write none.
func outline(t *testing.T, requests []step.Request) (string, *appsv1.DeploymentStatus) {
	t.Helper()
	var out []string
	var status *appsv1.DeploymentStatus
	for _, r := range requests {
		name := r.Path[strings.LastIndex(r.Path, "/")+1:]
		switch {
		case strings.HasSuffix(r.Path, "/deployments/web/status"):
			status = &clustertest.Body[appsv1.Deployment](t, r).Status
		case r.Method == "PUT":
			out = append(out, fmt.Sprintf("%s has %d", name, *clustertest.Body[appsv1.ReplicaSet](t, r).Spec.Replicas))
		case r.Method == "POST":
			out = append(out, fmt.Sprintf("new has %d", *clustertest.Body[appsv1.ReplicaSet](t, r).Spec.Replicas))
		case r.Method == "DELETE":
			out = append(out, name+" is deleted")
		}
	}
	return strings.Join(out, ", "), status
}

// conditions shows the conditions of a status as type, status and reason.
func conditions(s *appsv1.DeploymentStatus) string {
	if s == nil {
		return "no status"
	}
	var out []string
	for _, c := range s.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(out, ", ")
}

func deploy(t *testing.T, w *clustertest.World, manifest string) []step.Request {
	t.Helper()
	key := w.Put(t, cluster.Deployments, "web", manifest)
	return w.Step(t, func(turn *cluster.Turn) { replicas.Deployment(turn, key) })
}

func TestDeploymentSizesItsReplicaSets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, status string
		sets         []set
		want         string
	}{
		"the current one grows by the surge": {
			spec: "replicas: 4, " + rolling,
			sets: []set{{name: "old", image: "h", replicas: 4, available: 4, desired: 4, most: 5, version: 1}, {name: "now", image: "i", desired: 4, most: 5, version: 2}},
			want: "now has 1",
		},
		"the old one shrinks to what must be available": {
			spec: "replicas: 4, " + rolling,
			sets: []set{{name: "old", image: "h", replicas: 4, available: 4, desired: 4, most: 5, version: 1}, {name: "now", image: "i", replicas: 1, desired: 4, most: 5, version: 2}},
			want: "old has 3",
		},
		"Pods that are not available go first": {
			spec: "replicas: 4, " + rolling,
			sets: []set{
				{name: "a", image: "g", replicas: 2, available: 2, desired: 4, most: 5, version: 1}, {name: "b", image: "h", replicas: 2, desired: 4, most: 5, version: 2},
				{name: "now", image: "i", replicas: 1, available: 1, desired: 4, most: 5, version: 3},
			},
			want: "b has 0",
		},
		"the current one shrinks to the replicas": {
			spec: "replicas: 2, " + rolling,
			sets: []set{{name: "now", image: "i", replicas: 3, available: 3, desired: 2, most: 3, version: 1}},
			want: "now has 2",
		},
		"a new size of one ReplicaSet": {
			spec: "replicas: 5, " + rolling,
			sets: []set{{name: "now", image: "i", replicas: 2, available: 2, desired: 2, most: 3, version: 1}},
			want: "now has 5",
		},
		"a larger size is shared in proportion": {
			spec: "replicas: 20, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
			sets: []set{{name: "old", image: "h", replicas: 6, available: 6, desired: 10, most: 10, version: 1}, {name: "now", image: "i", replicas: 4, available: 2, desired: 10, most: 10, version: 2}},
			want: "old has 12, now has 8",
		},
		"a smaller size is shared in proportion": {
			spec: "replicas: 5, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
			sets: []set{{name: "old", image: "h", replicas: 6, available: 6, desired: 10, most: 10, version: 1}, {name: "now", image: "i", replicas: 4, available: 2, desired: 10, most: 10, version: 2}},
			want: "old has 3, now has 2",
		},
		"the size zero": {
			spec: "replicas: 0, " + rolling,
			sets: []set{{name: "old", image: "h", replicas: 1, available: 1, desired: 3, most: 4, version: 1}, {name: "now", image: "i", replicas: 2, available: 1, desired: 3, most: 4, version: 2}},
			want: "now has 0, old has 0",
		},
		"the last name gets the remainder of equal sizes and times": {
			spec: "replicas: 11, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
			sets: []set{{name: "a", image: "h", replicas: 5, available: 5, desired: 10, most: 10, version: 1}, {name: "b", image: "i", replicas: 5, available: 3, desired: 10, most: 10, version: 2}},
			want: "b has 6, a has 5",
		},
		"old ones go when the current one is complete": {
			spec: "replicas: 3, " + rolling,
			sets: []set{{name: "old", image: "h", replicas: 1, available: 1, desired: 2, most: 3, version: 1}, {name: "now", image: "i", replicas: 3, available: 3, desired: 3, most: 4, version: 2}},
			want: "old has 0",
		},
		"nothing rolls while the Deployment is paused": {
			spec: "replicas: 3, paused: true, " + rolling,
			sets: []set{{name: "old", image: "h", replicas: 3, available: 3, desired: 3, most: 4, version: 1}},
			want: "",
		},
		"a paused Deployment without Pods scales the latest": {
			spec: "replicas: 3, paused: true, " + rolling,
			sets: []set{{name: "a", image: "g", desired: 0, version: 1}, {name: "b", image: "h", desired: 0, version: 2}},
			want: "b has 3",
		},
		"Recreate scales the old ones down first": {
			spec: "replicas: 2, " + recreate,
			sets: []set{{name: "old", image: "h", replicas: 2, available: 2, desired: 2, most: 2, version: 1}},
			want: "old has 0",
		},
		"Recreate waits for the old Pods": {
			spec: "replicas: 2, " + recreate,
			sets: []set{{name: "old", image: "h", desired: 2, most: 2, version: 1, status: "replicas: 1"}},
			want: "",
		},
		"Recreate creates once the old Pods are gone": {
			spec: "replicas: 2, " + recreate,
			sets: []set{{name: "old", image: "h", desired: 2, most: 2, version: 1}},
			want: "new has 2",
		},
		"Recreate scales the current one up": {
			spec: "replicas: 2, " + recreate,
			sets: []set{{name: "now", image: "i", desired: 2, most: 2, version: 1}},
			want: "now has 2",
		},
		"the history is cut after a rollout": {
			spec:   "replicas: 1, revisionHistoryLimit: 1, " + rolling,
			status: "{replicas: 1, updatedReplicas: 1, availableReplicas: 1}",
			sets: []set{
				{name: "a", image: "f", desired: 1, most: 2, version: 2}, {name: "b", image: "g", desired: 1, most: 2, version: 1}, {name: "c", image: "h", desired: 1, most: 2, version: 3},
				{name: "now", image: "i", replicas: 1, available: 1, desired: 1, most: 2, version: 4},
			},
			want: "b is deleted, a is deleted",
		},
		"the history keeps what still has Pods": {
			spec:   "replicas: 1, revisionHistoryLimit: 0, " + rolling,
			status: "{replicas: 1, updatedReplicas: 1, availableReplicas: 1}",
			sets: []set{
				{name: "a", image: "f", desired: 1, most: 2, version: 1, status: "replicas: 1"},
				{name: "now", image: "i", replicas: 1, available: 1, desired: 1, most: 2, version: 2},
			},
			want: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New()
			for i := range c.sets {
				c.sets[i].put(t, w)
			}
			manifest := "metadata: {annotations: {deployment.kubernetes.io/revision: '9'}}\nspec: {" + c.spec + ", " + template + "}"
			if c.status != "" {
				manifest += "\nstatus: " + c.status
			}
			if got, _ := outline(t, deploy(t, w, manifest)); got != c.want {
				t.Errorf("the requests: %s\nwant: %s", got, c.want)
			}
		})
	}
}

func TestDeploymentRecreateWaitsForPodsThatTerminate(t *testing.T) {
	t.Parallel()
	for phase, want := range map[string]string{"Running": "", "Succeeded": "new has 2"} {
		w := clustertest.New()
		(&set{name: "old", image: "h", desired: 2, most: 2, version: 1}).put(t, w)
		w.Put(t, cluster.Pods, "p", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: old, uid: old, controller: true}]}\nstatus: {phase: "+phase+"}")
		if got, _ := outline(t, deploy(t, w, "spec: {replicas: 2, "+recreate+", "+template+"}")); got != want {
			t.Errorf("with a Pod that is %s: %s, want %q", phase, got, want)
		}
	}
}

func TestDeploymentReportsItsProgress(t *testing.T) {
	t.Parallel()
	const (
		progressing = "progressDeadlineSeconds: 600, replicas: 2, " + rolling
		minimum     = "Available=True MinimumReplicasAvailable"
		few         = "Available=False MinimumReplicasUnavailable"
	)
	now := set{name: "now", image: "i", replicas: 2, available: 2, desired: 2, most: 3, version: 1}
	half := now
	half.available = 0
	failing := half
	failing.status = "conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: quota}]"
	was := func(reason, status, updated, counts string) string {
		return "{" + counts + "conditions: [{type: Progressing, status: '" + status + "', reason: " + reason + ", lastUpdateTime: '" + updated + "', lastTransitionTime: '2025-12-31T22:00:00Z'}]}"
	}
	const recent, past, same = "2025-12-31T23:59:00Z", "2025-12-31T23:00:00Z", "replicas: 2, updatedReplicas: 2, terminatingReplicas: 0, unavailableReplicas: 2, "
	for name, c := range map[string]struct {
		spec, status string
		set          set
		want         string
		timer        string
	}{
		"complete":                        {progressing, was("ReplicaSetUpdated", "True", recent, ""), now, minimum + ", Progressing=True NewReplicaSetAvailable", ""},
		"found":                           {progressing, "{}", half, few + ", Progressing=True ReplicaSetUpdated", "00:10:01"},
		"progress restarts the deadline":  {progressing, was("ReplicaSetUpdated", "True", past, ""), half, few + ", Progressing=True ReplicaSetUpdated", "00:10:01"},
		"no progress before the deadline": {progressing, was("ReplicaSetUpdated", "True", recent, same), half, "Progressing=True ReplicaSetUpdated, " + few, "00:09:01"},
		"no progress after the deadline":  {progressing, was("ReplicaSetUpdated", "True", past, same), half, few + ", Progressing=False ProgressDeadlineExceeded", ""},
		"timed out, then complete":        {progressing, was("ProgressDeadlineExceeded", "False", past, same), now, minimum + ", Progressing=True NewReplicaSetAvailable", ""},
		"Pods lost after the rollout":     {progressing, was("NewReplicaSetAvailable", "True", past, same), half, "Progressing=True NewReplicaSetAvailable, " + few, ""},
		"without a deadline":              {"replicas: 2, " + rolling, was("ReplicaSetUpdated", "True", past, ""), half, few, ""},
		"paused":                          {progressing + ", paused: true", was("ReplicaSetUpdated", "True", recent, ""), half, "Progressing=Unknown DeploymentPaused", ""},
		"resumed":                         {progressing, was("DeploymentPaused", "Unknown", recent, ""), half, "Progressing=Unknown DeploymentResumed", ""},
		"Pods cannot be created":          {"replicas: 2, " + rolling, "{}", failing, few + ", ReplicaFailure=True FailedCreate", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New()
			c.set.put(t, w)
			_, s := outline(t, deploy(t, w, "metadata: {annotations: {deployment.kubernetes.io/revision: '1'}}\nspec: {"+c.spec+", "+template+"}\nstatus: "+c.status))
			if got := conditions(s); got != c.want {
				t.Errorf("the conditions are %s\nwant %s", got, c.want)
			}
			timer := ""
			for _, at := range w.Memory.Timers {
				timer = at.Format("15:04:05")
			}
			if timer != c.timer {
				t.Errorf("the next look is at %q, want %q", timer, c.timer)
			}
		})
	}
}

func TestDeploymentKeepsTheTransitionTimeWhileItProgresses(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	(&set{name: "now", image: "i", replicas: 2, desired: 2, most: 3, version: 1}).put(t, w)
	_, s := outline(t, deploy(t, w, "spec: {progressDeadlineSeconds: 600, replicas: 2, "+rolling+", "+template+
		"}\nstatus: {conditions: [{type: Progressing, status: 'True', reason: ReplicaSetUpdated, lastUpdateTime: '2025-12-31T23:00:00Z', lastTransitionTime: '2025-12-31T22:00:00Z'}]}"))
	for _, c := range s.Conditions {
		if got := c.LastUpdateTime.UTC().Format("15:04") + " " + c.LastTransitionTime.UTC().Format("15:04"); c.Type == appsv1.DeploymentProgressing && got != "00:00 22:00" {
			t.Errorf("updated and changed at %s", got)
		}
	}
}

func TestDeploymentRollbackRaisesTheRevision(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	(&set{name: "first", image: "i", desired: 1, most: 2, version: 1}).put(t, w)
	(&set{name: "second", image: "h", replicas: 1, available: 1, desired: 1, most: 2, version: 2}).put(t, w)
	requests := deploy(t, w, "metadata: {annotations: {deployment.kubernetes.io/revision: '2', note: back}}\nspec: {replicas: 1, "+rolling+", "+template+"}")
	if got := clustertest.Lines(requests); got != "PUT /apis/apps/v1/namespaces/default/replicasets/first\nPUT /apis/apps/v1/namespaces/default/deployments/web/status" {
		t.Fatalf("requests:\n%s", got)
	}
	a := clustertest.Body[appsv1.ReplicaSet](t, requests[0]).Annotations
	if a["deployment.kubernetes.io/revision"] != "3" || a["deployment.kubernetes.io/revision-history"] != "1" || a["note"] != "back" {
		t.Errorf("the annotations of the ReplicaSet are %v", a)
	}
	if a := clustertest.Body[appsv1.Deployment](t, requests[1]).Annotations; a["deployment.kubernetes.io/revision"] != "3" {
		t.Errorf("the annotations of the Deployment are %v", a)
	}
}

func TestDeploymentAvoidsNamesOfOtherReplicaSets(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	manifest := "spec: {replicas: 1, " + rolling + ", " + template + "}"
	first := clustertest.Body[appsv1.ReplicaSet](t, deploy(t, w, manifest)[0]).Name
	w.Put(t, cluster.ReplicaSets, first, "spec: {replicas: 0, "+template+"}")
	requests := deploy(t, w, manifest)
	if second := clustertest.Body[appsv1.ReplicaSet](t, requests[0]).Name; second == first {
		t.Errorf("both are named %s", second)
	}
	if _, s := outline(t, requests); s.CollisionCount == nil || *s.CollisionCount != 1 {
		t.Errorf("the collisions are %v", s.CollisionCount)
	}
}

func TestDeploymentThatIsDeletedWritesOnlyItsStatus(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	(&set{name: "old", image: "h", replicas: 1, available: 1, desired: 1, most: 2, version: 1}).put(t, w)
	got := clustertest.Lines(deploy(t, w, "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nspec: {replicas: 1, "+rolling+", "+template+"}"))
	if want := "PUT /apis/apps/v1/namespaces/default/deployments/web/status"; got != want {
		t.Errorf("requests:\n%s\nwant\n%s", got, want)
	}
}
