// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// note is what an Event says.
type note struct {
	warning         bool
	reason, message string
}

// events records Events as the recorder of client-go does: repetitions are counted in one
// Event, and one object gets burst Events at once, then one in refill.
type events struct {
	waiting []entry
	known   map[entryKey]*counted
	rates   map[types.UID]*rate
	busy    step.KeySet
	// named is the moment in the name of the last Event, in nanoseconds.
	named int64
}

type entry struct {
	note
	about corev1.ObjectReference
	at    time.Time
}

type entryKey struct {
	note
	uid types.UID
}

type counted struct {
	name  string
	count int32
}

// rate is how many Events may be recorded about an object.
type rate struct {
	left int
	at   time.Time
}

const (
	burst  = 25
	refill = 5 * time.Minute
	// mostKnown is how many Events, and objects, are remembered.
	mostKnown = 4096
)

func newEvents() events {
	return events{known: map[entryKey]*counted{}, rates: map[types.UID]*rate{}, busy: step.KeySet{}}
}

// about is the reference to the autoscaler in Events.
func (l *look) about() corev1.ObjectReference {
	o := l.object
	return corev1.ObjectReference{
		APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler", Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
	}
}

// add records a note with the next step.
func (e *events) add(about corev1.ObjectReference, n note, at time.Time) {
	if e.allows(about.UID, at) {
		e.waiting = append(e.waiting, entry{n, about, at})
	}
}

// allows reports whether one more Event may be recorded about an object.
func (e *events) allows(uid types.UID, now time.Time) bool {
	r := e.rates[uid]
	if r == nil {
		if len(e.rates) >= mostKnown {
			clear(e.rates)
		}
		r = &rate{left: burst, at: now}
		e.rates[uid] = r
	}
	if since := now.Sub(r.at); since >= refill {
		r.left = min(r.left+int(since/refill), burst)
		r.at = r.at.Add(since.Truncate(refill))
	}
	if r.left == 0 {
		return false
	}
	r.left--
	return true
}

// requests returns those that record what waits, but for Events that are being written.
func (e *events) requests(view storage.View) []step.Request {
	var out []step.Request
	later := e.waiting[:0]
	for _, n := range e.waiting {
		namespace := view.Get(storage.Key{Bucket: "namespaces", Name: n.about.Namespace})
		if namespace == nil || jsontext.Raw(namespace.Value, "metadata", "deletionTimestamp") != nil {
			continue
		}
		r, ok := e.request(view, n)
		if !ok {
			later = append(later, n)
			continue
		}
		e.busy.Add(r.Subject.Key)
		out = append(out, r)
	}
	e.waiting = later
	return out
}

// request returns the request that records one note, not ok if its Event is being written.
func (e *events) request(view storage.View, n entry) (r step.Request, ok bool) {
	events := step.Resource{Version: "v1", Plural: "events"}
	key := entryKey{n.note, n.about.UID}
	bucket := func(name string) storage.Key {
		return storage.Key{Bucket: "events", Name: n.about.Namespace + "/" + name}
	}
	if known := e.known[key]; known != nil {
		at := bucket(known.name)
		if _, busy := e.busy[at]; busy {
			return r, false
		}
		if view.Get(at) != nil {
			known.count++
			body, err := json.Marshal(map[string]any{"count": known.count, "lastTimestamp": n.at.UTC().Format(time.RFC3339)})
			return step.Patch(user, events.Object(at), body, step.Subject{Key: at}), err == nil
		}
	}
	name := func() string { return n.about.Name + "." + strconv.FormatInt(e.named, 16) }
	e.named = max(e.named+1, n.at.UnixNano())
	for view.Get(bucket(name())) != nil { // written before the plane was forked
		e.named++
	}
	if len(e.known) >= mostKnown {
		clear(e.known)
	}
	e.known[key] = &counted{name: name(), count: 1}
	kind := corev1.EventTypeNormal
	if n.warning {
		kind = corev1.EventTypeWarning
	}
	const component = "horizontal-pod-autoscaler"
	at := metav1.NewTime(n.at).Rfc3339Copy()
	obj := &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: n.about.Namespace, Name: name()},
		InvolvedObject: n.about, Type: kind, Reason: n.reason, Message: n.message, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
	}
	return step.Request{
		User: user, Method: http.MethodPost, Path: events.Collection(n.about.Namespace), ContentType: step.Protobuf, Body: step.Encode(obj), Subject: step.Subject{Key: bucket(name())},
	}, true
}

// reported takes note of the end of a request, if it was one that records an Event. Nothing
// follows from its failure.
func (e *events) reported(key storage.Key) bool {
	delete(e.busy, key)
	return key.Bucket == "events"
}
