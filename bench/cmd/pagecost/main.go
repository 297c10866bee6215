// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pagecost measures what the page of an operator costs it: reconciles for each second of
// processor time with a browser that follows the page, with the page served and not looked
// at, and without one, in turn. What a browser needs is measured by cmd/page.
//
//	cd bench && go run ./cmd/pagecost
//
// An operator is a process of its own with one processor. A reconcile reads and patches an
// object against canned answers, and works until all of it takes 200 µs: 5,000 of them are all
// that a processor does. The browser is this process: it follows the stream and fetches the
// view at every change, as the page's script does. Processor time is what is compared, since
// it is the same on a machine that does something else as well.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/manager"
)

const (
	// rate is how many reconciles a processor does in a second, nearly.
	rate = 5000
	// objects are reconciled in turn.
	objects = 10_000
	// bound is the goal: what an operator may lose.
	bound = 0.05
)

// kinds of runs.
const (
	without = "without" // a page
	served  = "served"  // and no browser looks
	watched = "watched" // by one browser
)

func main() {
	rounds := flag.Int("rounds", 5, "rounds, each of a run with, without, and not looked at")
	seconds := flag.Int("seconds", 6, "seconds of processor time that a run takes, nearly")
	operator := flag.String("operator", "", "be the operator of a run: without, served or watched")
	work := flag.Int("work", 0, "work of a reconcile; 0 finds out")
	view := flag.String("view", "/", "the view that the browser shows")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *operator != "" {
		err = operate(ctx, *operator, *seconds*rate, *work)
	} else {
		err = measure(ctx, *rounds, *seconds, *work, *view)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure compares the runs.
func measure(ctx context.Context, rounds, seconds, work int, view string) error {
	if work == 0 {
		var err error
		if work, err = fit(ctx); err != nil {
			return err
		}
	}
	all := map[string][]float64{}
	for range rounds {
		for _, kind := range []string{without, watched, served} {
			r, err := run(ctx, kind, seconds, work, view)
			if err != nil {
				return err
			}
			all[kind] = append(all[kind], r.rate)
			fmt.Printf("%-8s %6.0f reconciles for a second of processor time, %d views of %d KiB\n", kind, r.rate, r.views, r.bytes>>10)
		}
	}
	for _, kind := range []string{watched, served} {
		var ratios []float64
		for i, r := range all[kind] {
			ratios = append(ratios, r/all[without][i])
		}
		slices.Sort(ratios)
		fmt.Printf("%s: %.3f of the operator without a page (median of %d pairs, from %.3f to %.3f)\n", kind, ratios[len(ratios)/2], rounds, ratios[0], ratios[len(ratios)-1])
		if lost := 1 - ratios[len(ratios)/2]; lost > bound {
			return fmt.Errorf("the operator loses %.1f %%, and may lose %.0f %%", 100*lost, 100*bound)
		}
	}
	return nil
}

// result is what came of a run.
type result struct {
	rate         float64
	views, bytes int
}

// run starts an operator and looks at its page, if it is to.
func run(ctx context.Context, kind string, seconds, work int, view string) (result, error) {
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	var r result
	child := exec.CommandContext(ctx, self, "-operator", kind, "-seconds", strconv.Itoa(seconds), "-work", strconv.Itoa(work))
	child.Env, child.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := child.Start(); err != nil {
		return r, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "page "); ok && kind == watched {
			r.views, r.bytes = watch(ctx, url, view)
		}
	}
	if err := child.Wait(); err != nil {
		return r, fmt.Errorf("the operator: %w", err)
	}
	spent := child.ProcessState.UserTime() + child.ProcessState.SystemTime()
	r.rate = float64(seconds*rate) / spent.Seconds()
	return r, nil
}

// watch is a browser: it fetches a view at every change, until the operator ends.
func watch(ctx context.Context, url, view string) (views, bytes int) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return 0, 0
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{}}
	defer browser.CloseIdleConnections()
	base, _, _ := strings.Cut(url, "/?")
	get := func(at string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return nil, err
		}
		return browser.Do(request)
	}
	load := func(at string) bool {
		answer, err := get(at)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		n, err := io.Copy(io.Discard, answer.Body)
		views, bytes = views+1, int(n)
		return err == nil && answer.StatusCode == http.StatusOK
	}
	if !load(url) {
		return views, bytes
	}
	stream, err := get(base + "/stream")
	if err != nil {
		return views, bytes
	}
	defer stream.Body.Close()
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") && !load(base+view) {
			break
		}
	}
	return views, bytes
}

// fit finds the work with which an operator does so many reconciles for a second of processor
// time, nearly.
func fit(ctx context.Context) (int, error) {
	none, err := run(ctx, without, 2, 1, "/")
	if err != nil {
		return 0, err
	}
	const probe = 1000
	some, err := run(ctx, without, 2, probe, "/")
	if err != nil {
		return 0, err
	}
	each := (1/some.rate - 1/none.rate) / (probe - 1)
	work := int((1.0/rate - 1/none.rate) / each)
	if work < 1 {
		return 0, fmt.Errorf("a reconcile without work takes %.0f µs: this machine does no %d in a second", 1e6/none.rate, rate)
	}
	return work, nil
}

// canned answers every request with an object.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	body := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"default","uid":"u","resourceVersion":"7"},"data":{"text":"x"}}`
	switch r.URL.Path {
	case "/api":
		body = `{"kind":"APIVersions","versions":["v1"]}`
	case "/apis":
		body = `{"kind":"APIGroupList","groups":[]}`
	case "/api/v1":
		body = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["get","list","patch","watch"]}]}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// operate is an operator that ends after so many reconciles.
func operate(ctx context.Context, kind string, reconciles, work int) error {
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		return err
	}
	m, err := manager.New(&rest.Config{Host: "http://canned", Transport: canned{}, QPS: -1}, manager.Options{
		Name: "paged", Scheme: scheme, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	requests := make(chan controller.Request)
	left := reconciles
	var failed error
	reconcile := controller.Func[controller.Request](func(ctx context.Context, r controller.Request) (controller.Result, error) {
		if left--; left == 0 {
			stop()
		}
		var o corev1.ConfigMap
		if err := m.Live().Get(ctx, r.NamespacedName, &o); err != nil {
			failed = err
			stop()
			return controller.Result{}, err
		}
		before := o.DeepCopy()
		sum := sha256.Sum256([]byte(r.Name))
		for range work {
			sum = sha256.Sum256(sum[:])
		}
		o.Data = map[string]string{"sum": fmt.Sprintf("%x", sum)}
		return controller.Done(), m.Live().Patch(ctx, &o, client.MergeFrom(before))
	})
	if err := controller.AddRequests(m, "paged", reconcile, controller.Typed(controller.From(controller.Channel(requests)))); err != nil {
		return err
	}
	if kind != without {
		local, err := dashboard.New(dashboard.Options{Source: dashboard.Live(m.Recorder(), m.Queued), Keep: 10_000}).Listen("127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println("page", local.URL())
		if err := m.Add(manager.OnEveryReplica(manager.RunnableFunc(local.Run))); err != nil {
			return err
		}
	}
	go func() { // ends with the operator
		for i := 0; ; i++ {
			select {
			case requests <- controller.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: fmt.Sprint("object-", i%objects)}}:
			case <-ctx.Done():
				return
			}
		}
	}()
	err = m.Start(ctx)
	return errors.Join(failed, err)
}
