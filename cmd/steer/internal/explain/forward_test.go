// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

// TestAnOperatorThatHasGoneIsAskedOnce, and what it had said in memory is still known.
func TestAnOperatorThatHasGoneIsAskedOnce(t *testing.T) {
	t.Parallel()
	object := func(name string) trace.Object { return trace.Object{Kind: "Shop", Namespace: "town", Name: name} }
	var asked atomic.Int32
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("kind") {
			asked.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Steer-Records", "memory, files")
		_ = json.NewEncoder(w).Encode(trace.Record{ID: trace.ID{Recorder: 1, Number: 1}, Object: object("bakery"), Outcome: trace.Done})
	}))
	t.Cleanup(operator.Close)
	var told []error
	rec, err := openRecords(t.Context(), []string{operator.URL}, nil, func(err error) { told = append(told, err) })
	if err != nil {
		t.Fatal(err)
	}
	defer rec.close()
	if got := rec.about(object("bakery")); len(got) != 1 {
		t.Errorf("%d records of the bakery", len(got))
	}
	rec.about(object("butcher"))
	if asked.Load() != 1 || len(told) != 1 || !strings.Contains(told[0].Error(), "503") {
		t.Errorf("asked %d times, told %v", asked.Load(), told)
	}
}

// TestARunningOperatorIsAskedOnceForAKind when its objects are known ahead, as those of a tree.
func TestARunningOperatorIsAskedOnceForAKind(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Steer-Records", "memory, files")
		query := r.URL.Query()
		if !query.Has("kind") {
			return
		}
		asked.Add(1)
		for i, name := range query["name"] {
			object := trace.Object{Kind: query.Get("kind"), Namespace: query.Get("namespace"), Name: name}
			_ = json.NewEncoder(w).Encode(trace.Record{ID: trace.ID{Recorder: uint64(len(object.Kind)), Number: uint64(i + 1)}, Object: object, Outcome: trace.Done})
		}
	}))
	t.Cleanup(operator.Close)
	rec, err := openRecords(t.Context(), []string{operator.URL}, nil, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer rec.close()
	root := versions.Object{Object: trace.Object{Kind: "Shop", Namespace: "town", Name: "bakery"}, Content: map[string]any{"metadata": map[string]any{"uid": "bakery"}}}
	all := []versions.Object{root}
	for i := range mostNames + 1 {
		all = append(all, versions.Object{Object: trace.Object{Kind: "Pod", Namespace: "town", Name: fmt.Sprint("pod-", i)}, Content: map[string]any{
			"metadata": map[string]any{"uid": fmt.Sprint(i), "ownerReferences": []any{map[string]any{"uid": "bakery"}}}}})
	}
	tree := (&chain.Facts{Records: rec.about, Ahead: rec.ahead}).NewTree(root, all)
	if n := asked.Load(); n != 3 { // the Shop, and the Pods in two parts
		t.Errorf("it was asked %d times", n)
	}
	for _, n := range append(tree.Root.Children, tree.Root) {
		if !strings.HasSuffix(n.Last, ": done") {
			t.Errorf("the last reconcile of %s is %q", n.Object, n.Last)
		}
	}
}

// TestRecordsAreReadByPortForward through a server that forwards ports of Pods, as kubelets do.
// The operator has one record in memory, and a further one in files, for which it is asked
// over the same connection.
func TestRecordsAreReadByPortForward(t *testing.T) {
	t.Parallel()
	object := trace.Object{Kind: "Shop", Namespace: "town", Name: "bakery"}
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/reconciles" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Steer-Records", "memory, files")
		if r.URL.Query().Has("kind") {
			w.Header().Set("Steer-Left-Out", "7")
			_ = json.NewEncoder(w).Encode(trace.Record{ID: trace.ID{Recorder: 0, Number: 9}, Object: object, Outcome: trace.Done})
		}
		_ = json.NewEncoder(w).Encode(trace.Record{ID: trace.ID{Recorder: 1, Number: 1}, Object: object, Outcome: trace.Done})
	}))
	t.Cleanup(operator.Close)
	forwarder := stream.PortForward{Dial: func(ctx context.Context, _ *resource.Request, port uint16) (io.ReadWriteCloser, error) {
		if port != 6060 {
			return nil, fmt.Errorf("connection refused")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", operator.Listener.Addr().String())
	}}
	mux := http.NewServeMux()
	var connections atomic.Int32
	mux.HandleFunc("POST /api/v1/namespaces/town/pods/{name}/portforward", func(w http.ResponseWriter, r *http.Request) {
		connections.Add(1)
		if r.PathValue("name") == "secret" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"pods \"secret\" is forbidden"}`)
			return
		}
		forwarder.Connect(r.Context(), nil, w, r)
	})
	mux.HandleFunc("GET /apis/apps/v1/namespaces/town/deployments/shop", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"spec":{"selector":{"matchLabels":{"app":"shop"}}}}`)
	})
	mux.HandleFunc("GET /api/v1/namespaces/town/pods", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("labelSelector") == "app=shop" {
			_, _ = io.WriteString(w, `{"items":[{"metadata":{"name":"old"},"status":{"phase":"Failed"}},{"metadata":{"name":"new"},"status":{"phase":"Running"}}]}`)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for place, want := range map[string]string{
		"town/pod/shop-1": "", "town/pod/shop-1:6060": "", "town/deploy/shop": "", "pod/shop-1": "404",
		"town/pod/shop-1:7070": "--pprof-bind-address=127.0.0.1:7070",
		"town/pod/shop-1:x":    "is no port",
		"town/pod/secret":      `pods "secret" is forbidden: a rule that allows to create pods/portforward is missing`,
		"town/deploy/other":    "404", "a/town/pod/shop-1": "no such file",
	} {
		var warned error
		before := connections.Load()
		rec, err := openRecords(t.Context(), []string{place}, &pods{&rest.Config{Host: server.URL}, "other"}, func(err error) { warned = err })
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", place, err, want)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", place, err)
			continue
		}
		for range 2 {
			if n := len(rec.about(object)); n != 2 {
				t.Errorf("%s: %d records", place, n)
			}
		}
		if warned == nil || !strings.Contains(warned.Error(), "the oldest 7 about Shop town/bakery are left out") {
			t.Errorf("%s: told %v", place, warned)
		}
		if n := connections.Load() - before; n != 1 {
			t.Errorf("%s: %d connections", place, n)
		}
		rec.close()
	}
}
