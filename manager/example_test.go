// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/internal/exampletest"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// run makes a manager for a new control plane, lets setup add to it, and calls body
// while it runs.
func run(options manager.Options, setup func(m *manager.Manager), body func(m *manager.Manager), objects ...client.Object) {
	exampletest.Run(func(t testing.TB) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		must(err)
		env := steertest.New(t, steertest.Options{Scheme: scheme, Objects: objects})
		options.Name, options.Scheme, options.Log = "example", scheme, slog.New(slog.DiscardHandler)
		m, err := manager.New(env.Config, options)
		must(err)
		setup(m)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		body(m)
		stop()
		must(<-ended)
	})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func exampleSecret(name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string][]byte{"value": []byte(value)},
	}
}

// A manager runs its controllers until its context ends.
func ExampleNew() {
	exampletest.Run(func(t testing.TB) {
		config := steertest.New(t, steertest.Options{}).Config // or of a kubeconfig file
		scheme, err := client.NewScheme(corev1.AddToScheme)
		must(err)
		m, err := manager.New(config, manager.Options{Name: "greeter", Scheme: scheme})
		must(err)

		ctx, stop := context.WithCancel(t.Context())
		must(controller.Add(m, controller.Func[*corev1.Namespace](func(_ context.Context, ns *corev1.Namespace) (controller.Result, error) {
			if ns.Name == "default" {
				fmt.Println("hello", ns.Name)
				stop()
			}
			return controller.Done(), nil
		})))
		fmt.Println(m.Start(ctx))
	})
	// Output:
	// hello default
	// <nil>
}

// A runnable starts when the caches are synced, on the leader.
func ExampleRunnableFunc() {
	started := make(chan string, 1)
	run(manager.Options{}, func(m *manager.Manager) {
		must(m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			started <- "runs"
			<-ctx.Done()
			return nil
		})))
	}, func(*manager.Manager) {
		fmt.Println(<-started)
	})
	// Output: runs
}

// With leader election controllers run on one replica; OnEveryReplica is for work
// that all of them do.
func ExampleOnEveryReplica() {
	election := manager.Election{Enabled: true, Namespace: "default"}
	started := make(chan string, 1)
	run(manager.Options{Election: election}, func(m *manager.Manager) {
		must(m.Add(manager.OnEveryReplica(manager.RunnableFunc(func(ctx context.Context) error {
			started <- "runs on every replica"
			<-ctx.Done()
			return nil
		}))))
	}, func(m *manager.Manager) {
		fmt.Println(<-started)
		<-m.Elected()
		fmt.Println("leads")
	})
	// Output:
	// runs on every replica
	// leads
}

// One replica leads at a time. It gives the lease up when it ends, so that another one
// leads at once.
func ExampleElection() {
	exampletest.Run(func(t testing.TB) {
		config := steertest.New(t, steertest.Options{}).Config
		scheme, err := client.NewScheme(corev1.AddToScheme)
		must(err)
		replica := func(name string) {
			m, err := manager.New(config, manager.Options{
				Name: "greeter", Instance: name, Scheme: scheme,
				Election: manager.Election{Enabled: true, Namespace: "default"},
			})
			must(err)
			ctx, stop := context.WithCancel(t.Context())
			must(m.Add(manager.RunnableFunc(func(context.Context) error {
				fmt.Println(name, "leads")
				stop() // as at a SIGTERM
				return nil
			})))
			must(m.Start(ctx))
		}
		replica("greeter-1")
		replica("greeter-2")
	})
	// Output:
	// greeter-1 leads
	// greeter-2 leads
}

// A check adds to /readyz.
func ExampleManager_AddReadyCheck() {
	exampletest.Run(func(t testing.TB) {
		scheme, err := client.NewScheme()
		must(err)
		m, err := manager.New(steertest.New(t, steertest.Options{}).Config, manager.Options{Name: "example", Scheme: scheme, HealthAddress: "127.0.0.1:0"})
		must(err)
		must(m.AddReadyCheck("database", func(*http.Request) error { return errors.New("not connected") }))
		fmt.Println(m.AddReadyCheck("database", nil) != nil) // names are unique
	})
	// Output: true
}

// The flight recorder has the last reconciles: cause, reads, writes, outcome.
func ExampleManager_Recorder() {
	run(manager.Options{}, func(m *manager.Manager) {
		c := m.Client()
		must(controller.Add(m, controller.Func[*corev1.Secret](func(ctx context.Context, s *corev1.Secret) (controller.Result, error) {
			copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
			return controller.Done(), client.IgnoreAlreadyExists(c.Create(ctx, copied))
		})))
	}, func(m *manager.Manager) {
		for r := range m.Recorder().Follow(context.Background()) { // Records returns those so far
			for _, write := range r.Writes {
				fmt.Println(r.Controller, r.Object.Name, write.Verb, write.Object.Kind, r.Outcome)
			}
			return
		}
	}, exampleSecret("token", "hidden"))
	// Output: secret token create ConfigMap done
}

// A view holds some kinds in another way than the manager: here Secrets without data.
func ExampleManager_View() {
	names := cache.KindOptions{Object: &corev1.Secret{}, Transform: func(obj client.Object) (client.Object, error) {
		if s, ok := obj.(*corev1.Secret); ok {
			s.Data = nil
		}
		return obj, nil
	}}
	sizes := make(chan int, 1)
	run(manager.Options{}, func(m *manager.Manager) {
		slim, err := m.View(names)
		must(err)
		must(controller.Add(slim, controller.Func[*corev1.Secret](func(_ context.Context, s *corev1.Secret) (controller.Result, error) {
			sizes <- len(s.Data)
			return controller.Done(), nil
		})))
	}, func(*manager.Manager) {
		fmt.Println(<-sizes)
	}, exampleSecret("token", "hidden"))
	// Output: 0
}
