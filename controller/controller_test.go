// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheKindIsInferredAndItsObjectsAreReconciled(t *testing.T) {
	t.Parallel()
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		if w.Kind != "Web" || controller.ReconcileID(ctx).IsZero() {
			t.Errorf("%v in reconcile %v", w.TypeMeta, controller.ReconcileID(ctx))
		}
		w.Status.Ready = w.Spec.Replicas
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		if got := m.web(t, "a").Status; got.Ready != 1 || got.ObservedGeneration != 1 {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff([]string{"patch Web/status a"}, m.log()); diff != "" {
			t.Error(diff)
		}
		r := m.records()
		if len(r) != 1 {
			t.Fatalf("%d reconciles, not 1", len(r))
		}
		got := fmt.Sprint(r[0].Controller, r[0].Object, r[0].Causes, r[0].Reads, r[0].Writes, r[0].Outcome)
		want := "webWeb default/a [created Web default/a@1] [get Web default/a@1] [patch Web/status default/a@2] done"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		m.update(t, "a", func(w *Web) { w.Spec.Replicas = 2 })
		synctest.Wait()
		if got := m.records()[1].Causes[0].String(); got != "updated Web default/a@3 (spec.replicas)" {
			t.Error(got)
		}
	})
}

func TestRequestReconcilersTakeAnyComparableType(t *testing.T) {
	t.Parallel()
	type shard struct{ n int }
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		signals := make(chan shard)
		polls := 0
		var got []shard
		err := controller.AddRequests(m, "shards", controller.Func[shard](func(ctx context.Context, s shard) (controller.Result, error) {
			got = append(got, s)
			return controller.Result{}, nil
		}), controller.Typed(
			controller.From(controller.Channel(signals)),
			controller.From(controller.Poll(time.Minute, func(context.Context) ([]shard, error) {
				polls++
				if polls == 2 {
					return nil, errors.New("the other side is down")
				}
				return []shard{{100 + polls}}, nil
			})),
			controller.Watches(controller.Map(func(_ context.Context, c *corev1.ConfigMap) []shard { return []shard{{len(c.Data)}} }))))
		if err != nil {
			t.Fatal(err)
		}
		m.start(t)
		signals <- shard{1}
		synctest.Wait()
		m.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "y"}, Data: map[string]string{"a": "", "b": ""}})
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		m.end()
		if diff := cmp.Diff([]shard{{101}, {1}, {2}, {103}}, got, cmp.AllowUnexported(shard{})); diff != "" {
			t.Error(diff)
		}
		if text := strings.Join(m.lines.all(), ""); !strings.Contains(text, "the other side is down") || !strings.Contains(text, "controller=shards") {
			t.Error(text)
		}
		var causes []string
		for _, r := range m.records() {
			causes = append(causes, r.Causes[0].Type.String()+r.Request)
		}
		if diff := cmp.Diff([]string{"polled{101}", "signalled{1}", "created{2}", "polled{103}"}, causes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestResultsDecideWhenToComeBack(t *testing.T) {
	t.Parallel()
	var at []time.Duration
	var start time.Time
	results := []controller.Result{controller.After(time.Hour), controller.Retry(), controller.Retry(), controller.Wait()}
	run(t, func(context.Context, *Web) (controller.Result, error) {
		at = append(at, time.Since(start))
		result := results[0]
		results = results[1:]
		return result, nil
	}, func(t *testing.T, m *fake) {
		start = time.Now()
		m.create(t, web("a"))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{0, time.Hour, time.Hour + time.Second, time.Hour + 3*time.Second}, at); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"requeued", "again", "again", "done"}, m.outcomes()); diff != "" {
			t.Error(diff)
		}
	}, controller.RateLimit(time.Second, time.Minute))
}

