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
		"FailureConditions": {controller.FailureConditions, false},
		"OnGone":            {controller.OnGone, false}, "Where": {controller.Where[*Web], false},
		"Owns": {controller.Owns[*Web], false}, "OwnsKind": {controller.OwnsKind, false},
		"References": {controller.References[*corev1.Secret, *Web], false},
		"Finalizer":  {controller.Finalizer[*Web], false}, "RetiredFinalizer": {controller.RetiredFinalizer, false},

		"Concurrency": {controller.Concurrency, true}, "Timeout": {controller.Timeout, true},
		"RateLimit": {controller.RateLimit, true}, "RetryRate": {controller.RetryRate, true},
		"MaxRetries": {controller.MaxRetries, true},
		"FieldOwner": {controller.FieldOwner, true}, "OnEveryReplica": {controller.OnEveryReplica, true},
		"Priority": {controller.Priority, false},

		"Watches": {controller.Watches[*Web, request], false}, "From": {controller.From[request], false},
		"RateLimiter": {controller.RateLimiter[request], false},
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

// TestOptionsOfOtherRequestsDoNotCompile looks at what the typed options are declared
// as: those of one type of requests fit no reconciler of another.
func TestOptionsOfOtherRequestsDoNotCompile(t *testing.T) {
	t.Parallel()
	type request = controller.Request
	takes := func(option, taker reflect.Type) bool { return option.AssignableTo(taker) }
	objects, requests, texts := reflect.TypeFor[controller.Option](), reflect.TypeFor[controller.TypedOption[request]](), reflect.TypeFor[controller.TypedOption[string]]()
	for name, c := range map[string]struct {
		of, ofString any
	}{
		"Watches":     {controller.Watches[*Web, request], controller.Watches[*Web, string]},
		"From":        {controller.From[request], controller.From[string]},
		"RateLimiter": {controller.RateLimiter[request], controller.RateLimiter[string]},
	} {
		of, ofString := reflect.TypeOf(c.of).Out(0), reflect.TypeOf(c.ofString).Out(0)
		if !takes(of, objects) || !takes(of, requests) || !takes(ofString, texts) {
			t.Errorf("%s does not fit the reconcilers of its own requests", name)
		}
		if takes(of, texts) || takes(ofString, objects) || takes(ofString, requests) {
			t.Errorf("%s fits reconcilers of other requests", name)
		}
	}
	if owns := reflect.TypeOf(controller.Owns[*Web]).Out(0); takes(owns, requests) {
		t.Error("Owns fits AddRequests, which has no owners")
	}
}
