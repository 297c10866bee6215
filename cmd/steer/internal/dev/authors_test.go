// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/cmd/steer/internal/feed"
	"github.com/steer-dev/steer/trace"
)

func TestAuthorIsReadFromTheObjectOnce(t *testing.T) {
	t.Parallel()
	plane := startedPlane(t)
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(plane.RESTConfig(), client.Options{Scheme: scheme, FieldOwner: "jane"})
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}, Data: map[string]string{"colour": "red"}}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	demo := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "demo"}
	a := &feed.Authors{Client: c}
	for name, c := range map[string]struct {
		cause trace.Cause
		want  string
	}{
		"of a field":                  {trace.Cause{Object: demo, Changed: "data.colour,data.size"}, "jane"},
		"of a field without a writer": {trace.Cause{Object: demo, Changed: "data.size"}, ""},
		"of no field":                 {trace.Cause{Object: demo}, ""},
		"of no object":                {trace.Cause{Object: trace.Object{Kind: "ConfigMap"}, Changed: "data.colour"}, ""},
		"of an absent object":         {trace.Cause{Object: trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "absent"}, Changed: "data.colour"}, ""},
		"of an unknown kind":          {trace.Cause{Object: trace.Object{Kind: "Absent", Namespace: "default", Name: "demo"}, Changed: "data.colour"}, ""},
	} {
		if got := a.Of(t.Context(), c.cause); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if err := c.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if got := a.Of(t.Context(), trace.Cause{Object: demo, Changed: "data.colour,data.size", Count: 3}); got != "jane" {
		t.Errorf("once the object is deleted: %q, want jane as before", got)
	}
}
