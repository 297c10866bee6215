// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/examples/crontab"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

var update = flag.Bool("update", false, "write testdata/walk.txt as the operator does on kube-apiserver")

// TestTheOperatorDoesTheSameOnKubeAPIServer walks a CronTab through its life, on
// Steer and, where STEER_UPSTREAM_BIN has it, on kube-apiserver: what can be seen of
// it is the same, line by line.
func TestTheOperatorDoesTheSameOnKubeAPIServer(t *testing.T) {
	t.Parallel()
	const golden = "testdata/walk.txt"
	for name, start := range map[string]func(*testing.T) *rest.Config{
		"steer": func(t *testing.T) *rest.Config {
			env := steertest.New(t, steertest.Options{})
			env.NeedPlane()
			return env.Config
		},
		"kube-apiserver": func(t *testing.T) *rest.Config { return kubeapiserver.Server(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := walk(t, start(t))
			if *update && name == "kube-apiserver" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// walker takes notes of what it sees.
type walker struct {
	*testing.T
	ctx    context.Context
	client client.Client
	notes  strings.Builder

	mu    sync.Mutex
	ahead time.Duration
	moved chan controller.Request
}

func walk(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w := &walker{T: t, ctx: ctx, moved: make(chan controller.Request)}
	op := crontab.Operator()
	op.Setup = func(_ context.Context, m *manager.Manager) error {
		return (&crontab.Reconciler{Ahead: w.jumped}).Add(m, controller.From(controller.Channel(w.moved)))
	}
	scheme, err := client.NewScheme(op.Scheme...)
	w.must(err)
	w.client, err = client.New(cfg, client.Options{Scheme: scheme, FieldOwner: "user"})
	w.must(err)
	w.apply(generated)
	op.Config = cfg
	ended := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() {
		ended <- steer.Run(running, []string{"--health-probe-bind-address=0", "--zap-log-level=panic"}, op)
	}()

	w.apply(sample)
	w.see("applied", await.Ready[*v1.CronTab])
	w.patch(`{"spec":{"cronSpec":"soon"}}`)
	w.see("a schedule that is none", func(ct *v1.CronTab) bool { return w.has(ct, controller.StalledCondition, "InvalidSchedule") })
	w.patch(`{"spec":{"cronSpec":"0 * * * *"}}`)
	w.see("mended", await.Ready[*v1.CronTab])
	w.due()
	w.see("due", func(ct *v1.CronTab) bool { return len(ct.Status.Active) == 1 })
	job := w.job()
	w.patch(`{"spec":{"replicas":3}}`)
	_, err = await.Object(ctx, w.client, client.ObjectKeyFromObject(&job), func(j *batchv1.Job) bool { return j != nil && *j.Spec.Parallelism == 3 })
	w.must(err)
	w.job()
	w.finish()
	w.see("its job has ended", func(ct *v1.CronTab) bool {
		return len(ct.Status.Active) == 0 && ct.Status.ObservedGeneration == ct.Generation
	})
	w.must(w.client.Delete(ctx, &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "my-new-cron-object"}}))
	_, err = await.Object(ctx, w.client, steertest.Key("default/my-new-cron-object"), await.Gone[*v1.CronTab])
	w.must(err)
	fmt.Fprintln(&w.notes, "gone")
	stop()
	w.must(<-ended)
	return regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`).ReplaceAllString(regexp.MustCompile(`object-\d+`).ReplaceAllString(w.notes.String(), "object-DUE"), "TIME")
}

func (w *walker) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *walker) jumped() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ahead
}

// apply applies manifests; those of a kind that was just defined may have to wait
// until the server serves it.
func (w *walker) apply(path string) {
	w.Helper()
	objects, err := manifest.Read(path)
	w.must(err)
	for {
		if err = manifest.Apply(w.ctx, w.client, "", objects); err == nil {
			return
		}
		select {
		case <-w.ctx.Done():
			w.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *walker) patch(body string) {
	w.Helper()
	ct := &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "my-new-cron-object"}}
	w.must(w.client.Patch(w.ctx, ct, client.RawPatch(types.MergePatchType, []byte(body))))
}

func (w *walker) has(ct *v1.CronTab, condition, reason string) bool {
	return ct != nil && slices.ContainsFunc(ct.Status.Conditions, func(c metav1.Condition) bool { return c.Type == condition && c.Reason == reason })
}

// see waits for a state of the CronTab and notes it.
func (w *walker) see(what string, state func(*v1.CronTab) bool) {
	w.Helper()
	ct, err := await.Object(w.ctx, w.client, steertest.Key("default/my-new-cron-object"), func(ct *v1.CronTab) bool { return ct != nil && state(ct) })
	w.must(err)
	fmt.Fprintf(&w.notes, "%s: generation %d, observed %d, finalizers %v, active %v, last %v\n",
		what, ct.Generation, ct.Status.ObservedGeneration, ct.Finalizers, ct.Status.Active, ct.Status.LastScheduleTime != nil)
	for _, c := range ct.Status.Conditions {
		fmt.Fprintf(&w.notes, "  %s=%s %s at %d: %s\n", c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
}

// due moves the clock to the next due time.
func (w *walker) due() {
	w.Helper()
	next, err := crontab.NextDue("0 * * * *", time.Now().Add(w.jumped()))
	w.must(err)
	w.mu.Lock()
	w.ahead = time.Until(next)
	w.mu.Unlock()
	select {
	case w.moved <- controller.Request{NamespacedName: steertest.Key("default/my-new-cron-object")}:
	case <-w.ctx.Done():
		w.Fatal("the operator does not listen to its clock")
	}
}

// job notes the one Job.
func (w *walker) job() batchv1.Job {
	w.Helper()
	var jobs batchv1.JobList
	w.must(w.client.List(w.ctx, &jobs, client.InNamespace("default")))
	if len(jobs.Items) != 1 {
		w.Fatalf("%d jobs, want one", len(jobs.Items))
	}
	j := jobs.Items[0]
	fmt.Fprintf(&w.notes, "job %s of %s %s, parallelism %d, image %s, restarts %s\n", j.Name, j.OwnerReferences[0].Kind, j.OwnerReferences[0].Name,
		*j.Spec.Parallelism, j.Spec.Template.Spec.Containers[0].Image, j.Spec.Template.Spec.RestartPolicy)
	return j
}

// finish ends the Job as its controller would.
func (w *walker) finish() {
	w.Helper()
	var jobs batchv1.JobList
	w.must(w.client.List(w.ctx, &jobs, client.InNamespace("default")))
	job, now := &jobs.Items[0], metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &job.CreationTimestamp, &now, 1
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	w.must(w.client.Status().Update(w.ctx, job))
}
