// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller/internal/children"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// world is a control plane with an owner, and a client whose writes are counted. Its
// reads come from a cache of ConfigMaps.
type world struct {
	*steertest.Env
	client client.Client
	writes []string // since the last expect
	// alter changes the answer to a write, as a webhook might; nil leaves it alone.
	alter func(client.Object)
	owner *corev1.ConfigMap
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{
		Scheme: scheme, Role: steertest.Administrator,
		Setup: func(_ context.Context, m *manager.Manager) error {
			_, err := m.Cache().Informer(&corev1.ConfigMap{})
			return err
		},
	})
	w := &world{Env: env, owner: configMap("owner")}
	env.Create(w.owner)
	env.Settled()
	write := func(verb string, obj client.Object, err error) error {
		w.writes = append(w.writes, verb+" "+obj.GetName())
		if err == nil && w.alter != nil {
			w.alter(obj)
		}
		return err
	}
	w.client = interceptor.New(env.Manager().Client(), interceptor.Funcs{
		Create: func(ctx context.Context, next client.Client, obj client.Object, opts ...client.WriteOption) error {
			if slices.Contains(opts, client.WriteOption(client.DryRunAll)) {
				w.writes = append(w.writes, "dry-run create")
				return next.Create(ctx, obj, opts...)
			}
			return write("create", obj, next.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, next client.Client, obj client.Object, opts ...client.WriteOption) error {
			return write("update", obj, next.Update(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, next client.Client, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
			return write("patch", obj, next.Patch(ctx, obj, patch, opts...))
		},
		Apply: func(ctx context.Context, next client.Client, obj any, opts ...client.WriteOption) error {
			return write("apply", obj.(client.Object), next.Apply(ctx, obj, opts...))
		},
		Delete: func(ctx context.Context, next client.Client, obj client.Object, opts ...client.DeleteOption) error {
			return write("delete", obj, next.Delete(ctx, obj, opts...))
		},
	})
	return w
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func page(name, text string) *corev1.ConfigMap {
	c := configMap(name)
	c.Data = map[string]string{"text": text}
	return c
}

func ref(name string) children.Ref {
	return children.Ref{GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Key: types.NamespacedName{Namespace: "default", Name: name}}
}

// set is one attempt with a set of the owner.
func (w *world) set(edit ...func(*children.Set)) *children.Set {
	w.Helper()
	s := &children.Set{
		Context: w.Context(), Client: w.client, Controller: "web", Name: "pages", FullName: "web.pages",
		Owner: w.owner, OwnerGVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Memory: &children.Memory{}, Pending: &children.Pending{},
		Kinds:   []client.Object{&corev1.ConfigMap{}},
		Revised: func(take func(client.Object)) { take(w.owner) },
		Write: func(_ string, _ []byte, write func() (string, error)) error {
			_, err := write()
			return err
		},
	}
	for _, e := range edit {
		e(s)
	}
	var err error
	if s.Inventory, err = children.ReadInventory(s.Pending.On(w.owner), s.FullName, s.Formerly...); err != nil {
		w.Fatal(err)
	}
	return s
}

// apply adopts and applies a child.
func (w *world) apply(s *children.Set, child client.Object) error {
	w.Helper()
	at, err := s.Adopt(child)
	if err != nil {
		w.Fatal(err)
	}
	todo, err := s.Check(at, child)
	if err != nil || todo == nil {
		return err
	}
	return s.Send(todo)
}

// expect compares the writes since the last call.
func (w *world) expect(what string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.writes); diff != "" {
		w.Errorf("%s: %s", what, diff)
	}
	w.writes = nil
}

// stored returns the ConfigMap that the server has.
func (w *world) stored(name string) *corev1.ConfigMap {
	w.Helper()
	out := &corev1.ConfigMap{}
	if err := w.Client.Get(w.Context(), ref(name).Key, out); err != nil {
		w.Fatal(err)
	}
	return out
}

// change changes what the server has, as another client.
func (w *world) change(name string, edit func(*corev1.ConfigMap)) {
	w.Helper()
	obj := w.stored(name)
	edit(obj)
	if err := w.Client.Update(w.Context(), obj, client.FieldOwner("other")); err != nil {
		w.Fatal(err)
	}
	w.Settled()
}

// names of the ConfigMaps, without those of the control plane.
func (w *world) names() (out []string) {
	w.Helper()
	var list corev1.ConfigMapList
	if err := w.Client.List(w.Context(), &list, client.InNamespace("default")); err != nil {
		w.Fatal(err)
	}
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	slices.Sort(out)
	return out
}
