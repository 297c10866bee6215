// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

func scheme(t testing.TB) *kruntime.Scheme {
	t.Helper()
	s, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestEveryTestHasAControlPlaneOfItsOwn(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			env := steertest.New(t, steertest.Options{Scheme: scheme(t)})
			env.Create(configMap("same-name"))
			var list corev1.ConfigMapList
			if err := env.Client.List(env.Context(), &list, client.InNamespace("default")); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 {
				t.Errorf("%d ConfigMaps, want the own one", len(list.Items))
			}
		})
	}
}

// keeper copies the data of every ConfigMap "source" to "copy".
type keeper struct{ client.Client }

func (k keeper) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	if cm.Name != "source" {
		return controller.Done(), nil
	}
	copied := configMap("copy")
	copied.Namespace, copied.Data = cm.Namespace, cm.Data
	return controller.Done(), k.Apply(ctx, copied, client.FieldOwner("keeper"), client.ForceOwnership)
}

func setup(_ context.Context, m *manager.Manager) error {
	return controller.Add(m, keeper{m.Client()})
}

func TestTheOperatorUnderTestRunsAndIsWaitedFor(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup})
	source := configMap("source")
	source.Data = map[string]string{"a": "1"}
	env.Create(source)
	steertest.Wait(env, "default/copy", func(cm *corev1.ConfigMap) bool { return cm.Data["a"] == "1" })
	if err := env.Client.Delete(env.Context(), configMap("copy")); err != nil {
		t.Fatal(err)
	}
	steertest.WaitGone[*corev1.ConfigMap](env, "default/copy")
}

func TestObjectsAreSeededWithTheirStatus(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Objects: []client.Object{pod}})
	got := steertest.Wait(env, "default/web", func(*corev1.Pod) bool { return true })
	if got.Status.Phase != corev1.PodRunning {
		t.Errorf("phase %q, want Running", got.Status.Phase)
	}
}

func TestObjectsAreSeededOnTheirWayOut(t *testing.T) {
	t.Parallel()
	leaving := configMap("leaving")
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"example.com/hold"}, &metav1.Time{Time: time.Now()}
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Objects: []client.Object{leaving}})
	got := steertest.Wait(env, "default/leaving", func(*corev1.ConfigMap) bool { return true })
	if got.DeletionTimestamp == nil || got.Finalizers[0] != "example.com/hold" || leaving.ResourceVersion != got.ResourceVersion {
		t.Errorf("%+v", got.ObjectMeta)
	}
	message := fails(t, func(tb testing.TB) {
		leaving := configMap("leaving")
		leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		steertest.New(tb, steertest.Options{Scheme: scheme(t), Objects: []client.Object{leaving}})
	})
	if !strings.Contains(message, "add a finalizer") {
		t.Errorf("message: %s", message)
	}
}

// TestForkedPlanesHaveNothingInCommon would find objects of one test in another.
func TestForkedPlanesHaveNothingInCommon(t *testing.T) {
	t.Parallel()
	options := steertest.Options{Scheme: scheme(t), CRDs: []string{"examples/crontab/config/crd/bases"}}
	one, two := steertest.New(t, options), steertest.New(t, options)
	one.Create(configMap("a"))
	if err := two.Client.Get(two.Context(), steertest.Key("default/a"), configMap("")); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
	before, after := configMap("b"), configMap("b")
	one.Create(before)
	two.Create(after)
	if before.UID == after.UID {
		t.Error("two planes give the same UIDs")
	}
}

func TestOthersMayDoNothingUnlessTheyAreAllowedTo(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t)})
	if err := env.AsUser("eve").Create(env.Context(), configMap("a")); !apierrors.IsForbidden(err) {
		t.Errorf("eve creates: %v", err)
	}
	if err := env.AsUser("admin", "system:masters").Create(env.Context(), configMap("a")); err != nil {
		t.Errorf("a master creates: %v", err)
	}
}

func TestWorkloadsRunWhenAskedFor(t *testing.T) {
	t.Parallel()
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		}
	}
	env := steertest.New(t, steertest.Options{
		Scheme: scheme(t), Objects: []client.Object{pod("good"), pod("bad")},
		Workloads: steertest.Workloads(workloads.Outcome{Selector: "app=bad", Fate: workloads.Unschedulable}),
	})
	env.Settled()
	phase := func(p *corev1.Pod) corev1.PodPhase { return p.Status.Phase }
	steertest.Expect[*corev1.Pod](env, "default/good", steertest.Ready, steertest.Field(phase, corev1.PodRunning))
	steertest.Expect[*corev1.Pod](env, "default/bad", steertest.Field(phase, corev1.PodPending),
		steertest.Condition("PodScheduled", metav1.ConditionFalse, "Unschedulable"))
}

func TestItRunsInABubbleOfVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup})
		began := time.Now()
		source := configMap("source")
		env.Create(source)
		steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s of virtual time went by", took)
		}
	})
}

// failing is a test that records why it fails.
type failing struct {
	testing.TB
	mu      sync.Mutex
	message string
	logs    string
	clean   []func()
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *failing) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.message += fmt.Sprintf(format, args...) + "\n"
}

func (f *failing) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.message != ""
}

func (f *failing) Log(args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs += fmt.Sprintln(args...)
}

func (f *failing) Logf(format string, args ...any) { f.Log(fmt.Sprintf(format, args...)) }

func (f *failing) Cleanup(fn func()) { f.clean = append(f.clean, fn) }

// fails runs a test body that is to fail, and returns its messages.
func fails(t *testing.T, body func(tb testing.TB)) string {
	t.Helper()
	message, _ := failsWith(t, body)
	return message
}

