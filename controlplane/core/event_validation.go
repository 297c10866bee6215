// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The lengths of what new events say, in bytes.
const (
	maxEventWord = 128
	maxEventNote = 1024
)

// validateEvent checks what holds for events however they are written. One
// without eventTime is of the old kind: about an object of its own namespace.
// controller is the name of the field of the reporting controller.
func validateEvent(e coreEvent, controller string) field.ErrorList {
	namespace := e.InvolvedObject.Namespace
	misplaced := field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), namespace, "does not match event.namespace")}
	inDefault := e.Namespace == metav1.NamespaceDefault // where events of cluster-scoped objects live
	if e.EventTime.IsZero() {
		if namespace == e.Namespace || namespace == "" && inDefault {
			return nil
		}
		return misplaced
	}
	var errs field.ErrorList
	if namespace == "" && !inDefault && e.Namespace != metav1.NamespaceSystem {
		errs = append(errs, misplaced...)
	}
	text := func(name, value string, required bool, most int) {
		path := field.NewPath(name)
		if required && value == "" {
			errs = append(errs, field.Required(path, ""))
		}
		if len(value) > most {
			errs = append(errs, field.Invalid(path, "", fmt.Sprintf("can have at most %d characters", most)))
		}
	}
	path := field.NewPath(controller)
	if e.ReportingController == "" {
		errs = append(errs, field.Required(path, ""))
	}
	for _, problem := range validation.IsQualifiedName(e.ReportingController) {
		errs = append(errs, field.Invalid(path, e.ReportingController, problem))
	}
	text("reportingInstance", e.ReportingInstance, true, maxEventWord)
	text("action", e.Action, true, maxEventWord)
	text("reason", e.Reason, true, maxEventWord)
	text("message", e.Message, false, maxEventNote)
	return errs
}

// validateNamedEvent checks events written through events.k8s.io: new ones are
// of the new kind, and of an old one only the series may change. The fields go
// by their names in the core group.
func validateNamedEvent(obj, old namedEvent) field.ErrorList {
	e := toCoreEvent(obj)
	errs := validateEvent(e, "reportingController")
	if old == nil {
		errs = append(errs, validateSeries(e.Series)...)
		return append(errs, validateNewEvent(e)...)
	}
	before := toCoreEvent(old)
	if !reflect.DeepEqual(e.Series, before.Series) {
		errs = append(errs, validateSeries(e.Series)...)
	}
	return append(errs, validateFixedEvent(e, before)...)
}

func validateNewEvent(e coreEvent) field.ErrorList {
	var errs field.ErrorList
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+e.Type))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !e.FirstTimestamp.IsZero()},
		{"lastTimestamp", !e.LastTimestamp.IsZero()},
		{"count", e.Count != 0},
		{"source", e.Source != corev1.EventSource{}},
	} {
		if f.set {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	return errs
}

// validateFixedEvent refuses changes of anything but the series.
func validateFixedEvent(e, old coreEvent) field.ErrorList {
	var errs field.ErrorList
	fixed := func(name string, now, before any) {
		errs = append(errs, apivalidation.ValidateImmutableField(now, before, field.NewPath(name))...)
	}
	fixed("involvedObject", plainReference(e.InvolvedObject), plainReference(old.InvolvedObject))
	fixed("reason", e.Reason, old.Reason)
	fixed("message", e.Message, old.Message)
	fixed("source", plainSource(e.Source), plainSource(old.Source))
	fixed("firstTimestamp", e.FirstTimestamp, old.FirstTimestamp)
	fixed("lastTimestamp", e.LastTimestamp, old.LastTimestamp)
	fixed("count", e.Count, old.Count)
	fixed("reason", e.Reason, old.Reason) // twice, as clients have always been told
	fixed("type", e.Type, old.Type)
	// Clients may carry a time in more detail than the wire does.
	if !e.EventTime.Truncate(time.Microsecond).Equal(old.EventTime.Truncate(time.Microsecond)) {
		fixed("eventTime", e.EventTime, old.EventTime)
	}
	fixed("action", e.Action, old.Action)
	fixed("related", (*plainReference)(e.Related), (*plainReference)(old.Related))
	fixed("reportingController", e.ReportingController, old.ReportingController)
	fixed("reportingInstance", e.ReportingInstance, old.ReportingInstance)
	return errs
}

// What refusals show of structures has always gone by the Go names of the fields.
type (
	plainSource    struct{ Component, Host string }
	plainReference struct {
		Kind, Namespace, Name                  string
		UID                                    types.UID
		APIVersion, ResourceVersion, FieldPath string
	}
)

func validateSeries(s *corev1.EventSeries) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}
