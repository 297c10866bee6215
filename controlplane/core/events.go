// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/table"
)

func eventKinds() []*apiserver.Resource {
	type event = *corev1.Event
	return []*apiserver.Resource{kind[corev1.Event, event]{
		version: "v1", plural: "events", short: []string{"ev"}, unconditional: true, creates: true,
		validate: validateEvent,
		columns:  columns("Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message", "First Seen*", "Count*", "Name*"),
		row:      eventRow,
		selectable: []selectable[event]{
			leaf("involvedObject.kind", func(e event) string { return e.InvolvedObject.Kind }),
			leaf("involvedObject.namespace", func(e event) string { return e.InvolvedObject.Namespace }),
			leaf("involvedObject.name", func(e event) string { return e.InvolvedObject.Name }),
			leaf("involvedObject.uid", func(e event) string { return string(e.InvolvedObject.UID) }),
			leaf("involvedObject.apiVersion", func(e event) string { return e.InvolvedObject.APIVersion }),
			leaf("involvedObject.resourceVersion", func(e event) string { return e.InvolvedObject.ResourceVersion }),
			leaf("involvedObject.fieldPath", func(e event) string { return e.InvolvedObject.FieldPath }),
			leaf("reason", func(e event) string { return e.Reason }),
			leaf("reportingComponent", func(e event) string { return e.ReportingController }),
			{path: "source", value: func(e event) string {
				if e.Source.Component != "" {
					return e.Source.Component
				}
				return e.ReportingController
			}},
			leaf("type", func(e event) string { return e.Type }),
		},
		deletion: apiserver.DeletionRules{Uncollectable: true},
	}.resource()}
}

// validateEvent checks events of the old kind: the namespace of an event is that
// of its object.
func validateEvent(e, _ *corev1.Event) field.ErrorList {
	namespace := e.InvolvedObject.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // events of cluster-scoped objects live there
		if e.Namespace != namespace && e.Namespace != metav1.NamespaceSystem {
			return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace, "does not match event.namespace")}
		}
		return nil
	}
	if e.Namespace != namespace {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace, "does not match event.namespace")}
	}
	return nil
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
