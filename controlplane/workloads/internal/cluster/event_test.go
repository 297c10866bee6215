// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/storage"
)

// withNamespace returns a world with the namespace default.
func withNamespace(t *testing.T) *clustertest.World {
	t.Helper()
	w := clustertest.New()
	steptest.Put(t, w.Store, storage.Key{Bucket: cluster.Namespaces, Name: "default"}, map[string]any{"metadata": map[string]any{"name": "default", "uid": "default"}})
	return w
}

// recorded returns the requests that record the notes that wait.
func recorded(t *testing.T, w *clustertest.World) []step.Request {
	t.Helper()
	return w.Step(t, func(turn *cluster.Turn) { turn.Record() })
}

// told returns the messages of the Events that the notes come to.
func told(t *testing.T, w *clustertest.World) string {
	t.Helper()
	var out []string
	for _, r := range recorded(t, w) {
		e := clustertest.Body[corev1.Event](t, r)
		out = append(out, e.Type+" "+e.Reason+": "+e.Message)
	}
	return strings.Join(out, "\n")
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestNoteIsRecordedAsEvent(t *testing.T) {
	t.Parallel()
	w := withNamespace(t)
	key := w.Put(t, cluster.ReplicaSets, "set", "{}")
	w.Memory.Note(cluster.Note{User: step.KubeSystem + "replicaset-controller", About: key, UID: "set", Reason: "Made", Message: "made it", Field: "spec.x"}, w.Now.Add(time.Millisecond))
	if !w.Memory.Untold() {
		t.Error("nothing is to be recorded")
	}
	requests := recorded(t, w)
	same(t, "requests", "POST /api/v1/namespaces/default/events", clustertest.Lines(requests))
	at := metav1.NewTime(w.Now)
	name := fmt.Sprintf("set.%x", w.Now.Add(time.Millisecond).UnixNano())
	same(t, "the subject", step.Subject{Key: storage.Key{Bucket: "events", Name: "default/" + name}, Detail: cluster.Telling}, requests[0].Subject)
	got := clustertest.Body[corev1.Event](t, requests[0])
	same(t, "the Event", &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "default", Name: "set", UID: "set", ResourceVersion: "2", FieldPath: "spec.x"},
		Type:           "Normal", Reason: "Made", Message: "made it", Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "replicaset-controller"}, ReportingController: "replicaset-controller",
	}, got)
	if w.Memory.Untold() {
		t.Error("notes wait after they were recorded")
	}
}

func TestNoteOfTheSchedulerIsAnEventOfItsGroup(t *testing.T) {
	t.Parallel()
	for warning, action := range map[bool]string{false: "Binding", true: "Scheduling"} {
		w := withNamespace(t)
		key := w.Put(t, cluster.Pods, "p", "{}")
		note := cluster.Note{User: step.Scheduler, About: key, UID: "p", Warning: warning, Reason: "R", Message: "m"}
		w.Memory.Note(note, w.Now)
		requests := recorded(t, w)
		steptest.Put(t, w.Store, requests[0].Subject.Key, map[string]any{})
		w.Memory.Note(note, w.Now) // repetitions are not counted
		requests = append(requests, recorded(t, w)...)
		same(t, "requests", "POST /apis/events.k8s.io/v1/namespaces/default/events\nPOST /apis/events.k8s.io/v1/namespaces/default/events", clustertest.Lines(requests))
		got := clustertest.Body[eventsv1.Event](t, requests[0])
		kind := map[bool]string{false: "Normal", true: "Warning"}[warning]
		same(t, "the Event", &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p.%x", w.Now.UnixNano())},
			Regarding:  corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "p", UID: "p", ResourceVersion: "2"},
			Type:       kind, Reason: "R", Note: "m", Action: action, EventTime: metav1.NewMicroTime(w.Now),
			ReportingController: "default-scheduler", ReportingInstance: "default-scheduler-steer-node",
		}, got)
		if first, second := got.Name, clustertest.Body[eventsv1.Event](t, requests[1]).Name; first == second {
			t.Errorf("two Events have the name %s", first)
		}
	}
}

