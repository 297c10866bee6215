// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/sim/internal/worker"
	"github.com/steer-dev/steer/steertest"
)

// replays is how often TestRunsAreTheSameInEveryProcess makes each run, in each process.
var replays = flag.Int("replays", 2, "how often each run is made, in each process")

// many is how many databases the operator creates, and writes the status of.
const many = 30

// creator creates databases for the one that is named all.
type creator struct{ client.Client }

// Reconcile implements controller.Reconciler.
func (c creator) Reconcile(ctx context.Context, db *v1.Database) (controller.Result, error) {
	if db.Name != "all" {
		return controller.Done(), nil
	}
	for i := range many {
		child := &v1.Database{ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: fmt.Sprint("db-", i)}, Spec: v1.DatabaseSpec{Size: 1}}
		if err := c.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
			return controller.Result{}, err
		}
	}
	return controller.Done(), nil
}

func creates(t *testing.T) {
	scheme, err := client.NewScheme(v1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{
		CRDs: []string{"sim/internal/bugs/config/crd/bases"}, Scheme: scheme, Role: steertest.Administrator,
		Setup: func(_ context.Context, m *manager.Manager) error { return controller.Add(m, creator{m.Client()}) },
	})
	env.Create(&v1.Database{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1.DatabaseSpec{Size: 1}})
	env.Settled()
}

// TestRunsAreTheSameInEveryProcess makes the reference, a crash and another order again and
// again, in processes with one processor and with two: all that passes is the same to the
// byte.
func TestRunsAreTheSameInEveryProcess(t *testing.T) {
	t.Parallel()
	if worker.Serves(t) {
		worker.Serve(t, creates)
	}
	plans := []plan.Plan{{}, {Seed: 7}, {Faults: []plan.Fault{{Type: plan.CrashAfter, At: plan.Write{
		Actor: plan.Operator, Verb: "create", Group: "bugs.example.com", Kind: "Database", Namespace: "default", Name: "db-17", Nth: 1,
	}}}}}
	digests := map[string]uint64{}
	for _, processors := range []int{1, 2} {
		p, err := worker.Start(t.Name(), fmt.Sprint("GOMAXPROCS=", processors))
		if err != nil {
			t.Fatal(err)
		}
		began, writes := time.Now(), 0
		for range *replays {
			for _, run := range plans {
				a, alive, err := p.Run(t.Context(), worker.Request{Plan: run, Stuck: time.Minute})
				if err != nil || !alive || a.Trouble != nil || a.Met != len(run.Faults) {
					t.Fatalf("%s: %v, %+v", run.Name(), err, a.Trouble)
				}
				writes = max(writes, len(a.Writes))
				want, known := digests[run.Name()]
				digests[run.Name()] = a.Digest
				if known && a.Digest != want {
					t.Errorf("%s with %d processors differs: %d steps", run.Name(), processors, a.Steps)
				}
			}
		}
		took := time.Since(began)
		runs := *replays * len(plans)
		t.Logf("%d processors: %d runs of %d writes, %.1f ms each, %.1f ms of CPU", processors, runs, writes,
			took.Seconds()*1000/float64(runs), p.Stop().Seconds()*1000/float64(runs))
	}
	if len(digests) != len(plans) || digests[plans[0].Name()] == digests[plans[1].Name()] {
		t.Errorf("another order is the same run: %v", digests)
	}
}