// TestAStepThatTakesItsTimeIsNotCutShortByEvents is a rollout whose step ends at a time.
func TestAStepThatTakesItsTimeIsNotCutShortByEvents(t *testing.T) {
	t.Parallel()
	var at []time.Duration
	var start time.Time
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		at = append(at, time.Since(start))
		if end := start.Add(time.Hour); time.Now().Before(end) {
			return controller.WaitUntil(end), nil
		}
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		start = time.Now()
		m.create(t, web("a"))
		time.Sleep(20 * time.Minute)
		m.update(t, "a", func(w *Web) { w.Labels = map[string]string{"x": "y"} })
		synctest.Wait()
		if got := m.web(t, "a").Status.ObservedGeneration; got != 0 {
			t.Errorf("the generation %d is observed within the step", got)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{0, 20 * time.Minute, time.Hour}, at); diff != "" {
			t.Error(diff)
		}
		if got := m.web(t, "a").Status.ObservedGeneration; got != 1 {
			t.Errorf("the generation %d is observed after the step", got)
		}
		if result := controller.WaitUntil(start); result != controller.WaitUntil(start) {
			t.Error("results of one time differ")
		} else if d, ok := result.Delay(); d != 0 || !ok {
			t.Errorf("a time that is past is waited for: %v", d)
		}
	})
}

// TestErrorsAreLoggedAsOperatorsReadThem in JSON, of an object in no namespace.
func TestErrorsAreLoggedAsOperatorsReadThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		m.slog = slog.New(slog.NewJSONHandler(m.lines, nil))
		err := controller.Add(m, controller.Func[*corev1.Node](func(_ context.Context, n *corev1.Node) (controller.Result, error) {
			n.Labels = map[string]string{"a": "b"}
			return controller.Done(), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		m.start(t)
		defer m.end()
		m.create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
		synctest.Wait()
		text := strings.Join(m.lines.all(), "")
		for _, want := range []string{`"retryIn":"5ms"`, "of Node acme was changed in place"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing in %s", want, text)
			}
		}
	})
}

func TestErrorsAreRetriedUntilGivenUp(t *testing.T) {
	t.Parallel()
	run(t, func(context.Context, *Web) (controller.Result, error) {
		return controller.Done(), errors.New("no luck")
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"failed", "failed", "gaveup"}, m.outcomes()); diff != "" {
			t.Error(diff)
		}
		if last := m.records()[2]; last.Retries != 2 || last.Error != "no luck" || last.Causes[0].Type != trace.Retried {
			t.Errorf("%+v", last)
		}
		line := m.lines.all()[1]
		for _, want := range []string{"level=ERROR", "Reconciler error", "controller=web", "controllerGroup=example.com", "controllerKind=Web", "Web.namespace=default", "Web.name=a", "namespace=default", "name=a", "reconcileID=", "no luck"} {
			if !strings.Contains(line, want) {
				t.Errorf("%q is missing in %s", want, line)
			}
		}
	}, controller.MaxRetries(2))
}

func TestLogrAndKlogFindTheLogOfTheReconcile(t *testing.T) {
	t.Parallel()
	run(t, func(ctx context.Context, _ *Web) (controller.Result, error) {
		log, err := logr.FromContext(ctx)
		if err != nil {
			t.Error(err)
		}
		log.WithName("deep").Info("by logr", "answer", 42)
		klog.FromContext(ctx).Info("by klog")
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		for _, message := range []string{`"by logr"`, `"by klog"`} {
			i := slices.IndexFunc(m.lines.all(), func(line string) bool { return strings.Contains(line, message) })
			if i < 0 || !strings.Contains(m.lines.all()[i], "reconcileID=") || !strings.Contains(m.lines.all()[i], "controller=web") {
				t.Errorf("%s: %v", message, m.lines.all())
			}
		}
	})
}

func TestTerminalErrorsWaitForAChange(t *testing.T) {
	t.Parallel()
	run(t, func(context.Context, *Web) (controller.Result, error) {
		return controller.Done(), controller.Terminal(errors.New("the spec is wrong"))
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		m.update(t, "a", func(w *Web) { w.Spec.Replicas++ })
		synctest.Wait()
		if diff := cmp.Diff([]string{"terminal", "terminal"}, m.outcomes()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAPanicIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	n := 0
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		if n++; n == 1 {
			panic("at the disco")
		}
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"panicked", "done"}, m.outcomes()[:2]); diff != "" {
			t.Error(diff)
		}
		if text := strings.Join(m.lines.all(), ""); !strings.Contains(text, "at the disco") || !strings.Contains(text, "controller_test.go") {
			t.Error(text)
		}
	})
}

