// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/webhook"
)

var update = flag.Bool("update", false, "write what is printed to testdata/mistakes")

// typed is an operator with one of the mistakes that are made when typing one. The others
// of the twenty are found before anything runs: see cmd/steer/internal/inspect.
type typed struct {
	client.Client
	reconcile func(ctx context.Context, r *typed, cm *corev1.ConfigMap) error
	clean     func(ctx context.Context, cm *corev1.ConfigMap) (controller.FinalizerResult, error)
	also      func(m *manager.Manager) error
}

func (r *typed) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	if r.reconcile == nil {
		return controller.Done(), nil
	}
	return controller.Done(), r.reconcile(ctx, r, cm)
}

func (r *typed) Setup(_ context.Context, m *manager.Manager) error {
	r.Client = m.Client()
	if r.also != nil {
		if err := r.also(m); err != nil {
			return err
		}
	}
	if r.clean != nil {
		return controller.Add(m, r, controller.Finalizer("example.com/cleanup", r.clean))
	}
	return controller.Add(m, r)
}

func (r *typed) operator() steer.Operator {
	return steer.Operator{Name: "typed", Scheme: steer.Scheme{corev1.AddToScheme}, Setup: r.Setup}
}

// expectsLabel is the first test that a developer writes: the operator labels its object.
func (r *typed) expectsLabel(tb testing.TB, o steertest.Options) {
	o.Operator, o.Timeout, o.Role = r.operator(), 10*time.Second, steertest.Administrator
	env := steertest.New(tb, o)
	env.Settled() // it has started
	env.Create(configMap("a"))
	steertest.Wait(env, "default/a", func(cm *corev1.ConfigMap) bool { return cm.Labels["done"] != "" })
}

// labels is a defaulter that is not idempotent.
type labels struct{}

func (labels) Default(_ context.Context, cm *corev1.ConfigMap) error {
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data["name"] += "-x"
	return nil
}

// mistakesOfTests are found by the first test.
func mistakesOfTests() map[string]func(tb testing.TB) {
	of := func(reconcile func(ctx context.Context, r *typed, cm *corev1.ConfigMap) error) func(testing.TB) {
		return func(tb testing.TB) { (&typed{reconcile: reconcile}).expectsLabel(tb, steertest.Options{}) }
	}
	return map[string]func(tb testing.TB){
		"unregistered-type": of(func(ctx context.Context, r *typed, cm *corev1.ConfigMap) error {
			return r.Get(ctx, steertest.Key(cm.Namespace+"/"+cm.Name), &appsv1.Deployment{})
		}),
		"forgotten-owns": of(func(ctx context.Context, _ *typed, cm *corev1.ConfigMap) error {
			return new(controller.Children[*corev1.Secret]).Apply(ctx, cm, []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "child"}}})
		}),
		"nil-map": of(func(_ context.Context, _ *typed, cm *corev1.ConfigMap) error {
			cm.Labels["done"] = "yes"
			return nil
		}),
		"spec-changed-in-reconcile": of(func(_ context.Context, _ *typed, cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"a": "1"}
			return nil
		}),
		"panic": of(func(context.Context, *typed, *corev1.ConfigMap) error {
			panic("not implemented")
		}),
		"blocking-reconcile": of(func(ctx context.Context, _ *typed, _ *corev1.ConfigMap) error {
			<-ctx.Done()
			return ctx.Err()
		}),
		"index-not-registered": of(func(ctx context.Context, r *typed, _ *corev1.ConfigMap) error {
			return r.List(ctx, &corev1.ConfigMapList{}, client.MatchingFields{"data.owner": "me"})
		}),
		"missing-right": func(tb testing.TB) {
			r := &typed{reconcile: func(ctx context.Context, r *typed, cm *corev1.ConfigMap) error {
				return r.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, GenerateName: cm.Name}})
			}}
			env := steertest.New(tb, steertest.Options{Operator: r.operator(), Role: "testdata/mistakes/role.yaml"})
			env.Create(configMap("a"))
			env.Settled()
		},
		"same-name-twice": func(tb testing.TB) {
			r := &typed{also: func(m *manager.Manager) error { return controller.Add(m, &typed{}) }}
			r.expectsLabel(tb, steertest.Options{})
		},
		"wrong-webhook-path": func(tb testing.TB) {
			r := &typed{also: func(m *manager.Manager) error {
				return webhook.AddDefaulter(m, labels{}, webhook.Path("/mutate-configmaps"))
			}}
			r.expectsLabel(tb, steertest.Options{Webhooks: []string{"testdata/grows.yaml"}})
		},
		"defaulter-not-idempotent": func(tb testing.TB) {
			r := &typed{also: func(m *manager.Manager) error { return webhook.AddDefaulter(m, labels{}) }}
			r.expectsLabel(tb, steertest.Options{Webhooks: []string{"testdata/grows.yaml"}})
		},
		"finalizer-that-never-ends": func(tb testing.TB) {
			r := &typed{clean: func(context.Context, *corev1.ConfigMap) (controller.FinalizerResult, error) {
				return controller.FinalizerResult{}, nil
			}}
			env := steertest.New(tb, steertest.Options{Operator: r.operator(), Timeout: 10 * time.Second, Role: steertest.Administrator})
			env.Create(configMap("a"))
			env.Settled()
			if err := env.Client.Delete(env.Context(), configMap("a")); err != nil {
				tb.Fatalf("delete: %v", err)
			}
			steertest.WaitGone[*corev1.ConfigMap](env, "default/a")
		},
		"crd-not-installed": func(tb testing.TB) {
			o := steertest.Options{Timeout: 40 * time.Second, Role: steertest.Administrator, Operator: steer.Operator{
				Name: "typed", Scheme: widgetScheme(), Setup: func(_ context.Context, m *manager.Manager) error { return controller.Add(m, widgets{}) },
			}}
			env := steertest.New(tb, o)
			steertest.Wait(env, "default/a", func(*widget) bool { return true })
		},
	}
}

