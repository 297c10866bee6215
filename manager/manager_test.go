// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/trace"
)

// newManager makes a manager of a cluster that gets no request.
func newManager(t *testing.T, change func(*Options)) *Manager {
	t.Helper()
	o := Options{Name: "test", Scheme: runtime.NewScheme(), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	m, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// named is a runnable with a name that says what it does to a journal.
type named struct {
	name    string
	journal func(string)
	end     error
}

func (n named) Name() string { return n.name }

func (n named) Start(ctx context.Context) error {
	n.journal("start " + n.name)
	defer n.journal("end " + n.name)
	if n.end != nil {
		return n.end
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestManagerRunsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, nil)
		var mu sync.Mutex
		var journal []string
		note := func(s string) { mu.Lock(); defer mu.Unlock(); journal = append(journal, s) }
		if err := m.Add(named{"a", note, nil}); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(OnEveryReplica(named{"b", note, nil})); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		<-m.Elected()
		synctest.Wait()
		if err := m.Add(named{"late", note, nil}); err != nil {
			t.Errorf("a running manager refuses a runnable: %v", err)
		}
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start: %v", err)
		}
		slices.Sort(journal)
		want := []string{"end a", "end b", "end late", "start a", "start b", "start late"}
		if !slices.Equal(journal, want) {
			t.Errorf("got %v, want %v", journal, want)
		}
		if err := m.Start(t.Context()); err == nil {
			t.Error("a manager started twice")
		}
	})
}

func TestOneFailingRunnableStopsAll(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, start := range map[string]controller.Runnable{
		"an error": RunnableFunc(func(context.Context) error { return broken }),
		"a panic":  RunnableFunc(func(context.Context) error { panic(broken) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t, nil)
			other := make(chan struct{})
			for _, r := range []controller.Runnable{
				RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); close(other); return nil }), start,
			} {
				if err := m.Add(r); err != nil {
					t.Fatal(err)
				}
			}
			err := m.Start(t.Context())
			if err == nil || !strings.Contains(err.Error(), "broken") {
				t.Errorf("Start: %v, want the failure", err)
			}
			<-other
		})
	}
}

func TestNamesAreUniqueInAManager(t *testing.T) {
	t.Parallel()
	m := newManager(t, nil)
	if err := m.Add(named{name: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(named{name: "a"}); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("got %v", err)
	}
	if err := newManager(t, nil).Add(named{name: "a"}); err != nil {
		t.Errorf("another manager's names count: %v", err)
	}
}

func TestControllersOfOneKindWithoutNamesAreRefused(t *testing.T) {
	t.Parallel()
	m := newManager(t, func(o *Options) { o.Scheme = scheme(t) })
	nothing := controller.Func[*corev1.ConfigMap](func(context.Context, *corev1.ConfigMap) (controller.Result, error) {
		return controller.Done(), nil
	})
	if err := controller.Add(m, nothing); err != nil {
		t.Fatal(err)
	}
	if err := controller.Add(m, nothing); err == nil || !strings.Contains(err.Error(), `named "configmap"; name one of the two: controller.Name("...")`) {
		t.Errorf("a second controller of a kind: %v", err)
	}
	if err := controller.Add(m, nothing, controller.Name("other")); err != nil {
		t.Errorf("a second controller with a name: %v", err)
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestARunnableThatDoesNotReturnIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := newManager(t, func(o *Options) { o.StopGrace, o.Log = time.Minute, slog.New(slog.NewTextHandler(&log, nil)) })
		release := make(chan struct{})
		var attempt trace.Active
		m.Recorder().Begin(&attempt, trace.Start{Controller: "webs", Object: trace.Object{Kind: "Web", Name: "a"}, Began: time.Now()})
		stuck := named{name: "stuck", journal: func(s string) {
			if strings.HasPrefix(s, "end") {
				<-release
			}
		}}
		if err := m.Add(stuck); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		err := m.Start(ctx)
		if !errors.Is(err, ErrStopTimeout) || !strings.Contains(err.Error(), "stuck") {
			t.Errorf("Start: %v, want ErrStopTimeout and the name", err)
		}
		if want := "; running: webs a: - -> - -> - -> running for 1m0s"; !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Start: %v, want %q", err, want)
		}
		// Who is killed meanwhile has said what it waits for.
		if got := log.String(); strings.Count(got, "is told to end and waits") != 5 || !strings.Contains(got, `for=stuck running="[webs a: - -> - -> - -> running for 1s]"`) {
			t.Errorf("it has logged:\n%s", got)
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %s, want the grace", waited)
		}
		close(release)
	})
}

func TestProbesAndMetricsAreServed(t *testing.T) {
	t.Parallel()
	m := newManager(t, func(o *Options) { o.HealthAddress, o.Metrics.Address = "127.0.0.1:0", "127.0.0.1:0" })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	<-m.Elected()
	get := func(url string) string {
		t.Helper()
		resp, err := http.Get(url) // loopback, in a test
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := get("http://" + m.servers.health.String() + "/readyz?verbose"); got != "[+]caches ok\n[+]watches ok\n[+]webhooks ok\nreadyz check passed\n" {
		t.Errorf("readyz: %s", got)
	}
	if got := get("http://" + m.servers.scraping.String() + "/metrics"); !strings.Contains(got, "\ngo_goroutines ") {
		t.Errorf("metrics: %.300s", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	taken := newManager(t, func(o *Options) { o.HealthAddress = "256.0.0.1:1" })
	if err := taken.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("an impossible address: %v", err)
	}
}

func TestOptionsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"Options.Name":               {Scheme: runtime.NewScheme()},
		"Options.Scheme":             {Name: "x"},
		"Options.Election.Namespace": {Name: "x", Scheme: runtime.NewScheme(), Election: Election{Enabled: true}},
	} {
		if _, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}
