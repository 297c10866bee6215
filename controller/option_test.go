// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controller"
)

// TestOptionsOfObjectsDoNotCompileForRequests looks at what the options are
// declared as: AddRequests takes a RequestOption only.
func TestOptionsOfObjectsDoNotCompileForRequests(t *testing.T) {
	t.Parallel()
	type request = controller.Request
	for name, c := range map[string]struct {
		option   any
		requests bool
	}{
		"Name": {controller.Name, false}, "OfKind": {controller.OfKind, false},
		"Paused": {controller.Paused, false}, "NoConditionEvents": {controller.NoConditionEvents, false},
		"OnGone": {controller.OnGone, false}, "Where": {controller.Where[*Web], false},
		"Owns": {controller.Owns[*Web], false}, "OwnsKind": {controller.OwnsKind, false},
		"References": {controller.References[*corev1.Secret, *Web], false},
		"Finalizer":  {controller.Finalizer[*Web], false}, "RetiredFinalizer": {controller.RetiredFinalizer, false},

		"Watches": {controller.Watches[*Web, request], true}, "From": {controller.From[request], true},
		"Concurrency": {controller.Concurrency, true}, "Timeout": {controller.Timeout, true},
		"RateLimit": {controller.RateLimit, true}, "RetryRate": {controller.RetryRate, true},
		"RateLimiter": {controller.RateLimiter[request], true}, "MaxRetries": {controller.MaxRetries, true},
		"FieldOwner": {controller.FieldOwner, true}, "OnEveryReplica": {controller.OnEveryReplica, true},
		"Priority": {controller.Priority, true},
	} {
		declared := reflect.TypeOf(c.option).Out(0)
		if !declared.AssignableTo(reflect.TypeFor[controller.Option]()) {
			t.Errorf("%s returns a %v, which controller.Add does not take", name, declared)
		}
		if got := declared.AssignableTo(reflect.TypeFor[controller.RequestOption]()); got != c.requests {
			t.Errorf("%s returns a %v: fits controller.AddRequests: %v, want %v", name, declared, got, c.requests)
		}
	}
}
