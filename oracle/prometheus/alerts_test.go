// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/promql"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/webhook"
)

// healthy is how long each operator works well before the fault.
const healthy = 40 * time.Minute

// operator is one under test in a bubble, with the fault that a scenario has switched on.
type operator struct {
	*testing.T
	scenario
	env     *steertest.Env
	manager *manager.Manager
	seen    scrapes
	broken  atomic.Bool
	stop    func() // nil if no process runs
	ended   chan error
}

// scenario is a fault, and the only alert that it may cause.
type scenario struct {
	alert string
	lasts time.Duration // of the fault
	// refuses: the webhook does not panic, and refuses what it is sent.
	refuses bool
	// reconcile is called for ConfigMaps while there is the fault.
	reconcile func(context.Context, *operator) (controller.Result, error)
	// each is called before each scrape of that time; it returns false if the operator is
	// not there to answer.
	each func(o *operator, n int) bool
	// answer, unless nil, takes the place of the API server's answers to some requests.
	answer func(r *http.Request) *http.Response
}

func scenarios() []scenario {
	fails := func(context.Context, *operator) (controller.Result, error) {
		return controller.Result{}, errors.New("broken")
	}
	return []scenario{
		{alert: "OperatorAbsent", lasts: 15 * time.Minute, each: func(o *operator, n int) bool {
			if n == 0 {
				o.end(nil)
			}
			return false
		}},
		{
			alert: "OperatorWithoutLeader", lasts: 10 * time.Minute,
			answer: func(r *http.Request) *http.Response {
				if strings.Contains(r.URL.Path, "/leases") && r.Method != http.MethodGet {
					return status(r, http.StatusServiceUnavailable)
				}
				return nil
			},
			each: func(o *operator, n int) bool {
				if n == 1 { // it has lost the lease meanwhile, and the kubelet starts it again
					o.end(manager.ErrLostLease)
					o.start()
				}
				return true
			},
		},
		{alert: "OperatorReconcileErrors", lasts: time.Hour, reconcile: fails, each: touchOnce},
		{alert: "OperatorReconcilePanics", lasts: 10 * time.Minute, each: touchOnce, reconcile: func(context.Context, *operator) (controller.Result, error) {
			panic("broken")
		}},
		{alert: "OperatorReconcileStuck", lasts: 15 * time.Minute, each: touchOnce, reconcile: func(ctx context.Context, _ *operator) (controller.Result, error) {
			<-ctx.Done()
			return controller.Done(), nil
		}},
		{alert: "OperatorQueueGrows", lasts: 40 * time.Minute, reconcile: func(ctx context.Context, _ *operator) (controller.Result, error) {
			select {
			case <-time.After(time.Minute): // virtual
			case <-ctx.Done():
			}
			return controller.Done(), nil
		}, each: func(o *operator, n int) bool {
			o.env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("more-", n)}})
			return true
		}},
		{alert: "OperatorWebhookFails", lasts: 20 * time.Minute, each: func(o *operator, _ int) bool {
			o.admit("application/json", http.StatusOK) // it panics, which denies the request
			return true
		}},
		{alert: "OperatorWebhookFails", lasts: 20 * time.Minute, refuses: true, each: func(o *operator, _ int) bool {
			o.admit("text/plain", http.StatusUnsupportedMediaType)
			return true
		}},
		{
			alert: "OperatorForbidden", lasts: 35 * time.Minute, each: touchOnce,
			answer: func(r *http.Request) *http.Response {
				if strings.HasSuffix(r.URL.Path, "/secrets/own") {
					return status(r, http.StatusForbidden)
				}
				return nil
			},
			reconcile: func(ctx context.Context, o *operator) (controller.Result, error) {
				if err := o.manager.Live().Get(ctx, steertest.Key("default/own"), &corev1.Secret{}); err == nil {
					return controller.Result{}, errors.New("the Secret is read")
				}
				return controller.After(time.Minute), nil
			},
		},
		{alert: "OperatorObjectNotReady", lasts: 20 * time.Minute, each: notReady},
	}
}

