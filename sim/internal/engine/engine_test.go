// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/sim/internal/engine"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/steertest"
)

// pair gives every ConfigMap with a label two Secrets. The first stands for both: that is
// its fault.
type pair struct{ client.Client }

// Reconcile implements controller.Reconciler.
func (p pair) Reconcile(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
	if app.Labels["pair"] == "" {
		return controller.Done(), nil
	}
	err := p.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: app.Name}, &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		return controller.Result{}, err
	}
	for _, name := range []string{app.Name, app.Name + "-ssl"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: name}}
		if err := p.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return controller.Result{}, err
		}
	}
	return controller.Done(), nil
}

func pairOf(t *testing.T) {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{
		Scheme: scheme, Role: steertest.Administrator,
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, pair{m.Client()}, controller.Owns[*corev1.Secret]())
		},
	})
	env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db", Labels: map[string]string{"pair": "yes"}}})
	env.Settled()
}

// run runs the test of the pair in this process.
func run(t *testing.T, p plan.Plan) engine.Record {
	t.Helper()
	r := engine.Run(t, pairOf, p, engine.Limits{Log: true})
	if r.Trouble != nil {
		t.Fatalf("%s: %s: %s", p.Name(), r.Trouble.Type, r.Trouble.Message)
	}
	return r
}

func secrets(r engine.Record) (names []string) {
	for _, l := range r.Lives {
		if l.Object.GetKind() == "Secret" && l.Deleted == 0 {
			names = append(names, l.Object.GetName())
		}
	}
	return names
}

func TestRunNamesTheWritesOfTheOperator(t *testing.T) {
	t.Parallel()
	r := run(t, plan.Plan{})
	var names []string
	for _, w := range r.Writes {
		names = append(names, fmt.Sprint(w.Write, " ", w.Effective, " ", w.Status))
	}
	want := []string{
		"user: create ConfigMap default/db true 201",
		"create Secret default/db true 201",
		"create Secret default/db-ssl true 201",
	}
	if !slices.Equal(names, want) {
		t.Errorf("writes:\n%s", strings.Join(names, "\n"))
	}
	if got := secrets(r); !slices.Equal(got, []string{"db", "db-ssl"}) {
		t.Errorf("secrets: %v", got)
	}
	if again := run(t, plan.Plan{}); again.Digest != r.Digest {
		t.Errorf("another run differs: %d of %d steps", again.Steps, r.Steps)
	}
}

// TestRunFollowsEveryPlan makes all plans of the reference, each of which happens.
func TestRunFollowsEveryPlan(t *testing.T) {
	t.Parallel()
	reference := run(t, plan.Plan{})
	var seen []plan.Seen
	for _, w := range reference.Writes {
		seen = append(seen, w.Seen)
	}
	plans := append(plan.Enumerate(seen), plan.Orders(3)...)
	var lost []string
	for _, p := range plans {
		r := run(t, p)
		if last := len(p.Faults) - 1; last > 0 && r.Met == last {
			p.Faults = p.Faults[:last] // the restart has nothing to write
		}
		if r.Met != len(p.Faults) {
			t.Errorf("%s: %d of %d faults happened", p.Name(), r.Met, len(p.Faults))
		}
		crashes := 0
		for _, f := range p.Faults {
			if f.Type.Crashes() {
				crashes++
			}
		}
		if r.Starts != crashes+1 {
			t.Errorf("%s: %d starts", p.Name(), r.Starts)
		}
		if got := secrets(r); !slices.Equal(got, []string{"db", "db-ssl"}) {
			lost = append(lost, p.Name())
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
	if len(plans) != 21 {
		t.Errorf("%d plans", len(plans))
	}
	t.Logf("lost a Secret: %s", strings.Join(lost, " "))
	want := strings.Fields("crash_after_create_Secret_db 500_on_create_Secret_db-ssl")
	for _, name := range want {
		if !slices.Contains(lost, name) {
			t.Errorf("%s loses no Secret", name)
		}
	}
	if slices.Contains(lost, "crash_before_create_Secret_db") {
		t.Error("nothing was written before that crash")
	}
}
