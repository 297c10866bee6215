// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Package sim_test measures what package sim costs, beside the same test without it:
//
//	go test -v ./sim -run 'TestCosts/.*/^crash_[^#]*$'   # a crash before, within and after each write
//	go test -v ./sim -run 'TestCosts/crontab'            # all plans
package sim_test

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/examples/crontab"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/internal/journal"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/steertest"
)

// children is how many objects the operator creates; the status of each is a second write.
const children = 30

// crds is the folder with the definition of CronTabs, from this module.
const crds = "../examples/crontab/config/crd/bases"

func named(name string) *v1.CronTab {
	return &v1.CronTab{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       v1.CronTabSpec{CronSpec: "0 0 1 1 *", Image: "example.com/image"},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
			},
		},
	}
}

// creates is a test of an operator that makes 60 writes: it creates objects, custom resources
// or, one for each of those, Deployments.
func creates(o steertest.Options, deployments bool) func(t *testing.T) {
	return func(t *testing.T) {
		setup := func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, controller.Func[*v1.CronTab](func(ctx context.Context, ct *v1.CronTab) (controller.Result, error) {
				controller.SetReady(ct, &ct.Status.Conditions, "Seen", "it is there")
				for i := range children {
					var child client.Object = named(fmt.Sprint("child-", i))
					if deployments {
						child = deployment(ct.Name)
					} else if ct.Name != "all" {
						break
					}
					if err := m.Client().Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
						return controller.Result{}, err
					}
					if deployments {
						break
					}
				}
				return controller.Done(), nil
			}))
		}
		o := o
		o.CRDs, o.Role = []string{crds}, steertest.Administrator
		o.Operator = steer.Operator{Name: "bench", Scheme: steer.Scheme{v1.AddToScheme, appsv1.AddToScheme}, Setup: setup}
		env := steertest.New(t, o)
		if deployments {
			for i := range children {
				env.Create(named(fmt.Sprint("child-", i)))
			}
		} else {
			env.Create(named("all"))
		}
		env.Settled()
	}
}

// schedules lets two Jobs of a CronTab become due.
func schedules(t *testing.T) {
	operator := crontab.Operator()
	operator.Setup = func(_ context.Context, m *manager.Manager) error { return (&crontab.Reconciler{}).Add(m) }
	env := steertest.New(t, steertest.Options{CRDs: []string{crds}, Role: steertest.Administrator, Operator: operator})
	ct := named("tab")
	ct.Spec.CronSpec = "*/5 * * * *"
	env.Create(ct)
	time.Sleep(11 * time.Minute)
	env.Settled()
}

// cpu is the CPU time of this process, or of its children that have ended.
func cpu(t *testing.T, whose int) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(whose, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// alone runs f without a simulation, and returns the CPU time of a run.
func alone(t *testing.T, f func(t *testing.T)) time.Duration {
	t.Helper()
	const first, runs = 5, 40
	var began time.Duration
	for i := range first + runs {
		if i == first {
			began = cpu(t, syscall.RUSAGE_SELF)
		}
		synctest.Test(t, f)
	}
	return (cpu(t, syscall.RUSAGE_SELF) - began) / runs
}

func TestCosts(t *testing.T) { // it measures
	dir := os.Getenv(journal.Variable) // that of the test, in a worker of it
	worker := dir != ""
	if !worker {
		dir = t.TempDir()
		t.Setenv(journal.Variable, dir)
	}
	for name, f := range map[string]func(t *testing.T){
		"custom_resources":      creates(steertest.Options{}, false),
		"deployments":           creates(steertest.Options{}, true),
		"deployments_with_pods": creates(steertest.Options{Workloads: steertest.Workloads()}, true),
		"crontab":               schedules,
	} {
		t.Run(name, func(t *testing.T) {
			measured(t, dir, worker, f)
		})
	}
}

func measured(t *testing.T, dir string, worker bool, f func(t *testing.T)) {
	var without time.Duration
	if !worker {
		without = alone(t, f)
	}
	began, wall := cpu(t, syscall.RUSAGE_CHILDREN), time.Now()
	sim.Test(t, f)
	took := time.Since(wall)
	all, err := journal.All(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		var runs int
		if s.Test != t.Name() {
			continue
		}
		if _, err := fmt.Sscan(s.Summary, &runs); err != nil || runs == 0 {
			t.Fatalf("%q: %v", s.Summary, err)
		}
		each := (cpu(t, syscall.RUSAGE_CHILDREN) - began) / time.Duration(runs)
		t.Logf("%d runs in %.1f s, %.0f a minute: %.1f ms of CPU each, %.1f ms without the engine, ratio %.1f", runs, took.Seconds(),
			float64(runs)/took.Minutes(), each.Seconds()*1000, without.Seconds()*1000, each.Seconds()/without.Seconds())
	}
}