// failsWith returns what it logged as well.
func failsWith(t *testing.T, body func(tb testing.TB)) (message, logs string) {
	t.Helper()
	if message, logs = outputOf(t, body); message == "" {
		t.Fatal("the body did not fail")
	}
	return message, logs
}

// outputOf runs a test body, and returns its failures and what it logged.
func outputOf(t *testing.T, body func(tb testing.TB)) (message, logs string) {
	t.Helper()
	f := &failing{TB: t}
	var wait sync.WaitGroup
	wait.Go(func() {
		defer func() {
			for i := range f.clean {
				f.clean[len(f.clean)-1-i]()
			}
		}()
		body(f)
	})
	wait.Wait()
	return f.message, f.logs
}

func TestAMissingPathFailsTheTest(t *testing.T) {
	t.Parallel()
	got := fails(t, func(tb testing.TB) { steertest.New(tb, steertest.Options{CRDs: []string{"no/such/folder"}}) })
	for _, want := range []string{"no/such/folder", "its parents up to", "steer generate"} {
		if !strings.Contains(got, want) {
			t.Errorf("message without %q: %s", want, got)
		}
	}
}

func TestPathsAreLookedForUpToTheModule(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), CRDs: []string{"examples/crontab/config/crd/bases"}})
	env.Apply("examples/crontab/config/samples/crontab.yaml")
}

func TestARefusedManifestNamesItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Upper}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := fails(t, func(tb testing.TB) {
		steertest.New(tb, steertest.Options{}).Apply(file)
	})
	if !strings.Contains(got, file) || !strings.Contains(got, "Upper") {
		t.Errorf("message: %s", got)
	}
}

func TestAWaitInVainShowsTheLastState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Timeout: time.Second})
			cm := configMap("a")
			cm.Data = map[string]string{"colour": "red"}
			env.Create(cm)
			steertest.Wait(env, "default/a", func(cm *corev1.ConfigMap) bool { return cm.Data["colour"] == "blue" })
		})
		if !strings.Contains(got, `"colour": "red"`) {
			t.Errorf("message: %s", got)
		}
		got = fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Timeout: time.Second})
			steertest.Wait(env, "default/none", func(*corev1.ConfigMap) bool { return true })
		})
		if !strings.Contains(got, "it does not exist") {
			t.Errorf("message: %s", got)
		}
	})
}

func TestAnExpectationWithoutMatchersSaysWhatItWants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		got := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Timeout: time.Nanosecond})
			<-ended.Done()
			steertest.Expect[*corev1.ConfigMap](env, "default/none")
		})
		if strings.Contains(got, "<nil>") || !strings.Contains(got, "want a v1.ConfigMap default/none") {
			t.Errorf("message: %s", got)
		}
	})
}

func TestAWaitNamesAnObjectInNoNamespaceByItsNameAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Timeout: time.Second})
			steertest.Wait(env, "acme", func(*corev1.Namespace) bool { return false })
		})
		if !strings.Contains(got, "wait for Namespace acme: ") {
			t.Errorf("message: %s", got)
		}
	})
}

func TestAWaitInVainSaysWhatBlocksDownToThePod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := fails(t, func(tb testing.TB) {
			scheme, err := client.NewScheme(appsv1.AddToScheme, corev1.AddToScheme)
			if err != nil {
				tb.Fatal(err)
			}
			env := steertest.New(tb, steertest.Options{
				Scheme: scheme, Timeout: time.Minute, Workloads: steertest.Workloads(workloads.Outcome{Selector: "app=db", Fate: workloads.CrashLoop}),
			})
			source, labels := configMap("source"), map[string]string{"app": "db"}
			env.Create(source)
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
				ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}},
			}}
			if err := controller.SetOwner(source, corev1.SchemeGroupVersion.WithKind("ConfigMap"), set); err != nil {
				tb.Fatal(err)
			}
			env.Create(set)
			steertest.Wait(env, "source", func(c *corev1.ConfigMap) bool { return c.Data["ready"] == "yes" })
		})
		if want := "\nnot ready: StatefulSet db: 0 of 1 ready, Pod db-0: CrashLoopBackOff"; !strings.Contains(got, want) {
			t.Errorf("message without %q: %s", want, got)
		}
	})
}

func TestEqualFailuresAreOneLineOfAFailedTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, logs := failsWith(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{
				Scheme: scheme(t), Role: steertest.Administrator, Timeout: time.Minute,
				Setup: func(_ context.Context, m *manager.Manager) error {
					return controller.Add(m, controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
						return controller.Result{}, errors.New("the bucket is full")
					}))
				},
			})
			env.Create(configMap("a"))
			steertest.Expect[*corev1.ConfigMap](env, "default/b")
		})
		_, shown, found := strings.Cut(logs, "reconciles:")
		if n := strings.Count(shown, "-> failed"); !found || n != 1 || !strings.Contains(shown, " times)") {
			t.Errorf("%d records of failures are shown:\n%s", n, shown)
		}
	})
}

func TestAnExpectationInVainSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Timeout: time.Second})
			cm := configMap("a")
			cm.Data = map[string]string{"colour": "red"}
			env.Create(cm)
			steertest.Expect[*corev1.ConfigMap](env, "default/a", steertest.Ready, steertest.Condition("Stalled", ""),
				steertest.Field(func(cm *corev1.ConfigMap) string { return cm.Data["colour"] }, "blue"))
		})
		const want = "steertest: default/a is not as expected:\n  condition Ready: want True, it is absent\n  want blue, got red\n"
		if !strings.HasPrefix(got, want) || !strings.Contains(got, `"colour": "red"`) {
			t.Errorf("message: %s", got)
		}
	})
}
