// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// teller emits an event about every ConfigMap that it sees.
type teller struct{}

func (teller) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	controller.Emit(ctx, controller.UserEvent{Reason: "Seen", Note: "it is there"})
	return controller.Done(), nil
}

// TestEventsOfControllersAreFoundByTheirObject reads them as kubectl describe
// does: through the core group, by the object they are about.
func TestEventsOfControllersAreFoundByTheirObject(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: func(_ context.Context, m *manager.Manager) error {
		return controller.Add(m, teller{})
	}})
	subject := configMap("subject")
	env.Create(subject)
	list := steertest.WaitList(env, func(l *corev1.EventList) bool { return len(l.Items) > 0 },
		client.InNamespace("default"), client.MatchingFields{
			"involvedObject.kind": "ConfigMap", "involvedObject.namespace": "default",
			"involvedObject.name": subject.Name, "involvedObject.uid": string(subject.UID),
		})
	got := list.Items[0]
	if len(list.Items) != 1 || got.Reason != "Seen" || got.Message != "it is there" || got.Type != corev1.EventTypeNormal || got.ReportingController == "" {
		t.Errorf("%d events, the first %+v", len(list.Items), got)
	}
}
