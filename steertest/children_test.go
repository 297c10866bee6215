// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// notChildren are the kinds that are not declared as children, and why.
var notChildren = map[string]string{
	"Binding": "is an action", "Eviction": "is an action", "TokenRequest": "is an action", "TokenReview": "is a question", "SubjectAccessReview": "is a question",
	"SelfSubjectAccessReview": "is a question", "SelfSubjectRulesReview": "is a question", "LocalSubjectAccessReview": "is a question", "SelfSubjectReview": "is a question",
	"ComponentStatus":                "is read-only",
	"ValidatingWebhookConfiguration": "would call webhooks that are not there", "MutatingWebhookConfiguration": "would call webhooks that are not there",
	"APIService": "would need a server behind it", "Event": "cannot be changed once it is there",
}

// sample is an object that kube-apiserver has accepted.
type sample struct {
	from   string
	object *unstructured.Unstructured
}

// samples are the bodies of the recorded creations, by kind.
func samples(t *testing.T) map[schema.GroupVersionKind][]sample {
	t.Helper()
	scripts, err := wiretest.Load("../oracle/testdata")
	if err != nil {
		t.Fatal(err)
	}
	out := map[schema.GroupVersionKind][]sample{}
	add := func(from string, u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "status")
		gvk := u.GroupVersionKind()
		if strings.Contains(gvk.Group, "example.com") || notChildren[gvk.Kind] != "" {
			return
		}
		out[gvk] = append(out[gvk], sample{from, u})
	}
	for _, script := range scripts {
		for _, step := range script.Steps {
			if step.Method != "POST" || !strings.HasPrefix(step.Answer, "201") {
				continue
			}
			u := &unstructured.Unstructured{}
			if yaml.Unmarshal([]byte(step.Body), &u.Object) != nil || u.GetName() == "" || u.GetKind() == "" {
				continue
			}
			add(filepath.Join(script.Name, step.Name), u)
		}
	}
	data, err := os.ReadFile("testdata/children.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		add("children.yaml", u)
	}
	return out
}

// fillEmpty puts empty maps and lists where there is none, at random.
func fillEmpty(v reflect.Value, random *rand.Rand) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillEmpty(v.Elem(), random)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fillEmpty(f, random)
			}
		}
	case reflect.Map:
		if v.IsNil() && random.IntN(2) == 0 {
			v.Set(reflect.MakeMap(v.Type()))
		}
	case reflect.Slice:
		if v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8 && random.IntN(2) == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillEmpty(v.Index(i), random)
		}
	}
}

// forms are the forms in which an object is declared: as a Go type, with empty maps
// and lists at random, and without a Go type.
func (s *sample) forms(t *testing.T, random *rand.Rand) map[string]client.Object {
	t.Helper()
	typed := func() client.Object {
		obj, err := clientgoscheme.Scheme.New(s.object.GroupVersionKind())
		if err != nil {
			return nil // of a kind without a Go type here
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.object.Object, obj); err != nil {
			return nil
		}
		return obj.(client.Object)
	}
	forms := map[string]client.Object{"unstructured": s.object}
	if plain, filled := typed(), typed(); plain != nil {
		fillEmpty(reflect.ValueOf(filled), random)
		forms["typed"], forms["filled"] = plain, filled
	}
	return forms
}

// parent reconciles a ConfigMap of this name, of which everything is a child.
type parent struct {
	mu      sync.Mutex
	desired client.Object
	turns   chan error
	set     controller.Children[client.Object]
}

func (p *parent) Reconcile(ctx context.Context, owner *corev1.ConfigMap) (controller.Result, error) {
	if owner.Name != "parent" {
		return controller.Done(), nil
	}
	p.mu.Lock()
	child := p.desired.DeepCopyObject().(client.Object)
	p.mu.Unlock()
	err := p.set.Apply(ctx, owner, []client.Object{child})
	p.turns <- err
	return controller.Done(), nil
}

// TestEveryBuiltInKindIsAppliedOnce declares children of every kind, in several
// forms, and demands that neither a further reconcile nor a restart sends a write.
func TestEveryBuiltInKindIsAppliedOnce(t *testing.T) {
	t.Parallel()
	all := samples(t)
	kinds := map[string]bool{}
	for gvk := range all {
		kinds[gvk.Group+" "+gvk.Kind] = true
	}
	env := steertest.New(t, steertest.Options{})
	resources, err := env.Client.Mapper().All(env.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources {
		if r.Can("create") && r.Can("patch") && notChildren[r.GVK.Kind] == "" && !kinds[r.GVK.Group+" "+r.GVK.Kind] {
			t.Errorf("no recorded conversation creates a %s", r.GVK)
		}
	}
	for _, gvk := range slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		t.Run(gvk.GroupVersion().String()+" "+gvk.Kind, func(t *testing.T) {
			t.Parallel()
			accepted := 0
			h := fnv.New64a()
			_, _ = h.Write([]byte(gvk.String()))
			random := rand.New(rand.NewPCG(15, h.Sum64()))
			for _, s := range all[gvk] {
				if accepted >= 3 {
					break
				}
				for form, obj := range s.forms(t, random) {
					if appliedOnce(t, s.from+" "+form, obj) {
						accepted++
					}
				}
			}
			if accepted == 0 {
				t.Errorf("none of %d objects was accepted", len(all[gvk]))
			}
		})
	}
}

// appliedOnce reports whether a server with the CRDs takes the object.
func appliedOnce(t *testing.T, name string, desired client.Object, crds ...string) (accepted bool) {
	t.Helper()
	var mu sync.Mutex
	var writes []string
	p := &parent{desired: desired, turns: make(chan error, 64)}
	scheme, err := client.NewScheme(clientgoscheme.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{
		Plane:  controlplane.Options{Disable: append(controlplane.Controllers(), "ServiceAccount")}, // no other controller writes
		Scheme: scheme, Role: steertest.Administrator, CRDs: crds,
		Intercept: interceptor.Each(func(_ context.Context, call client.Call, do func() error) error {
			if call.Verb.Writes() {
				mu.Lock()
				writes = append(writes, fmt.Sprint(call.Verb, " ", call.GVK.Kind, " ", call.Key))
				mu.Unlock()
			}
			return do()
		}),
		Setup: func(_ context.Context, m *manager.Manager) error {
			if _, err := m.Cache().Informer(desired); err != nil {
				return err
			}
			return controller.Add(m, p)
		},
	})
	defer env.StopOperator()
	forget := func() {
		mu.Lock()
		defer mu.Unlock()
		writes = nil
	}
	next := func(when string) error {
		t.Helper()
		select {
		case err := <-p.turns:
			return err
		case <-env.Context().Done():
			t.Fatalf("%s: nothing was reconciled %s", name, when)
			return nil
		}
	}
	quiet := func(when string) {
		t.Helper()
		if err := next(when); err != nil {
			t.Errorf("%s %s: %v", name, when, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(writes) > 0 {
			t.Errorf("%s: %s sent %v", name, when, writes)
		}
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "parent"}}
	if err := env.Client.Create(env.Context(), owner); err != nil {
		t.Fatal(err)
	}
	if err := next("at first"); err != nil {
		t.Logf("%s: %v", name, err)
		return false
	}
	forget()
	touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"again":"yes"}}}`))
	if err := env.Client.Patch(env.Context(), owner, touch); err != nil {
		t.Fatal(err)
	}
	quiet("a further reconcile")
	env.StopOperator()
	forget()
	env.StartOperator()
	quiet("a restart")
	return true
}
