// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/sim/internal/gate"
	"github.com/steer-dev/steer/steertest"
)

// minute runs an operator of four workers for a virtual minute, with a user who changes
// things and deletes one, and the built-in controllers. It returns the gate that all passed.
func minute(t *testing.T, seed uint64, choose gate.Chooser) (passed *gate.Gate) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const apps, theirs = 5, 2 + 1 + 3 + 2
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		env := steertest.New(t, steertest.Options{
			Scheme: scheme, Plane: controlplane.Options{Entropy: apiserver.SeededEntropy(seed), ManualControllers: true},
		})
		var steppers []gate.Stepper
		for _, name := range env.Plane.Controllers() {
			steppers = append(steppers, gate.Stepper{Name: name, Step: func(ctx context.Context) (int, error) { return env.Plane.StepController(ctx, name) }})
		}
		passed = gate.New(choose, steppers...)
		through := func(actor string) *rest.Config {
			cfg := rest.CopyConfig(env.Config)
			cfg.Transport = passed.Transport(actor, env.Config.Transport)
			return cfg
		}
		// The user's requests pass it as well: else they run beside the operator's.
		user, err := client.New(through("user"), client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		m, err := manager.New(through("operator"), manager.Options{
			Name: "operator", Instance: "one", Scheme: scheme, Log: slog.New(slog.DiscardHandler), Seed: seed,
			Election: manager.Election{Enabled: true, Namespace: "default"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := controller.Add(m, parts{}, controller.Concurrency(4), controller.Owns[*corev1.ConfigMap]()); err != nil {
			t.Fatal(err)
		}
		turning, shut := context.WithCancel(t.Context())
		turned := make(chan error, 1)
		go func() { turned <- passed.Run(turning) }()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		<-m.Elected()
		for i := range apps {
			app := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("app-", i)}}
			app.Labels = map[string]string{"parts": fmt.Sprint(1 + i%3)}
			app.Namespace = env.Namespace
			if err := user.Create(ctx, app); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		for i := range apps {
			var app corev1.ConfigMap
			if err := user.Get(ctx, steertest.Key(fmt.Sprint("default/app-", i)), &app); err != nil {
				t.Fatal(err)
			}
			app.Labels["parts"] = fmt.Sprint(3 - i%3)
			if err := user.Update(ctx, &app); err != nil {
				t.Fatal(err)
			}
		}
		if err := user.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace, Name: "app-0"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(41 * time.Second) // an odd number: the end must not meet a renewal of the lease
		var all corev1.ConfigMapList
		if err := user.List(ctx, &all); err != nil {
			t.Fatal(err)
		}
		if got := len(all.Items); got != apps-1+theirs {
			t.Errorf("it did not converge: %d ConfigMaps, want %d", got, apps-1+theirs)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		shut()
		if err := <-turned; err != nil {
			t.Error(err)
		}
	})
	return passed
}

// parts gives every app the parts that it asks for, tells users, and comes back.
type parts struct {
	children controller.Children[*corev1.ConfigMap]
}

// Reconcile implements controller.Reconciler.
func (p parts) Reconcile(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
	if app.Labels["parts"] == "" {
		return controller.Done(), nil // not an app
	}
	n, err := strconv.Atoi(app.Labels["parts"])
	if err != nil {
		return controller.Result{}, err
	}
	var desired []*corev1.ConfigMap
	for i := range n {
		desired = append(desired, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("part-", i, "-of-", app.Name)}})
	}
	if err := p.children.Apply(ctx, app, desired); err != nil {
		return controller.Result{}, err
	}
	controller.Emit(ctx, controller.UserEvent{Reason: "Applied", Note: fmt.Sprint(n, " parts")})
	return controller.After(15 * time.Second), nil
}

// differ tells where two logs differ first; "" if nowhere.
func differ(want, got []string) string {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			from := max(i-5, 0)
			return fmt.Sprintf("they differ at %d; one:\n\t%s\nthe other:\n\t%s", i,
				strings.Join(want[min(from, len(want)):min(i+5, len(want))], "\n\t"), strings.Join(got[min(from, len(got)):min(i+5, len(got))], "\n\t"))
		}
	}
	return ""
}

// TestSameChoicesMakeTheSameRun runs the same minute again and again: everything that
// passes, its moment and its bytes are the same.
func TestSameChoicesMakeTheSameRun(t *testing.T) {
	t.Parallel()
	runs := 50
	if testing.Short() || raceDetector {
		runs = 3
	}
	want := minute(t, 1, gate.First).Log()
	for _, part := range []string{"PUT", "/leases/", "fieldManager=configmap", "/events", "DELETE", "40s", "watch=true", "garbage-collector-controller: "} {
		if !slices.ContainsFunc(want, func(line string) bool { return strings.Contains(line, part) }) {
			t.Errorf("nothing with %q: the test proves little", part)
		}
	}
	t.Logf("%d have passed", len(want))
	for run := range runs - 1 {
		if trouble := differ(want, minute(t, 1, gate.First).Log()); trouble != "" {
			t.Fatalf("run %d: %s", run+2, trouble)
		}
	}
	if slices.Equal(want, minute(t, 2, gate.First).Log()) {
		t.Error("another seed of the control plane makes the same run: the test proves nothing")
	}
}

// TestOtherChoicesMakeAnotherRunThatConverges also makes the choices of a run again.
func TestOtherChoicesMakeAnotherRunThatConverges(t *testing.T) {
	t.Parallel()
	runs := uint64(20)
	if testing.Short() || raceDetector {
		runs = 3
	}
	seen := map[string]uint64{}
	for seed := range runs {
		run := minute(t, 1, gate.Seeded(seed))
		log := strings.Join(run.Log(), "\n")
		if other, again := seen[log]; again {
			t.Errorf("the seeds %d and %d make the same run", other, seed)
		}
		seen[log] = seed
		if seed%5 > 0 {
			continue
		}
		if trouble := differ(run.Log(), minute(t, 1, gate.Replay(run.Choices())).Log()); trouble != "" {
			t.Errorf("the choices of seed %d, made again: %s", seed, trouble)
		}
	}
}
