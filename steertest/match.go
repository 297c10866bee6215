// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/controller"
)

// Matcher returns what an object lacks, for the failure message of a test, and nil
// for an object that matches.
type Matcher func(obj client.Object) error

// Expect returns the object of a key, "namespace/name" or "name", as soon as it
// exists and all matchers match:
//
//	steertest.Expect[*v1.Fleet](env, "default/web", steertest.Ready,
//		steertest.Field(func(f *v1.Fleet) int32 { return f.Status.Ready }, 3))
//
// It is [Wait] with conditions that can say what is missing.
func Expect[T client.Object](e *Env, key string, matchers ...Matcher) T {
	e.Helper()
	lacks := fmt.Errorf("want a %s %s that exists, it was not seen", strings.TrimPrefix(fmt.Sprintf("%T", *new(T)), "*"), key)
	obj, err := waitFor(e, key, func(obj T) bool {
		if lacks = nil; await.Gone(obj) {
			lacks = fmt.Errorf("want a %s %s, it does not exist", strings.TrimPrefix(fmt.Sprintf("%T", obj), "*"), key)
			return false
		}
		for _, match := range matchers {
			lacks = errors.Join(lacks, match(obj))
		}
		return lacks == nil
	})
	if err != nil {
		e.Fatalf("steertest: %s is not as expected:\n  %s\n%v", key, strings.ReplaceAll(fmt.Sprint(lacks), "\n", "\n  "), err)
	}
	return obj
}

// Ready matches an object whose condition [controller.ReadyCondition] is True and
// observes the newest generation: what controller.SetReady sets.
func Ready(obj client.Object) error {
	return Condition(controller.ReadyCondition, metav1.ConditionTrue)(obj)
}

// Condition matches an object with a condition of a status and, if reasons are
// given, one of those, that observes the newest generation unless its
// observedGeneration is 0. The status "" matches when the condition is absent.
func Condition(conditionType string, status metav1.ConditionStatus, reasons ...string) Matcher {
	return func(obj client.Object) error {
		c, err := await.Condition(obj, conditionType)
		switch {
		case err != nil:
			return err
		case c == nil && status == "":
			return nil
		case c == nil:
			return fmt.Errorf("condition %s: want %s, it is absent", conditionType, status)
		case c.Status != status || len(reasons) > 0 && !slices.Contains(reasons, c.Reason):
			return fmt.Errorf("condition %s: want %s, got %s (%s: %s)", conditionType,
				strings.TrimSpace(string(status)+" "+strings.Join(reasons, " or ")), c.Status, c.Reason, c.Message)
		case c.ObservedGeneration != 0 && c.ObservedGeneration != obj.GetGeneration():
			return fmt.Errorf("condition %s: it is %s for generation %d, want it for %d", conditionType, c.Status, c.ObservedGeneration, obj.GetGeneration())
		}
		return nil
	}
}

// Field matches an object from which get reads want. A field that
// cannot be read yet, because it is behind a nil pointer, is different.
func Field[T client.Object, V any](get func(T) V, want V) Matcher {
	return func(obj client.Object) (err error) {
		typed, ok := obj.(T)
		if !ok {
			return fmt.Errorf("the matcher is for a %T, this is a %T", typed, obj)
		}
		defer func() {
			if cause, ok := recover().(runtime.Error); ok {
				err = fmt.Errorf("want %v, the field cannot be read: %w", want, cause)
			}
		}()
		got := get(typed)
		diff := cmp.Diff(want, got)
		switch {
		case diff == "":
			return nil
		case strings.Count(diff, "\n") <= 4: // two short values say it better themselves
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return fmt.Errorf("field differs (-want +got):\n%s", diff)
	}
}