// touchOnce has the object of the scenario reconciled.
func touchOnce(o *operator, n int) bool {
	if n == 0 {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"touched":"yes"}}`))
		if err := o.env.Client.Patch(o.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}}, patch); err != nil {
			o.Fatal(err)
		}
	}
	return true
}

// start starts a process of the operator.
func (o *operator) start() {
	o.Helper()
	cfg := rest.CopyConfig(o.env.Config)
	cfg.Transport = answering{o, cfg.Transport}
	m := newManager(o.T, cfg, manager.Options{Webhooks: webhook.Options{Address: "0"}})
	reconcile := controller.Func[*corev1.ConfigMap](func(ctx context.Context, _ *corev1.ConfigMap) (controller.Result, error) {
		if o.broken.Load() && o.reconcile != nil {
			return o.reconcile(ctx, o)
		}
		return controller.Done(), nil
	})
	observe := controller.Func[*corev1.Pod](func(context.Context, *corev1.Pod) (controller.Result, error) { return controller.Wait(), nil })
	if err := errors.Join(controller.Add(m, reconcile), controller.Add(m, observe), webhook.AddDefaulter(m, o)); err != nil {
		o.Fatal(err)
	}
	o.manager, o.ended = m, make(chan error, 1)
	ctx, stop := context.WithCancel(o.Context())
	o.stop = stop
	go func() { o.ended <- m.Start(ctx) }()
}

// newManager makes a manager that elects a leader.
func newManager(t *testing.T, cfg *rest.Config, options manager.Options) *manager.Manager {
	t.Helper()
	options.Name, options.Election = "guestbook", manager.Election{Enabled: true, Namespace: "default"}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	options.Scheme = newScheme(t)
	m, err := manager.New(cfg, options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newScheme returns a scheme of the core kinds.
func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

// end ends the process, if it has not ended, with an error.
func (o *operator) end(want error) {
	o.Helper()
	if o.stop == nil {
		return
	}
	o.stop()
	if err := <-o.ended; !errors.Is(err, want) {
		o.Errorf("the operator ended with %v, want %v", err, want)
	}
	o.stop = nil
}

// answering gives the answers of a scenario while there is the fault.
type answering struct {
	*operator
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.broken.Load() && a.answer != nil {
		if answer := a.answer(r); answer != nil {
			return answer, nil
		}
	}
	return a.next.RoundTrip(r)
}

// status is an answer that is an error.
func status(r *http.Request, code int) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, strings.ReplaceAll(http.StatusText(code), " ", ""), code)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// Default implements webhook.Defaulter.
func (o *operator) Default(context.Context, *corev1.Pod) error {
	if o.broken.Load() && o.alert == "OperatorWebhookFails" && !o.refuses {
		panic("broken")
	}
	return nil
}

// admit asks the webhook, as API servers do, with a type of content.
func (o *operator) admit(content string, want int) {
	o.Helper()
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"version":"v1","kind":"Pod"},
		"resource":{"version":"v1","resource":"pods"},"name":"new","namespace":"default","operation":"CREATE",
		"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","namespace":"default"}}}}`
	request := httptest.NewRequest(http.MethodPost, "/mutate--v1-pod", bytes.NewReader([]byte(review)))
	request.Header.Set("Content-Type", content)
	answer := httptest.NewRecorder()
	o.manager.Webhooks().ServeHTTP(answer, request)
	if answer.Code != want {
		o.Fatalf("the webhook answers %d: %s", answer.Code, answer.Body)
	}
}

// observe runs the operator, well at first and then with the fault, which begins at the time
// that is returned, and scrapes it.
func (o *operator) observe() (fault time.Time) {
	o.env = steertest.New(o.T, steertest.Options{Scheme: newScheme(o.T)})
	o.env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}})
	o.env.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}},
	})
	o.start()
	defer o.end(nil)
	for began := time.Now(); time.Since(began) < healthy; {
		time.Sleep(interval) // virtual
		o.admit("application/json", http.StatusOK)
		o.seen.scrape(o.T, time.Now(), o.manager.Registry())
	}
	fault = time.Now()
	o.broken.Store(true)
	for n := 0; time.Since(fault) < o.scenario.lasts; n++ {
		there := o.each(o, n)
		time.Sleep(interval)
		registry := o.manager.Registry()
		if !there {
			registry = nil
		}
		o.seen.scrape(o.T, time.Now(), registry)
	}
	return fault
}

// notReady makes the Pod so.
func notReady(o *operator, n int) bool {
	if n == 0 {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}}
		if err := o.env.Client.Status().Patch(o.Context(), pod, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			o.Fatal(err)
		}
	}
	return true
}

// TestEachFaultCausesItsAlert and no other one, and no operator that works well causes any.
func TestEachFaultCausesItsAlert(t *testing.T) {
	t.Parallel()
	rules, board := monitoring(t)
	provoked := map[string]bool{"OperatorCertificateUnreadable": true} // by the test below
	for _, s := range scenarios() {
		provoked[s.alert] = true
		t.Run(s.alert, func(t *testing.T) {
			t.Parallel()
			var seen *scrapes
			var fault time.Time
			synctest.Test(t, func(t *testing.T) {
				o := &operator{T: t, scenario: s}
				fault, seen = o.observe(), &o.seen
			})
			engine := newEngine(t)
			only(t, engine, rules, seen, fault, s.alert)
			if s.alert == "OperatorObjectNotReady" {
				for title, queries := range board {
					for _, query := range queries {
						if len(evaluate(t, engine, seen, query, seen.through.Add(-10*time.Minute), seen.through)) == 0 {
							t.Errorf("the panel %q shows nothing: %s", title, query)
						}
					}
				}
			}
		})
	}
	for _, r := range rules {
		if !provoked[r.Alert] {
			t.Errorf("nothing provokes %s", r.Alert)
		}
	}
}

// only checks that no alert fires before a fault, and then one alone.
func only(t *testing.T, engine *promql.Engine, rules []rule, seen *scrapes, fault time.Time, alert string) {
	t.Helper()
	fired := map[string]bool{}
	for _, r := range rules {
		if series, at, _ := r.fires(t, engine, seen, seen.from, fault); !at.IsZero() {
			t.Errorf("%s fires %s after the start, for %s", r.Alert, at.Sub(seen.from), series)
		}
		series, at, value := r.fires(t, engine, seen, fault, seen.through)
		if at.IsZero() {
			continue
		}
		fired[r.Alert] = true
		t.Logf("%s fires %s after the fault, and says %q", r.Alert, at.Sub(fault), r.says(t, series, value))
	}
	if len(fired) != 1 || !fired[alert] {
		t.Errorf("the fault for %s causes %v", alert, slices.Sorted(maps.Keys(fired)))
	}
}
