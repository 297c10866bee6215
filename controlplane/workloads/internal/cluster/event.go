// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Note is an Event to be recorded.
type Note struct {
	// User records it, under the name As as the reporting controller; empty: its own name.
	User, As string
	// About is the object that the Event regards.
	About storage.Key
	UID   types.UID
	// Field of the object, such as "spec.containers{main}", or empty.
	Field string
	// Warning is the type of the Event, in place of Normal.
	Warning bool
	Reason  string
	Message string
	// Failed is set if the note reports the failure of a request, whose message is
	// appended to that of the note.
	Failed bool
}

// Telling is the detail of requests that record Events. Nothing follows from
// their failure.
const Telling = "event"

// eventLog holds the notes that are not recorded yet, and those that were.
type eventLog struct {
	waiting []entry
	told    map[entryKey]*told
	// named is the moment in the name of the last Event, in nanoseconds.
	named int64
}

type entry struct {
	Note
	at time.Time
}

// entryKey is the same for notes that are counted in one Event.
type entryKey struct {
	user, field, reason, message string
	uid                          types.UID
}

type told struct {
	event string
	count int
}

// mostTold is how many Events are remembered, to count repetitions.
const mostTold = 4096

// mostEvents is how many Events can wait for an answer. What is noted while so many do is
// not recorded, as by the event broadcaster of client-go.
const mostEvents = 1000

// Tell records a note once the last request has succeeded, or failed if the note is about
// its failure.
func (t *Turn) Tell(n Note) {
	if t.futile || len(t.Requests) == 0 {
		return
	}
	last := t.requests[t.Requests[len(t.Requests)-1].Number]
	last.notes = append(last.notes, n)
}

// Withdraw removes a request of this turn.
func (t *Turn) Withdraw(i int) {
	t.end(t.Requests[i].Number)
	t.Requests = slices.Delete(t.Requests, i, i+1)
}

// Note records a note that follows from no request.
func (m *Memory) Note(n Note, at time.Time) {
	m.eventLog.waiting = append(m.eventLog.waiting, entry{n, at})
}

// Reported observes the outcome of a request: failure is empty for success. Only the first
// failure of its kind is recorded.
func (m *Memory) Reported(r step.Request, failure string, first bool, at time.Time) {
	for _, n := range m.end(r.Number) {
		switch {
		case n.Failed && failure != "" && first:
			n.Message += failure
			m.Note(n, at)
		case !n.Failed && failure == "":
			m.Note(n, at)
		}
	}
}

// Untold reports whether notes are not recorded yet.
func (m *Memory) Untold() bool { return len(m.eventLog.waiting) > 0 }

// Record requests the Events of the notes that wait. Repetitions are counted in one Event.
func (t *Turn) Record() {
	for _, e := range t.eventLog.waiting {
		if t.events >= mostEvents {
			break
		}
		namespace, _ := step.SplitName(e.About.Name)
		if namespace != "" && (t.View.Get(storage.Key{Bucket: "namespaces", Name: namespace}) == nil || t.terminating(namespace)) {
			continue
		}
		t.record(&e)
	}
	t.eventLog.waiting = nil
}

func (t *Turn) record(e *entry) {
	ref := t.refer(e)
	namespace := cmp.Or(ref.Namespace, metav1.NamespaceDefault) // of what is in none
	key := entryKey{user: e.User, field: e.Field, reason: e.Reason, message: e.Message, uid: e.UID}
	event := step.Resource{Version: "v1", Plural: "events"}
	known := t.eventLog.told[key]
	if known != nil && t.View.Get(storage.Key{Bucket: "events", Name: namespace + "/" + known.event}) != nil && e.User != step.Scheduler {
		known.count++
		body, _ := json.Marshal(map[string]any{"count": known.count, "lastTimestamp": metav1.NewTime(e.at).UTC().Format(time.RFC3339)})
		t.Send(step.Patch(e.User, event.Collection(namespace)+"/"+known.event, body, telling(namespace, known.event)))
		return
	}
	t.eventLog.named = max(t.eventLog.named+1, e.at.UnixNano())
	meta := metav1.ObjectMeta{Namespace: namespace, Name: eventName(ref.Name, t.eventLog.named)}
	for t.View.Get(storage.Key{Bucket: "events", Name: meta.Namespace + "/" + meta.Name}) != nil { // written before the plane was forked
		t.eventLog.named++
		meta.Name = eventName(ref.Name, t.eventLog.named)
	}
	if len(t.eventLog.told) >= mostTold {
		clear(t.eventLog.told)
	}
	t.eventLog.told[key] = &told{event: meta.Name, count: 1}
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	var obj step.Typed
	if e.User == step.Scheduler {
		event.Group = "events.k8s.io"
		action := "Binding"
		if e.Warning {
			action = "Scheduling"
		}
		obj = &eventsv1.Event{
			TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"}, ObjectMeta: meta,
			Regarding: ref, Type: kind, Reason: e.Reason, Note: e.Message, Action: action, EventTime: metav1.NewMicroTime(e.at),
			ReportingController: corev1.DefaultSchedulerName, ReportingInstance: corev1.DefaultSchedulerName + "-" + NodeName,
		}
	} else {
		component, host := reporter(e.User)
		component = cmp.Or(e.As, component)
		at := metav1.NewTime(e.at).Rfc3339Copy()
		obj = &corev1.Event{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: meta,
			InvolvedObject: ref, Type: kind, Reason: e.Reason, Message: e.Message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
			Source:              corev1.EventSource{Component: component, Host: host},
			ReportingController: component, ReportingInstance: host,
		}
	}
	t.Send(step.Request{
		User: e.User, Method: http.MethodPost, Path: event.Collection(namespace), ContentType: step.Protobuf, Body: step.Encode(obj), Subject: telling(namespace, meta.Name),
	})
}

