// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
)

// KubeconfigVariable is the environment variable with the path of a kubeconfig
// file. Where it is set, tests run on the API server of that file instead of on
// control planes of their own, each in a namespace of its own, as its user, who
// must be an administrator:
//
//	STEERTEST_KUBECONFIG=$HOME/.kube/config go test ./...
//
// A suite runs on both if it leaves namespaces out of its objects, manifests and
// keys, or uses [Env.Namespace], and lists in that namespace. The operator then
// watches the namespace of the test only, under its role, which is created under
// a name of its own and removed with the test; Roles of the namespace system, which
// stands for the operator's own, are in that of the test. Definitions of CRDs stay.
//
// What an API server that others use cannot give skips the test, by name:
// Options.Plane and Options.Workloads, virtual time, cluster-scoped objects,
// objects in other namespaces, and after [Env.NeedPlane] a plane, after [Env.NeedControllers] controllers such
// as garbage collection where none run. [Env.Settled] waits for the operator, not
// for controllers of the server.
const KubeconfigVariable = "STEERTEST_KUBECONFIG"

// errOtherDefinition says that tests of one process define a kind differently.
var errOtherDefinition = errors.New("two definitions of one kind")

// useServer makes the environment one of the API server of a kubeconfig file.
func (e *Env) useServer(file string) {
	e.Helper()
	switch {
	case e.options.Workloads != nil:
		e.skip("simulated workloads (Options.Workloads)")
	case !reflect.ValueOf(e.options.Plane).IsZero():
		e.skip("an adjusted control plane (Options.Plane)")
	case virtual():
		e.skip("virtual time (testing/synctest)")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		e.Fatalf("steertest: %s: %v", KubeconfigVariable, err)
	}
	cfg.QPS = -1 // the server has its own limits
	e.Config = cfg
	e.Client = e.clientOf(cfg)
	manifests, err := e.definitions()
	if err == nil {
		err = define(e.ctx, e.Client, manifests)
	}
	if errors.Is(err, errOtherDefinition) {
		e.skip(err.Error())
	}
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetGenerateName("steertest-")
	if err := e.Client.Create(e.ctx, namespace); err != nil {
		e.Fatalf("steertest: create a namespace for the test: %v", err)
	}
	e.Namespace = namespace.GetName()
	e.remove(namespace)
}

// remove deletes an object after the test, if the server has it then.
func (e *Env) remove(obj client.Object) {
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // that of the test has ended
		defer cancel()
		if err := client.IgnoreNotFound(e.Client.Delete(ctx, obj)); err != nil {
			e.Errorf("steertest: clean up: %v", err)
		}
	})
}

// skip skips a test that needs what an API server of others does not have.
func (e *Env) skip(what string) {
	e.Helper()
	e.Skipf("steertest: the API server of %s cannot give %s", KubeconfigVariable, what)
}

// NeedPlane skips a test that needs a control plane of its own, for example
// because it uses [Env.Plane], or writes to namespaces that it names.
func (e *Env) NeedPlane() {
	e.Helper()
	if e.Plane == nil {
		e.skip("a control plane of the test's own")
	}
}

// NeedControllers skips a test that waits for controllers of Kubernetes, such as
// garbage collection, where the API server has none beside it. On a control plane
// of the test they always run.
func (e *Env) NeedControllers() {
	e.Helper()
	if e.Plane != nil {
		return
	}
	// The first thing that a controller manager does in a new namespace.
	ctx, cancel := context.WithTimeout(e.ctx, 5*time.Second)
	defer cancel()
	account := client.NewMetadata(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	for {
		if e.Client.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: "default"}, account) == nil {
			return
		}
		select {
		case <-ctx.Done():
			e.skip("controllers of Kubernetes: no kube-controller-manager runs")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// defined are the definitions that this process has applied to a server, by
// their kind and name.
var defined sync.Map // string to *definition

// definition is one manifest of Options.CRDs.
type definition struct {
	file  string
	apply func() error
}

// define applies manifests once per process, and waits until the server serves
// the kinds that they define. It returns [errOtherDefinition] for what another
// test has defined by another file.
func define(ctx context.Context, c client.Client, manifests []manifest.Object) error {
	for _, o := range manifests {
		ctx := context.WithoutCancel(ctx) // others wait for it too
		found, _ := defined.LoadOrStore(o.GetKind()+" "+o.GetName(), &definition{o.File, sync.OnceValue(func() error {
			if err := manifest.Apply(ctx, c, "", []manifest.Object{o}); err != nil {
				return err
			}
			return served(ctx, c, o.Unstructured)
		})})
		d := found.(*definition)
		if d.file != o.File {
			return fmt.Errorf("%w: %s %s is defined by %s, which other tests use, and by %s", errOtherDefinition, o.GetKind(), o.GetName(), d.file, o.File)
		}
		if err := d.apply(); err != nil {
			return err
		}
	}
	return nil
}

// served waits until the kinds of a CustomResourceDefinition can be listed.
func served(ctx context.Context, c client.Client, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if serves, _ := version["served"].(bool); !serves {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: fmt.Sprint(version["name"]), Kind: kind + "List"})
		for {
			err := c.List(ctx, list, client.Limit(1))
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not served: %w", definition.GetName(), err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// configFor is the configuration of a user.
func (e *Env) configFor(user *auth.User) *rest.Config {
	if e.Plane != nil {
		return e.Plane.RESTConfigFor(user)
	}
	cfg := rest.CopyConfig(e.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: user.Groups}
	return cfg
}

// settleOnServer waits until the operator is idle and has not written anything
// meanwhile.
func (e *Env) settleOnServer(ctx context.Context) error {
	for {
		before := e.writes.Count()
		for _, one := range e.working(ctx) {
			if err := one.manager.Idle(ctx); err != nil {
				return err
			}
		}
		if e.writes.Count() == before {
			return nil
		}
	}
}

// place gives an object that names no namespace that of the test, where its kind
// has namespaces. On a server of others it skips tests that write elsewhere.
func (e *Env) place(obj client.Object) error {
	gvk, err := client.KindOf(e.Client.Scheme(), obj)
	if err != nil {
		return err
	}
	resource, err := e.Client.Mapper().ForKind(e.ctx, gvk)
	if err != nil {
		return err
	}
	if resource.Namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(e.Namespace)
	}
	if e.Plane == nil && obj.GetNamespace() != e.Namespace {
		what := fmt.Sprintf("%s %s in namespace %s: leave the namespace out, it is that of the test", gvk.Kind, obj.GetName(), obj.GetNamespace())
		if !resource.Namespaced {
			what = fmt.Sprintf("%s %s, which all tests would share: it has no namespace", gvk.Kind, obj.GetName())
		}
		e.skip(what)
	}
	return nil
}

// key reads a key, "namespace/name" or "name". One without a namespace is in that
// of the test, where the kind has namespaces.
func key[T client.Object](e *Env, s string) client.ObjectKey {
	k := Key(s)
	if k.Namespace != "" {
		return k
	}
	gvk, err := client.KindOf(e.Client.Scheme(), empty[T]())
	if err != nil {
		return k // the wait itself says so
	}
	if resource, err := e.Client.Mapper().ForKind(e.ctx, gvk); err == nil && resource.Namespaced {
		k.Namespace = e.Namespace
	}
	return k
}

func empty[T client.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}