func TestWhatTheFirstTestPrintsForEachMistake(t *testing.T) {
	t.Parallel()
	for name, body := range mistakesOfTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				recorded(t, name, fails(t, body)) // what is logged below it differs with time
			})
		})
	}
}

func TestWhatTheStartPrintsForEachMistake(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	env := steertest.New(t, steertest.Options{})
	for name, args := range map[string][]string{
		"port-in-use":      {"--health-probe-bind-address=" + taken.Addr().String()},
		"wrong-kubeconfig": {"--kubeconfig=testdata/none.kubeconfig", "--health-probe-bind-address=0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operator := (&typed{}).operator()
			if name == "port-in-use" {
				operator.Config = env.Config
			}
			var log bytes.Buffer
			operator.Configure = func(o *manager.Options) {
				o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			}
			err := steer.Run(t.Context(), append(args, "--metrics-bind-address=0"), operator)
			if err == nil {
				t.Fatal("it runs")
			}
			recorded(t, name, strings.ReplaceAll(err.Error(), taken.Addr().String(), "127.0.0.1:8081")+"\n"+log.String())
		})
	}
}

// recorded compares what was printed with its record, without what differs each time.
func recorded(t *testing.T, name, got string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	got = strings.ReplaceAll(got, root+"/", "")
	for _, varies := range [][2]string{
		{`last seen: (\{\n(?s:.*?)\n\}|it does not exist)`, "last seen: OBJECT"}, {`/[^ \n]*/src/(runtime|testing|internal)/`, "GOROOT/src/$1/"},
		{`goroutine \d+ `, "goroutine N "}, {`synctest bubble \d+`, "synctest bubble N"}, {`\(0x[^\n]*\)\n|\(\{0x[^\n]*\)\n`, "(...)\n"}, {` \+0x[0-9a-f]+`, ""},
		{`("uid": )"[^"]*"`, `$1"UID"`}, {`("resourceVersion": |@)"?\d+"?`, `$1"N"`}, {`reconcileID=\S+`, "reconcileID=ID"}, {`time=\S+ `, ""},
		{`(in|retryIn=|for|again in) ?\d[\w.µ]*s`, "$1 TIME"}, {`\d+ reconciles`, "N reconciles"}, {`\(\d+ times\)`, "(N times)"}, {`of \d+ `, "of N "}, {`/tmp/\S+`, "FILE"},
		{`(Timestamp": )"[^"]*"`, `$1"TIME"`},
	} {
		got = regexp.MustCompile(varies[0]).ReplaceAllString(got, varies[1])
	}
	file := filepath.Join("testdata", "mistakes", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is another one; if it is better, run go test -update (-want +got):\n%s", file, diff)
	}
}

// widget is a kind whose definition is not installed.
type widget struct{ corev1.ConfigMap }

// DeepCopyObject implements runtime.Object.
func (w *widget) DeepCopyObject() runtime.Object { return &widget{*w.DeepCopy()} }

// widgetList is a list of widgets.
type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *widgetList) DeepCopyObject() runtime.Object {
	out := *l
	return &out
}

func widgetScheme() steer.Scheme {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	return steer.Scheme{func(s *runtime.Scheme) error {
		s.AddKnownTypeWithName(group.WithKind("Widget"), &widget{})
		s.AddKnownTypeWithName(group.WithKind("WidgetList"), &widgetList{})
		metav1.AddToGroupVersion(s, group)
		return nil
	}}
}

type widgets struct{}

func (widgets) Reconcile(context.Context, *widget) (controller.Result, error) {
	return controller.Done(), nil
}
