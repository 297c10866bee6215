// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package driven is where an engine, such as that of package sim, meets the environment
// that a test makes for itself with steertest.New.
//
// The engine registers itself for a test before the test runs, and the environment finds
// it by the test's name. What stands here is all that the two know of each other:
// steertest does not import sim.
package driven

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ErrAgain is returned by [Engine.Attach] for the second environment of a test.
var ErrAgain = errors.New("this test has made an environment before: an engine drives one; make one, or two tests")

// Engine decides what happens in an environment, and when. Everything that the user and the
// operator send passes it. Its methods are called within the bubble of the test, and are
// safe for concurrent use.
type Engine interface {
	// Seed of what is random in the environment; not 0.
	Seed() uint64
	// Attach hands over an environment whose control plane is set up and whose operator has
	// not started. From now on the built-in controllers act when the engine steps them.
	Attach(env Env) error
	// User is the way of a user to the control plane.
	User(name string, next http.RoundTripper) http.RoundTripper
	// Operator is the way of the operator to the control plane after its n-th start, from 1.
	Operator(n int, next http.RoundTripper) http.RoundTripper
	// Ended is told with which error the operator of a start ended, and returns what of it
	// counts: an operator that has crashed may fail.
	Ended(n int, err error) error
	// Outside makes a write of the operator to a system outside of the control plane.
	Outside(what string, do func() error) error
	// Rest waits until nothing is under way: no request, no answer, no controller with
	// something to do, no restart. It returns the revision at that moment.
	Rest(ctx context.Context) (uint64, error)
	// Log takes the log of the operator, line by line.
	Log(line string)
}

// Env is what an engine asks of an environment.
type Env interface {
	// Controllers are the names of the built-in controllers.
	Controllers() []string
	// StepController lets one of them act once, and returns how many requests that took.
	StepController(ctx context.Context, name string) (int, error)
	// StepDue returns how long until one of them has something to do although
	// nothing is written; false for never.
	StepDue() (in time.Duration, due bool)
	// Revision of the newest write.
	Revision() uint64
	// Restart ends the operator that was started as the n-th, waits until it has ended, and
	// starts another. It does nothing if that one does not run any more.
	Restart(n int) error
	// Reconciles returns the last reconciles of the running operator in words, at most n.
	Reconciles(n int) []string
	// Settled waits until nothing is left to do.
	Settled(ctx context.Context) error
	// Changes returns the creations and deletions since the last call, or since the
	// environment was attached, in their order. It passes the engine by, as Objects does.
	Changes(ctx context.Context) ([]Change, error)
	// Objects returns what was created since the environment was attached, or changed, and
	// is still there: by the keys of its changes, in the versions that the server prefers.
	Objects(ctx context.Context) (map[string]*unstructured.Unstructured, error)
	// Kind returns the kind of a resource, such as Secret of "" and secrets; empty if the
	// server has no such resource.
	Kind(group, resource string) string
}

// Change is the creation or the deletion of an object.
type Change struct {
	// Key names the object until it is deleted.
	Key string
	// Created is the revision of the creation.
	Created uint64
	// Deleted is the revision of the deletion, and Object what was deleted; 0 and nil for a
	// creation.
	Deleted uint64
	Object  *unstructured.Unstructured
}

// engines are those of tests that run, by the names of the tests.
var engines sync.Map // string to Engine

// Drive makes e the engine of a test until the returned function is called.
func Drive(t testing.TB, e Engine) (release func()) {
	engines.Store(t.Name(), e)
	return func() { engines.Delete(t.Name()) }
}

// By returns the engine that drives a test; nil for most.
func By(t testing.TB) Engine {
	if e, ok := engines.Load(t.Name()); ok {
		return e.(Engine)
	}
	return nil
}
