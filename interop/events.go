// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// EventRecorder returns events, those of a manager (m.Base().Events), as
// client-go's record.EventRecorder that speaks for the named controller. Events
// go out as events.k8s.io/v1 and are aggregated there, as those that controllers
// emit; annotations are not sent. Objects that are not API objects are left out.
func EventRecorder(events controller.EventRecorder, name string) record.EventRecorder {
	return &recorder{events, name}
}

type recorder struct {
	events controller.EventRecorder
	name   string
}

// Event implements record.EventRecorder, as the next ones do.
func (r *recorder) Event(object runtime.Object, eventType, reason, message string) {
	if obj, ok := object.(client.Object); ok {
		r.events.Record(controller.UserEvent{
			Regarding: obj, Warning: eventType == corev1.EventTypeWarning, Reason: reason, Note: message, Controller: r.name,
		})
	}
}

// Eventf implements record.EventRecorder.
func (r *recorder) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	r.Event(object, eventType, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	r.Eventf(object, eventType, reason, format, args...)
}