func TestNotesNameTheirReporter(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]corev1.EventSource{
		step.NodePrefix + "node1":                             {Component: "kubelet", Host: "node1"},
		step.KubeSystem + "job-controller":                    {Component: "job-controller"},
		step.KubeSystem + "daemon-set-controller":             {Component: "daemonset-controller"},
		step.KubeSystem + "endpointslicemirroring-controller": {Component: "endpoint-slice-mirroring-controller"},
		"other": {Component: "other"},
	} {
		w := withNamespace(t)
		w.Memory.Note(cluster.Note{User: user, About: cluster.NodeOf("node1")}, w.Now)
		w.Memory.Note(cluster.Note{User: user, As: "x", About: cluster.NodeOf("node1"), Reason: "R"}, w.Now)
		requests := recorded(t, w)
		e, as := clustertest.Body[corev1.Event](t, requests[0]), clustertest.Body[corev1.Event](t, requests[1])
		same(t, "the source", want, e.Source)
		same(t, "the reporter", [2]string{want.Component, want.Host}, [2]string{e.ReportingController, e.ReportingInstance})
		same(t, "the source under another name", corev1.EventSource{Component: "x", Host: want.Host}, as.Source)
	}
}

func TestNotesReferToTheirObject(t *testing.T) {
	t.Parallel()
	for bucket, want := range map[string]string{
		cluster.Pods: "v1 Pod default/x 2", cluster.Nodes: "v1 Node /x ", cluster.Controllers: "v1 ReplicationController default/x 2", cluster.ReplicaSets: "apps/v1 ReplicaSet default/x 2",
		cluster.Deployments: "apps/v1 Deployment default/x 2", cluster.StatefulSets: "apps/v1 StatefulSet default/x 2", cluster.DaemonSets: "apps/v1 DaemonSet default/x 2",
		cluster.Jobs: "batch/v1 Job default/x 2", cluster.CronJobs: "batch/v1 CronJob default/x 2", cluster.Endpoints: "v1 Endpoints default/x 2",
		cluster.Services: "v1 Service default/x 2", cluster.Claims: "v1 PersistentVolumeClaim default/x 2",
	} {
		w := withNamespace(t)
		key := w.Put(t, bucket, "x", "{}")
		w.Memory.Note(cluster.Note{User: "u", About: key, UID: "x"}, w.Now)
		e := clustertest.Body[corev1.Event](t, recorded(t, w)[0])
		ref := e.InvolvedObject
		same(t, bucket, want, ref.APIVersion+" "+ref.Kind+" "+ref.Namespace+"/"+ref.Name+" "+ref.ResourceVersion)
		same(t, "the namespace of the Event", "default", e.Namespace)
	}
}

func TestNotesAreCountedInOneEvent(t *testing.T) {
	t.Parallel()
	w := withNamespace(t)
	key := w.Put(t, cluster.Jobs, "j", "{}")
	note := cluster.Note{User: "u", About: key, UID: "j", Reason: "R", Message: "m"}
	w.Memory.Note(note, w.Now)
	recorded(t, w)
	w.Memory.Note(note, w.Now.Add(time.Second))
	same(t, "a repetition while the Event is not stored", "POST /api/v1/namespaces/default/events", clustertest.Lines(recorded(t, w)))
	// The last Event is the one that counts.
	name := fmt.Sprintf("j.%x", w.Now.Add(time.Second).UnixNano())
	steptest.Put(t, w.Store, storage.Key{Bucket: "events", Name: "default/" + name}, map[string]any{})
	for i, want := range []string{`{"count":2,"lastTimestamp":"2026-01-01T00:00:02Z"}`, `{"count":3,"lastTimestamp":"2026-01-01T00:00:03Z"}`} {
		w.Memory.Note(note, w.Now.Add(time.Duration(i+2)*time.Second))
		requests := recorded(t, w)
		same(t, "a repetition", "PATCH /api/v1/namespaces/default/events/"+name+" "+want, clustertest.Lines(requests)+" "+string(requests[0].Body))
	}
	for what, change := range map[string]func(*cluster.Note){
		"user": func(n *cluster.Note) { n.User = "v" }, "field": func(n *cluster.Note) { n.Field = "f" }, "reason": func(n *cluster.Note) { n.Reason = "S" },
		"message": func(n *cluster.Note) { n.Message = "n" }, "uid": func(n *cluster.Note) { n.UID = "k" },
	} {
		other := note
		change(&other)
		w.Memory.Note(other, w.Now.Add(time.Minute))
		same(t, "a note of another "+what, "POST /api/v1/namespaces/default/events", clustertest.Lines(recorded(t, w)))
	}
}

func TestNotesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := withNamespace(t)
	key := w.Put(t, cluster.Jobs, "j", "{}")
	name := func(n int) string { return fmt.Sprintf("j.%x", w.Now.UnixNano()+int64(n)) }
	steptest.Put(t, w.Store, storage.Key{Bucket: "events", Name: "default/" + name(1)}, map[string]any{})
	for i := range 3 {
		w.Memory.Note(cluster.Note{User: "u", About: key, UID: "j", Reason: fmt.Sprint(i)}, w.Now)
	}
	var got []string
	for _, r := range recorded(t, w) {
		got = append(got, clustertest.Body[corev1.Event](t, r).Name)
	}
	same(t, "names", []string{name(0), name(2), name(3)}, got)
}

func TestNotesOfNamespacesThatGoAreDropped(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	w.Memory.Note(cluster.Note{User: "u", About: storage.Key{Bucket: cluster.Pods, Name: "default/p"}}, w.Now)
	same(t, "requests in no namespace", 0, len(recorded(t, w)))
	steptest.Put(t, w.Store, storage.Key{Bucket: cluster.Namespaces, Name: "default"}, map[string]any{"metadata": map[string]any{"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
	w.Memory.Note(cluster.Note{User: "u", About: storage.Key{Bucket: cluster.Pods, Name: "default/p"}}, w.Now)
	same(t, "requests in a namespace that is being deleted", 0, len(recorded(t, w)))
	w.Memory.Note(cluster.Note{User: "u", About: cluster.NodeOf("n")}, w.Now)
	same(t, "requests about what is in none", "POST /api/v1/namespaces/default/events", clustertest.Lines(recorded(t, w)))
}

func TestNotesAreDroppedWhileManyEventsAreUnderWay(t *testing.T) {
	t.Parallel()
	w := withNamespace(t)
	note := func(n int) {
		for i := range n {
			w.Memory.Note(cluster.Note{User: "u", About: cluster.NodeOf("n"), Reason: fmt.Sprint(i)}, w.Now)
		}
	}
	note(1000)
	first := recorded(t, w)
	same(t, "Events", 1000, len(first))
	note(1)
	same(t, "Events while 1,000 are under way", 0, len(recorded(t, w)))
	w.Memory.Reported(first[0], "", true, w.Now)
	note(1)
	same(t, "Events once one is answered", 1, len(recorded(t, w)))
}

func TestNotesFollowFromTheOutcomeOfARequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failure string
		first   bool
		want    string
	}{
		{"", true, "Normal SuccessfulDelete: Deleted pod: p"},
		{"no quota", true, "Warning FailedCreate: Error creating: no quota"},
		{"no quota", false, ""},
	} {
		w := withNamespace(t)
		w.Put(t, cluster.ReplicaSets, "set", "{}")
		w.Put(t, cluster.Pods, "p", "{}")
		owner, pod := w.Memory.Index.Objects[storage.Key{Bucket: cluster.ReplicaSets, Name: "default/set"}], w.Memory.Index.Objects[storage.Key{Bucket: cluster.Pods, Name: "default/p"}]
		requests := w.Step(t, func(turn *cluster.Turn) {
			turn.TellFailure("u", owner) // about no request
			turn.Delete("u", owner.Key, pod, metav1.DeleteOptions{})
			turn.TellDeletion("u", owner, pod)
			turn.TellFailure("u", owner)
		})
		w.Memory.Reported(requests[0], tt.failure, tt.first, w.Now)
		same(t, fmt.Sprintf("%q, first %v", tt.failure, tt.first), tt.want, told(t, w))
		w.Memory.Reported(requests[0], tt.failure, tt.first, w.Now)
		same(t, "an outcome that is reported again", "", told(t, w))
	}
}

func TestNotesOfRequestsThatAreNotSentAreDropped(t *testing.T) {
	t.Parallel()
	w := withNamespace(t)
	w.Put(t, cluster.ReplicaSets, "set", "{}")
	owner := w.Memory.Index.Objects[storage.Key{Bucket: cluster.ReplicaSets, Name: "default/set"}]
	steptest.Put(t, w.Store, storage.Key{Bucket: cluster.Namespaces, Name: "going"}, map[string]any{"metadata": map[string]any{"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
	requests := w.Step(t, func(turn *cluster.Turn) {
		turn.Patch("u", owner.Key, owner.Key, map[string]any{"a": 1})
		turn.Create("u", storage.Key{Bucket: cluster.ReplicaSets, Name: "going/set"}, cluster.Pods, &corev1.Pod{})
		turn.Tell(cluster.Note{User: "u", About: owner.Key, Reason: "Futile"}) // of the creation, which is left out
		turn.Patch("u", owner.Key, owner.Key, map[string]any{"b": 2})
		turn.Tell(cluster.Note{User: "u", About: owner.Key, Reason: "Withdrawn"})
		turn.Withdraw(1)
	})
	same(t, "requests", "PATCH /apis/apps/v1/namespaces/default/replicasets/set {\"a\":1}", clustertest.Lines(requests)+" "+string(requests[0].Body))
	w.Memory.Reported(requests[0], "", true, w.Now)
	same(t, "Events", "", told(t, w))
}

func TestNoteOfACreationNeedsItsOwner(t *testing.T) {
	t.Parallel()
	const pod = "metadata: {ownerReferences: [{apiVersion: %s, kind: %s, name: owner, uid: %s, controller: true}]}"
	for _, tt := range []struct{ bucket, apiVersion, kind, uid, user string }{
		{cluster.ReplicaSets, "apps/v1", "ReplicaSet", "owner", "replicaset-controller"},
		{cluster.Controllers, "v1", "ReplicationController", "owner", "replication-controller"},
		{cluster.DaemonSets, "apps/v1", "DaemonSet", "owner", "daemonset-controller"},
		{cluster.Jobs, "batch/v1", "Job", "owner", "job-controller"},
		{cluster.StatefulSets, "apps/v1", "StatefulSet", "owner", ""}, // it gives the names
		{cluster.ReplicaSets, "apps/v1", "ReplicaSet", "an earlier owner", ""},
	} {
		w := withNamespace(t)
		w.Put(t, tt.bucket, "owner", "{}")
		key := w.Put(t, cluster.Pods, "owner-1", fmt.Sprintf(pod, tt.apiVersion, tt.kind, tt.uid))
		w.Memory.NoteCreation(w.Memory.Index.Objects[key])
		requests := recorded(t, w)
		if tt.user == "" {
			same(t, tt.bucket, 0, len(requests))
			continue
		}
		e := clustertest.Body[corev1.Event](t, requests[0])
		same(t, tt.bucket, []string{tt.user, "SuccessfulCreate", "Created pod: owner-1", tt.kind}, []string{e.Source.Component, e.Reason, e.Message, e.InvolvedObject.Kind})
		same(t, "the uid", types.UID("owner"), e.InvolvedObject.UID)
		same(t, "the time is that of the creation", w.Now.Add(-time.Minute).Unix(), e.FirstTimestamp.Unix())
	}
}