// telling is the subject of the requests that record an Event: they wait for one another,
// and nothing waits for them.
func telling(namespace, name string) step.Subject {
	return step.Subject{Key: storage.Key{Bucket: "events", Name: namespace + "/" + name}, Detail: Telling}
}

func eventName(about string, moment int64) string {
	return about + "." + strconv.FormatInt(moment, 16)
}

// refer returns the reference of an Event to its object.
func (t *Turn) refer(e *entry) corev1.ObjectReference {
	ref := corev1.ObjectReference{UID: e.UID, FieldPath: e.Field}
	ref.Namespace, ref.Name = step.SplitName(e.About.Name)
	ref.APIVersion, ref.Kind = typeOf(e.About.Bucket)
	if rec := t.View.Get(e.About); rec != nil && e.UID != "" && e.About.Bucket != Nodes { // Events about nodes have no resourceVersion
		ref.ResourceVersion = fmt.Sprint(rec.Modified)
	}
	return ref
}

// typeOf is the type of the objects of a bucket.
func typeOf(bucket string) (apiVersion, kind string) {
	switch bucket {
	case Pods:
		return "v1", "Pod"
	case Nodes:
		return "v1", "Node"
	case Controllers:
		return "v1", "ReplicationController"
	case ReplicaSets:
		return "apps/v1", "ReplicaSet"
	case Deployments:
		return "apps/v1", "Deployment"
	case StatefulSets:
		return "apps/v1", "StatefulSet"
	case DaemonSets:
		return "apps/v1", "DaemonSet"
	case Jobs:
		return "batch/v1", "Job"
	case Endpoints:
		return "v1", "Endpoints"
	case Services:
		return "v1", "Service"
	case Claims:
		return "v1", "PersistentVolumeClaim"
	}
	return "batch/v1", "CronJob"
}

// reporter returns the names of a user in the source of Events.
func reporter(user string) (component, host string) {
	if node, ok := strings.CutPrefix(user, step.NodePrefix); ok {
		return "kubelet", node
	}
	component = strings.TrimPrefix(user, step.KubeSystem)
	switch component {
	case "daemon-set-controller":
		component = "daemonset-controller"
	case "endpointslicemirroring-controller":
		component = "endpoint-slice-mirroring-controller"
	}
	return component, ""
}

// makerOf returns the user that creates Pods with generated names, by the bucket of their
// owners.
func makerOf(bucket string) string {
	switch bucket {
	case ReplicaSets:
		return step.KubeSystem + "replicaset-controller"
	case Controllers:
		return step.KubeSystem + "replication-controller"
	case DaemonSets:
		return step.KubeSystem + "daemon-set-controller"
	case Jobs:
		return step.KubeSystem + "job-controller"
	}
	return ""
}

// NoteCreation notes that a Pod with a generated name was created: its controller learns the
// name only now.
func (m *Memory) NoteCreation(p *Object) {
	user, owner := makerOf(p.Owner.Key.Bucket), m.Index.Objects[p.Owner.Key]
	if p.Key.Bucket != Pods || user == "" || owner == nil || owner.UID != p.Owner.UID {
		return
	}
	_, name := step.SplitName(p.Key.Name)
	m.Note(Note{User: user, About: owner.Key, UID: owner.UID, Reason: "SuccessfulCreate", Message: "Created pod: " + name}, p.CreatedAt)
}

// TellDeletion records that an owner deletes a Pod with a generated name.
func (t *Turn) TellDeletion(user string, owner *Object, p *Object) {
	_, name := step.SplitName(p.Key.Name)
	t.Tell(Note{User: user, About: owner.Key, UID: owner.UID, Reason: "SuccessfulDelete", Message: "Deleted pod: " + name})
}

// TellFailure records that a Pod cannot be created.
func (t *Turn) TellFailure(user string, owner *Object) {
	t.Tell(Note{User: user, About: owner.Key, UID: owner.UID, Warning: true, Reason: "FailedCreate", Message: "Error creating: ", Failed: true})
}
