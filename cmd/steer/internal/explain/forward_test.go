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
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
	"github.com/steer-dev/steer/trace"
)

// TestRecordsAreReadByPortForward through a server that forwards ports of Pods, as kubelets do.
func TestRecordsAreReadByPortForward(t *testing.T) {
	t.Parallel()
	object := trace.Object{Kind: "Shop", Namespace: "town", Name: "bakery"}
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/reconciles" {
			http.NotFound(w, r)
			return
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
	mux.HandleFunc("POST /api/v1/namespaces/town/pods/{name}/portforward", func(w http.ResponseWriter, r *http.Request) {
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
		"pod/shop-1": "", "pod/shop-1:6060": "", "deploy/shop": "",
		"pod/shop-1:7070": "--pprof-bind-address=127.0.0.1:7070",
		"pod/shop-1:x":    "is no port",
		"pod/secret":      `pods "secret" is forbidden: a rule that allows to create pods/portforward is missing`,
		"deploy/other":    "404",
	} {
		rec, err := openRecords(t.Context(), []string{place}, &pods{&rest.Config{Host: server.URL}, "town"}, func(error) {})
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", place, err, want)
			}
		case err != nil || len(rec.about(object)) != 1:
			t.Errorf("%s: %v", place, err)
		}
	}
}
