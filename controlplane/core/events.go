// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// The two forms of events, which are the same objects.
type (
	coreEvent  = *corev1.Event
	namedEvent = *eventsv1.Event
)

// eventKinds are events as the core group and as events.k8s.io show them. They
// are kept in the core form. A write through one group ends what was recorded of
// the owners of fields through the other.
func eventKinds() []*resource.Resource {
	columns := func() []metav1.TableColumnDefinition {
		return kind.Columns("Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*", "Count*", "Name*")
	}
	return []*resource.Resource{
		kind.Definition[corev1.Event, coreEvent]{
			Version: "v1", Plural: "events", Short: []string{"ev"}, NameRule: kind.PathSegment, Unconditional: true, Creates: true,
			Metadata:   kind.Metadata{ErrorsOnce: true},
			Validate:   func(e, _ coreEvent) field.ErrorList { return validateEvent(e, "reportingComponent") },
			Columns:    columns(),
			Row:        eventRow,
			Selectable: coreEventFields(),
			Deletion:   resource.DeletionRules{NoGarbageCollection: true},
		}.Resource(),
		kind.Definition[eventsv1.Event, namedEvent]{
			Group: eventsv1.GroupName, Version: "v1", Plural: "events", Short: []string{"ev"}, NameRule: kind.PathSegment, Unconditional: true, Creates: true,
			Bucket: "events",
			Alias: &resource.Alias{
				Kind: corev1.SchemeGroupVersion.WithKind("Event"),
				New:  func() resource.Object { return &corev1.Event{} },
				Load: func(kept resource.Object) resource.Object { return toNamedEvent(kept.(coreEvent)) },
				Save: func(obj resource.Object) resource.Object { return toCoreEvent(obj.(namedEvent)) },
			},
			Validate:   validateNamedEvent,
			Columns:    columns(),
			Row:        func(e namedEvent) []any { return eventRow(toCoreEvent(e)) },
			Selectable: namedEventFields(),
			Deletion:   resource.DeletionRules{NoGarbageCollection: true},
		}.Resource(),
	}
}

func coreEventFields() []kind.Selectable[coreEvent] {
	return append(referenceFields("involvedObject", func(e coreEvent) *corev1.ObjectReference { return &e.InvolvedObject }),
		kind.Leaf("reason", func(e coreEvent) string { return e.Reason }),
		kind.Leaf("reportingComponent", func(e coreEvent) string { return e.ReportingController }),
		kind.Selectable[coreEvent]{Path: "source", Value: func(e coreEvent) string {
			if e.Source.Component != "" {
				return e.Source.Component
			}
			return e.ReportingController
		}},
		kind.Leaf("type", func(e coreEvent) string { return e.Type }),
	)
}

func namedEventFields() []kind.Selectable[namedEvent] {
	return append(referenceFields("regarding", func(e namedEvent) *corev1.ObjectReference { return &e.Regarding }),
		kind.Leaf("reason", func(e namedEvent) string { return e.Reason }),
		kind.Leaf("reportingController", func(e namedEvent) string { return e.ReportingController }),
		kind.Leaf("type", func(e namedEvent) string { return e.Type }),
	)
}

// referenceFields are those of the object that an event is about.
func referenceFields[P any](at string, of func(P) *corev1.ObjectReference) []kind.Selectable[P] {
	part := func(name string, value func(*corev1.ObjectReference) string) kind.Selectable[P] {
		return kind.Leaf(at+"."+name, func(e P) string { return value(of(e)) })
	}
	return []kind.Selectable[P]{
		part("kind", func(r *corev1.ObjectReference) string { return r.Kind }),
		part("namespace", func(r *corev1.ObjectReference) string { return r.Namespace }),
		part("name", func(r *corev1.ObjectReference) string { return r.Name }),
		part("uid", func(r *corev1.ObjectReference) string { return string(r.UID) }),
		part("apiVersion", func(r *corev1.ObjectReference) string { return r.APIVersion }),
		part("resourceVersion", func(r *corev1.ObjectReference) string { return r.ResourceVersion }),
		part("fieldPath", func(r *corev1.ObjectReference) string { return r.FieldPath }),
	}
}

// toNamedEvent shows an event of the core group as one of events.k8s.io. The two
// share memory.
func toNamedEvent(e coreEvent) namedEvent {
	return &eventsv1.Event{
		TypeMeta:                 metav1.TypeMeta{APIVersion: eventsv1.SchemeGroupVersion.String(), Kind: "Event"},
		ObjectMeta:               e.ObjectMeta,
		EventTime:                e.EventTime,
		Series:                   (*eventsv1.EventSeries)(e.Series),
		ReportingController:      e.ReportingController,
		ReportingInstance:        e.ReportingInstance,
		Action:                   e.Action,
		Reason:                   e.Reason,
		Regarding:                e.InvolvedObject,
		Related:                  e.Related,
		Note:                     e.Message,
		Type:                     e.Type,
		DeprecatedSource:         e.Source,
		DeprecatedFirstTimestamp: e.FirstTimestamp,
		DeprecatedLastTimestamp:  e.LastTimestamp,
		DeprecatedCount:          e.Count,
	}
}

// toCoreEvent is the reverse of toNamedEvent.
func toCoreEvent(e namedEvent) coreEvent {
	return &corev1.Event{
		TypeMeta:            metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Event"},
		ObjectMeta:          e.ObjectMeta,
		EventTime:           e.EventTime,
		Series:              (*corev1.EventSeries)(e.Series),
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
		Action:              e.Action,
		Reason:              e.Reason,
		InvolvedObject:      e.Regarding,
		Related:             e.Related,
		Message:             e.Note,
		Type:                e.Type,
		Source:              e.DeprecatedSource,
		FirstTimestamp:      e.DeprecatedFirstTimestamp,
		LastTimestamp:       e.DeprecatedLastTimestamp,
		Count:               e.DeprecatedCount,
	}
}

func eventRow(e *corev1.Event) []any {
	first := table.Age(e.FirstTimestamp)
	if e.FirstTimestamp.IsZero() {
		first = table.Age(metav1.Time(e.EventTime))
	}
	last, count := first, int64(e.Count)
	switch {
	case e.Series != nil:
		last, count = table.Age(metav1.Time(e.Series.LastObservedTime)), int64(e.Series.Count)
	case !e.LastTimestamp.IsZero():
		last = table.Age(e.LastTimestamp)
	}
	if count == 0 {
		count = 1 // written by a client of the new kind, which counts in series
	}
	subject := e.InvolvedObject.Name
	if k := e.InvolvedObject.Kind; k != "" {
		subject = strings.ToLower(k) + "/" + subject
	}
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	host := e.Source.Host
	if host == "" {
		host = e.ReportingInstance
	}
	if host != "" {
		source += ", " + host
	}
	return []any{last, e.Type, e.Reason, subject, e.InvolvedObject.FieldPath, source, strings.TrimSpace(e.Message), first, count, e.Name}
}