func TestConflictsAreRetriedQuietly(t *testing.T) {
	t.Parallel()
	n := 0
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		if n++; n == 1 {
			return controller.Done(), fmt.Errorf("mine: %w", conflict(w.GroupVersionKind(), types.NamespacedName{Name: "other"}))
		}
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := m.outcomes(); got[0] != "conflicted" || got[1] != "done" {
			t.Error(got)
		}
		for _, line := range m.lines.all() {
			if strings.Contains(line, "level=ERROR") || strings.Contains(line, "level=WARN") {
				t.Error(line)
			}
		}
	})
}

func TestTheTimeoutEndsTheContextAndCounts(t *testing.T) {
	t.Parallel()
	n := 0
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		if n++; n > 1 {
			return controller.Done(), nil
		}
		<-ctx.Done()
		w.Status.Note = "too slow"
		return controller.Done(), ctx.Err()
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if got := m.outcomes(); got[0] != "timedout" {
			t.Error(got)
		}
		if got := m.web(t, "a").Status.Note; got != "too slow" {
			t.Errorf("the status of the attempt was not written: %q", got)
		}
	}, controller.Timeout(time.Minute))
}

func TestOwnersAreRequestedByTheirChildren(t *testing.T) {
	t.Parallel()
	yes := true
	child := func(name string, owner client.Object, kind string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "example.com/v1beta1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes},
		}}}
	}
	run(t, func(context.Context, *Web) (controller.Result, error) { return controller.Wait(), nil },
		func(t *testing.T, m *fake) {
			a, b := web("a"), web("b")
			m.create(t, a, b)
			synctest.Wait()
			n := len(m.records())
			m.create(t, child("one", a, "Web"), child("two", a, "Other"), child("three", b, "Web"))
			synctest.Wait()
			var got []string
			for _, r := range m.records()[n:] {
				got = append(got, r.Name+": "+r.Causes[0].String())
			}
			if diff := cmp.Diff([]string{"a: created ConfigMap default/one@3", "b: created ConfigMap default/three@5"}, got); diff != "" {
				t.Error(diff)
			}
		}, controller.Owns[*corev1.ConfigMap]())
}

func TestPredicatesDropEvents(t *testing.T) {
	t.Parallel()
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		w.Status.Ready = w.Spec.Replicas
		return controller.Done(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		m.update(t, "a", func(w *Web) { w.Labels = map[string]string{"x": "y"} })
		synctest.Wait()
		m.update(t, "a", func(w *Web) { w.Spec.Replicas = 2 })
		synctest.Wait()
		if got := m.outcomes(); len(got) != 2 {
			t.Errorf("%d reconciles, not 2", len(got))
		}
	}, controller.Where(controller.GenerationChanged[*Web]))
}

