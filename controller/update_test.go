// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

func TestCreateOrUpdateSendsNothingWithoutADifference(t *testing.T) {
	t.Parallel()
	for name, mutate := range map[string]func(s *corev1.Service, port int32){
		"a field that is set": func(s *corev1.Service, port int32) {
			s.Spec.Selector = map[string]string{"app": "web"}
			if len(s.Spec.Ports) == 0 {
				s.Spec.Ports = make([]corev1.ServicePort, 1)
			}
			s.Spec.Ports[0].Port = port
		},
		"a spec that is replaced": func(s *corev1.Service, port int32) {
			s.Annotations = map[string]string{}
			address := s.Spec.ClusterIP // it cannot be taken away
			s.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}, Selector: map[string]string{"app": "web"}, ClusterIP: address}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newPlane(t)
			key := metav1.ObjectMeta{Namespace: "default", Name: "web"}
			try := func(want controller.Operation, port int32) *corev1.Service {
				t.Helper()
				s := &corev1.Service{ObjectMeta: key}
				got, err := controller.CreateOrUpdate(env.Context(), env.Client, s, func() error { mutate(s, port); return nil })
				if err != nil || got != want {
					t.Errorf("%s, want %s: %v", got, want, err)
				}
				if s.ResourceVersion == "" || s.Spec.Ports[0].Port != port {
					t.Errorf("it is not what the server has: %+v", s)
				}
				return s
			}
			try(controller.OperationCreated, 80)
			// What mutate sees now for the first time, such as an address, may count once.
			s := &corev1.Service{ObjectMeta: key}
			if _, err := controller.CreateOrUpdate(env.Context(), env.Client, s, func() error { mutate(s, 80); return nil }); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				try(controller.OperationNone, 80)
			}
			changed := try(controller.OperationUpdated, 81)
			try(controller.OperationNone, 81)

			// What another client changes is mended.
			changed.Spec.Ports[0].Port = 99
			if err := env.Client.Update(env.Context(), changed); err != nil {
				t.Fatal(err)
			}
			try(controller.OperationUpdated, 81)
			try(controller.OperationNone, 81)
		})
	}
}

func TestCreateOrUpdatePassesErrorsOn(t *testing.T) {
	t.Parallel()
	env := newPlane(t)
	failure := errors.New("no idea")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if _, err := controller.CreateOrUpdate(env.Context(), env.Client, obj, func() error { return failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
	_, err := controller.CreateOrUpdate(env.Context(), env.Client, obj, func() error { obj.Name = "b"; return nil })
	if err == nil {
		t.Error("a function renamed the object")
	}
	if err := env.Client.Get(env.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err == nil {
		t.Error("something was created all the same")
	}
}
