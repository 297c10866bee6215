// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/trace"
)

// Web is the kind that the tests reconcile.
type Web struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebSpec   `json:"spec,omitempty"`
	Status            WebStatus `json:"status,omitempty"`
}

type WebSpec struct {
	Replicas int      `json:"replicas,omitempty"`
	Pages    []string `json:"pages,omitempty"`
}

type WebStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Ready              int                `json:"ready,omitempty"`
	Note               string             `json:"note,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (w *Web) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Pages = slices.Clone(w.Spec.Pages)
	out.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &out
}

type WebList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Web `json:"items"`
}

func (l *WebList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Web))
	}
	return &out
}

func addWeb(scheme *runtime.Scheme) error {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(gv, &Web{}, &WebList{})
	return nil
}

func addCore(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schema.GroupVersion{Version: "v1"}, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Node{})
	return nil
}

func web(name string) *Web {
	return &Web{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: WebSpec{Replicas: 1}}
}

// fake is a controller.Manager over a server.
type fake struct {
	*server
	recorder *trace.Recorder
	slog     *slog.Logger
	lines    *logs
	events   *events

	parts []controller.Runnable
	stop  context.CancelFunc
	done  sync.WaitGroup
}

func newFake() *fake {
	lines := &logs{}
	return &fake{
		server: newServer(addWeb, addCore), recorder: trace.NewRecorder(trace.Options{}),
		slog: slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug})), lines: lines, events: &events{},
	}
}

func (m *fake) Deps() controller.Deps {
	return controller.Deps{Client: m.server, Informers: m.server, Trace: m.recorder, Log: m.slog, Events: m.events}
}

func (m *fake) Add(r controller.Runnable) error {
	m.parts = append(m.parts, r)
	return nil
}

// start runs what was added, until the end of the test. It must be called in a
// bubble.
func (m *fake) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m.stop = cancel
	for _, r := range m.parts {
		m.done.Go(func() {
			if err := r.Start(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	synctest.Wait()
}

func (m *fake) end() {
	m.stop()
	m.done.Wait()
}

// records returns the reconciles so far.
func (m *fake) records() []trace.Record { return slices.Collect(m.recorder.Records()) }

func (m *fake) outcomes() (out []string) {
	for _, r := range m.records() {
		out = append(out, r.Outcome.String())
	}
	return out
}

func (m *fake) web(t *testing.T, name string) *Web {
	t.Helper()
	w := &Web{}
	if err := m.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, w); err != nil {
		t.Fatal(err)
	}
	return w
}

func (m *fake) create(t *testing.T, objs ...client.Object) {
	t.Helper()
	m.forgetLog()
	for _, obj := range objs {
		if err := m.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *fake) update(t *testing.T, name string, change func(*Web)) {
	t.Helper()
	w := m.web(t, name)
	change(w)
	if err := m.Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

// run adds a reconciler of Webs and runs it in a bubble while the test goes on.
func run(t *testing.T, reconcile controller.Func[*Web], test func(t *testing.T, m *fake), options ...controller.Option) {
	t.Helper()
	runOn(t, func(*testing.T, *fake) {}, reconcile, test, options...)
}

// runOn is run on a server that is prepared first.
func runOn(t *testing.T, prepare func(t *testing.T, m *fake), reconcile controller.Func[*Web], test func(t *testing.T, m *fake), options ...controller.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		prepare(t, m)
		if err := controller.Add(m, reconcile, options...); err != nil {
			t.Fatal(err)
		}
		m.start(t)
		defer m.end()
		test(t, m)
	})
}

type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *logs) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) Record(n controller.UserEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kind := "Normal "
	if n.Warning {
		kind = "Warning "
	}
	e.all = append(e.all, kind+n.Reason+" "+n.Note)
}

// A list of the fake is of one revision, whatever is written beside it.
func TestFakeListSaysTheRevisionOfItsItems(t *testing.T) {
	t.Parallel()
	m := newFake()
	const writes = 300
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range writes {
			if err := m.Create(t.Context(), web(fmt.Sprint("w", i))); err != nil {
				t.Error(err)
			}
		}
	})
	said := ""
	ctx := client.WithObserver(t.Context(), func(_ context.Context, call *client.Call) { said = call.ResourceVersion })
	for n := 0; n < writes; {
		var list WebList
		if err := m.List(ctx, &list); err != nil {
			t.Fatal(err)
		}
		n = len(list.Items)
		if want := strconv.Itoa(n); list.ResourceVersion != want || said != want { // creations are all that is written
			t.Fatalf("%d items are of revision %s, and the call says %s", n, list.ResourceVersion, said)
		}
	}
	writer.Wait()
}
