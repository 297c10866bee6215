// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/exampletest"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// greeter keeps a ConfigMap in every namespace.
type greeter struct {
	text    string
	welcome controller.Children[*corev1.ConfigMap]
}

func (g *greeter) Reconcile(ctx context.Context, ns *corev1.Namespace) (controller.Result, error) {
	return controller.Done(), g.welcome.Apply(ctx, ns, []*corev1.ConfigMap{{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "welcome"},
		Data:       map[string]string{"text": g.text + ", " + ns.Name},
	}})
}

// greeterOperator is what main gives to steer.Main. It has a flag of its own.
func greeterOperator() steer.Operator {
	g := &greeter{}
	return steer.Operator{
		Name:   "greeter",
		Scheme: steer.Scheme{corev1.AddToScheme},
		Flags:  func(f *flag.FlagSet) { f.StringVar(&g.text, "text", "Hello", "how to greet") },
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, g, controller.Owns[*corev1.ConfigMap]())
		},
	}
}

// A test runs the operator as main does, with its flags.
func ExampleOperator() {
	exampletest.Run(func(t testing.TB) {
		env := steertest.New(t, steertest.Options{Operator: greeterOperator(), Args: []string{"--text=Welcome"}})
		welcome := steertest.Wait(env, "default/welcome", func(*corev1.ConfigMap) bool { return true })
		fmt.Println(welcome.Data["text"])
	})
	// Output: Welcome, default
}

// Run is Main without a process: it returns when its context ends.
func ExampleRun() {
	exampletest.Run(func(t testing.TB) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			panic(err)
		}
		env := steertest.New(t, steertest.Options{Scheme: scheme})
		op := greeterOperator()
		op.Config = env.Config // without it flags and environment say where the cluster is

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- steer.Run(ctx, []string{"--health-probe-bind-address=0", "--metrics-bind-address=0"}, op)
		}()
		welcome := steertest.Wait(env, "default/welcome", func(*corev1.ConfigMap) bool { return true })
		fmt.Println(welcome.Data["text"])
		stop()
		fmt.Println(<-ended)
	})
	// Output:
	// Hello, default
	// <nil>
}
