// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package own_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/own"
)

var key = client.ObjectKey{Namespace: "default", Name: "a"}

func at(revision int, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: fmt.Sprint(revision)}, Data: map[string]string{"k": value},
	}
}

func update(from, to *corev1.ConfigMap) *cache.Event {
	return &cache.Event{Type: cache.Updated, Old: from, Object: to}
}

func patchTo(value string) []byte { return fmt.Appendf(nil, `{"data": {"k": %q}}`, value) }

// passes reports whether an event is passed on at once.
func passes(w *own.Writes, e *cache.Event) bool {
	passed := false
	w.Event(e, func() { passed = true })
	return passed
}

func TestWritesHoldBackTheEventsOfTheirSteps(t *testing.T) {
	t.Parallel()
	var w own.Writes
	write := func(from, to int, err error) {
		t.Helper()
		if got := w.Perform(key, fmt.Sprint(from), patchTo("x"), func() (string, error) { return fmt.Sprint(to), err }); !errors.Is(got, err) {
			t.Errorf("%v, want %v", got, err)
		}
	}
	write(1, 2, nil)
	write(2, 3, nil)
	if passes(&w, update(at(1, "a"), at(3, "x"))) {
		t.Error("two own steps that were merged are news")
	}
	if !passes(&w, update(at(3, "x"), at(4, "y"))) {
		t.Error("the write of another client is no news")
	}
	write(4, 5, nil)
	if !passes(&w, update(at(4, "y"), at(6, "z"))) {
		t.Error("an own step and one of another client are no news")
	}
	if !passes(&w, &cache.Event{Type: cache.Deleted, Object: at(6, "z")}) || !passes(&w, update(at(4, "y"), at(5, "x"))) {
		t.Error("after a deletion earlier steps count")
	}
	write(7, 7, nil)
	if !passes(&w, &cache.Event{Type: cache.Updated, Resync: true, Old: at(7, "x"), Object: at(7, "x")}) {
		t.Error("a resync is no news")
	}
}

func TestWritesWhoseAnswersAreLostAreKnownByTheirContent(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection reset")
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", nil)
	for name, test := range map[string]struct {
		err  error
		to   string
		news bool
	}{
		"what was written":        {lost, "x", false},
		"something else":          {lost, "z", true},
		"a write that is refused": {conflict, "x", true},
	} {
		var w own.Writes
		if err := w.Perform(key, "1", patchTo("x"), func() (string, error) { return "", test.err }); !errors.Is(err, test.err) {
			t.Fatal(err)
		}
		if got := passes(&w, update(at(1, "a"), at(2, test.to))); got != test.news {
			t.Errorf("%s: news: %v, want %v", name, got, test.news)
		}
	}
}

func TestEventsWaitForTheAnswerOfAWriteUnderWay(t *testing.T) {
	t.Parallel()
	var w own.Writes
	var passed []string
	err := w.Perform(key, "1", patchTo("x"), func() (string, error) {
		w.Event(update(at(1, "a"), at(2, "x")), func() { passed = append(passed, "own") })
		w.Event(update(at(2, "x"), at(3, "y")), func() { passed = append(passed, "other") })
		if len(passed) > 0 {
			t.Errorf("%v passed before the answer", passed)
		}
		return "2", nil
	})
	if err != nil || len(passed) != 1 || passed[0] != "other" {
		t.Errorf("%v passed, %v, want the write of the other client", passed, err)
	}
}
