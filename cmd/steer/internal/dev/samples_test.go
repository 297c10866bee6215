// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

func TestSamplesComeOnce(t *testing.T) {
	t.Parallel()
	plane := startedPlane(t)
	c, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: "steer-dev"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, samplesFolder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	object := func(name string) *metav1.PartialObjectMetadata {
		o := client.NewMetadata(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		o.SetNamespace("default")
		o.SetName(name)
		return o
	}
	// there are the samples that the control plane has.
	there := func(want string) {
		t.Helper()
		var names []string
		for _, name := range []string{"a", "b", "c"} {
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, object(name)); err == nil {
				names = append(names, name)
			} else if !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("the samples %q are there, want %q", got, want)
		}
	}
	// run is a steer dev in the project; each calls sample after every start of the operator.
	run := func() *own {
		return &own{loop: &loop{Options: Options{Dir: dir}, client: c, applied: map[string]string{}}}
	}
	if err := MakeState(dir); err != nil {
		t.Fatal(err)
	}
	first := run()
	if err := first.sample(t.Context()); err != nil {
		t.Errorf("without samples: %v", err)
	}
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "
	write("a.yaml", configMap+"a\n")
	if err := first.sample(t.Context()); err != nil {
		t.Error(err)
	}
	there("a")

	if err := c.Delete(t.Context(), object("a")); err != nil {
		t.Fatal(err)
	}
	write("b.yaml", configMap+"b\n")
	if err := first.sample(t.Context()); err != nil {
		t.Error(err)
	}
	there("b")

	second := run()
	write("0.yaml", "apiVersion: example.com/v1\nkind: Unknown\nmetadata:\n  name: x\n")
	write("c.yaml", configMap+"c\n")
	for range 2 { // it is tried again, and the others are not
		if err := second.sample(t.Context()); err == nil || !strings.Contains(err.Error(), "0.yaml") {
			t.Errorf("a sample of an unknown kind: %v", err)
		}
	}
	there("b c")
	write("0.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: made-later\n")
	var said strings.Builder
	second.Errs = &said
	for range 2 { // said once
		if err := errors.Join(second.sample(t.Context()), second.late(t.Context())); err != nil {
			t.Errorf("a sample in a namespace that is made later: %v", err)
		}
	}
	if got := said.String(); strings.Count(got, "it comes when the namespace is there") != 1 || !strings.Contains(got, "made-later") {
		t.Errorf("a sample in a namespace that is made later: said %q", got)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "made-later"}}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if err := second.late(t.Context()); err != nil {
		t.Error(err)
	}
	late := object("x")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "made-later", Name: "x"}, late); err != nil {
		t.Error(err)
	}

	if err := os.RemoveAll(filepath.Join(dir, samplesFolder)); err != nil {
		t.Fatal(err)
	}
	if err := second.sample(t.Context()); err != nil {
		t.Errorf("the samples have gone: %v", err)
	}
	there("b c")
}