func TestObjectsThatAreNoMoreAreTold(t *testing.T) {
	t.Parallel()
	var gone []controller.Request
	run(t, func(context.Context, *Web) (controller.Result, error) { return controller.Wait(), nil },
		func(t *testing.T, m *fake) {
			w := web("a")
			m.create(t, w)
			synctest.Wait()
			if err := m.Delete(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if diff := cmp.Diff([]controller.Request{controller.RequestFor(w)}, gone); diff != "" {
				t.Error(diff)
			}
		}, controller.OnGone(func(_ context.Context, req controller.Request) error {
			gone = append(gone, req)
			return nil
		}))
}

func TestWorkersRunAtOnceButNeverForOneObject(t *testing.T) {
	t.Parallel()
	var at, most atomic.Int32
	busy := map[string]*atomic.Int32{"a": {}, "b": {}, "c": {}}
	run(t, func(_ context.Context, w *Web) (controller.Result, error) {
		if busy[w.Name].Add(1) != 1 {
			t.Errorf("%s is reconciled twice at once", w.Name)
		}
		if n := at.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(time.Second)
		at.Add(-1)
		busy[w.Name].Add(-1)
		return controller.Wait(), nil
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"), web("b"), web("c"))
		for range 10 {
			time.Sleep(300 * time.Millisecond)
			m.update(t, "a", func(w *Web) { w.Spec.Replicas++ })
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most.Load() != 3 {
			t.Errorf("at most %d at once, not 3", most.Load())
		}
	}, controller.Concurrency(3))
}

func TestStoppingEndsARunningReconcile(t *testing.T) {
	t.Parallel()
	run(t, func(ctx context.Context, w *Web) (controller.Result, error) {
		<-ctx.Done()
		w.Status.Note = "never written"
		return controller.Done(), ctx.Err()
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		synctest.Wait()
		m.end()
		if diff := cmp.Diff([]string{"stopped"}, m.outcomes()); diff != "" || len(m.log()) != 0 {
			t.Error(diff, m.log())
		}
	})
}

func TestAddRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	objects := controller.Func[*Web](func(context.Context, *Web) (controller.Result, error) { return controller.Done(), nil })
	requests := func(name string, sources ...controller.TypedOption[controller.Request]) error {
		return controller.AddRequests(newFake(), name, controller.Func[controller.Request](func(context.Context, controller.Request) (controller.Result, error) { return controller.Done(), nil }), sources)
	}
	cleanup := func(context.Context, *Web) (controller.FinalizerResult, error) { return controller.Finalized(), nil }
	unknown := controller.Func[*corev1.Pod](func(context.Context, *corev1.Pod) (controller.Result, error) { return controller.Done(), nil })
	add := func(options ...controller.Option) error { return controller.Add(newFake(), objects, options...) }
	for want, err := range map[string]error{
		"needs a name like example.com/cleanup":              add(controller.Finalizer("cleanup", cleanup)),
		"is there twice":                                     add(controller.Finalizer("example.com/a", cleanup), controller.Finalizer("example.com/a", cleanup)),
		"in use and retired":                                 add(controller.Finalizer("example.com/a", cleanup), controller.RetiredFinalizer("example.com/a")),
		"takes a *v1.ConfigMap, but Reconcile a":             add(controller.Where(controller.LabelsChanged[*corev1.ConfigMap])),
		"takes a *v1.Secret, which Reconcile does not":       add(controller.References[*corev1.ConfigMap](func(*corev1.Secret) []client.ObjectKey { return nil })),
		"call with its scheme: corev1.AddToScheme // import": controller.Add(newFake(), unknown),
		"give AddRequests a name":                            requests("", controller.Watches(controller.Self[*Web]())),
		"nothing would ever request":                         requests("x"),
		"is an object and no request":                        controller.AddRequests(newFake(), "x", objects, nil),
		"contradicts":                                        add(controller.OfKind(metav1.SchemeGroupVersion.WithKind("Other"))),
		"does not say which kind is meant: use Owns":         add(controller.Owns[*metav1.PartialObjectMetadata]()),
		"want retries per second above 0":                    add(controller.RetryRate(0, 5)),
		"exclude each other":                                 add(controller.RetryRate(1, 5), controller.RateLimiter(queue.Bucket[controller.Request](1, 1))),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestTwoControllersOnOneKindShareTheStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		half := func(condition string) controller.Func[*Web] {
			return func(ctx context.Context, w *Web) (controller.Result, error) {
				time.Sleep(time.Second) // both have read the same revision
				controller.SetCondition(w, &w.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Fine"})
				return controller.Wait(), nil
			}
		}
		for _, name := range []string{"one", "two"} {
			if err := controller.Add(m, half(name), controller.Name(name)); err != nil {
				t.Fatal(err)
			}
		}
		m.start(t)
		defer m.end()
		m.create(t, web("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		var types []string
		for _, c := range m.web(t, "a").Status.Conditions {
			types = append(types, c.Type)
		}
		slices.Sort(types)
		if diff := cmp.Diff([]string{"one", "two"}, types); diff != "" {
			t.Error(diff)
		}
		for _, o := range m.outcomes() {
			if o != "done" {
				t.Errorf("an attempt ended as %s", o)
			}
		}
	})
}
