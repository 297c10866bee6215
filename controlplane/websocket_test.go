// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
)

// socketServer serves a plane over HTTP/1.1 and returns where ConfigMaps are, with
// one named "one".
func socketServer(t *testing.T) (*controlplane.Plane, string) {
	t.Helper()
	plane, err := controlplane.New(controlplane.Options{ManualControllers: true, Authentication: controlplane.Authentication{
		Tokens: auth.Tokens{"secret": {Name: "admin", Groups: []string{"system:masters"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(plane.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	apiOf(t, plane.RESTConfig()).must("POST", "/api/v1/namespaces/default/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n")
	return plane, server.URL + "/api/v1/namespaces/default/configmaps"
}

// dialSocket opens a watch of the ConfigMaps named "one" and "two".
func dialSocket(t *testing.T, url, query string, header ...string) (*websocket.Conn, error) {
	t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(url, "http")+"?watch=true"+query, "http://localhost")
	if err != nil {
		t.Fatal(err)
	}
	config.Header = http.Header{"Authorization": {"Bearer secret"}}
	for i := 0; i < len(header); i += 2 {
		config.Header.Set(header[i], header[i+1])
	}
	ws, err := config.DialContext(t.Context())
	if err == nil {
		t.Cleanup(func() { _ = ws.Close() })
		err = ws.SetDeadline(time.Now().Add(time.Minute))
	}
	return ws, err
}

// frame is a message with its kind.
type frame struct {
	data []byte
	kind byte
}

var frames = websocket.Codec{Unmarshal: func(data []byte, kind byte, v any) error {
	*v.(*frame) = frame{data, kind}
	return nil
}}

// TestWatchWorksOverAWebSocket holds what kube-apiserver does: JSON as texts,
// one event in each with its line end, protobuf as binary messages without length,
// and an orderly close when the time is up.
func TestWatchWorksOverAWebSocket(t *testing.T) {
	t.Parallel()
	plane, url := socketServer(t)
	query := "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.namespace%3Ddefault"
	ws, err := dialSocket(t, url, query)
	if err != nil {
		t.Fatal(err)
	}
	next := func() (string, string) {
		t.Helper()
		var f frame
		if err := frames.Receive(ws, &f); err != nil {
			t.Fatal(err)
		}
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(f.data, &event); err != nil || f.kind != websocket.TextFrame || f.data[len(f.data)-1] != '\n' {
			t.Fatalf("a frame of kind %d, %v: %q", f.kind, err, f.data)
		}
		return event.Type, event.Object.Name
	}
	for {
		what, name := next()
		if what == "BOOKMARK" {
			break
		}
		if what != "ADDED" {
			t.Errorf("%s %s among the first events", what, name)
		}
	}
	if err := websocket.Message.Send(ws, "what a client says is dropped"); err != nil {
		t.Fatal(err)
	}
	a := apiOf(t, plane.RESTConfig())
	a.must("POST", "/api/v1/namespaces/default/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n")
	a.must("DELETE", "/api/v1/namespaces/default/configmaps/two", "")
	for _, want := range []string{"ADDED", "DELETED"} {
		if what, name := next(); what != want || name != "two" {
			t.Errorf("%s %s, want %s two", what, name, want)
		}
	}

	ws, err = dialSocket(t, url, "&fieldSelector=metadata.name%3Done&timeoutSeconds=1", "Accept", "application/vnd.kubernetes.protobuf")
	if err != nil {
		t.Fatal(err)
	}
	var f frame
	if err := frames.Receive(ws, &f); err != nil {
		t.Fatal(err)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(f.data); err != nil || f.kind != websocket.BinaryFrame || event.Type != "ADDED" {
		t.Errorf("kind %d, %q, %v", f.kind, event.Type, err)
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(event.Object.Raw[len("k8s\x00"):]); err != nil || unknown.Kind != "ConfigMap" {
		t.Errorf("%q, %v", unknown.Kind, err)
	}
	if err := frames.Receive(ws, &f); !errors.Is(err, io.EOF) {
		t.Errorf("after the time was up: %v", err)
	}
}

func TestWatchOverAWebSocketEndsWithItsClientAndWithThePlane(t *testing.T) {
	t.Parallel()
	plane, url := socketServer(t)
	ws, err := dialSocket(t, url, "&fieldSelector=metadata.name%3Done")
	if err != nil {
		t.Fatal(err)
	}
	var f frame
	if err := frames.Receive(ws, &f); err != nil {
		t.Fatal(err)
	}
	if err := plane.Stop(t.Context()); err != nil { // waits for it
		t.Error(err)
	}
	if err := frames.Receive(ws, &f); !errors.Is(err, io.EOF) {
		t.Errorf("after the end of the plane: %v", err)
	}

	plane, url = socketServer(t)
	if ws, err = dialSocket(t, url, "&fieldSelector=metadata.name%3Done"); err != nil {
		t.Fatal(err)
	}
	if err := frames.Receive(ws, &f); err != nil {
		t.Fatal(err)
	}
	if err := ws.Close(); err != nil {
		t.Error(err)
	}
	if err := plane.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWatchRefusesMalformedWebSocketRequests holds the answers of kube-apiserver:
// errors of the watch have a Status, those of the WebSocket an HTTP status alone.
func TestWatchRefusesMalformedWebSocketRequests(t *testing.T) {
	t.Parallel()
	_, url := socketServer(t)
	usual := []string{
		"Upgrade", "websocket", "Connection", "keep-alive, Upgrade", "Origin", "http://localhost", "Authorization", "Bearer secret",
		"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
	}
	for _, c := range []struct {
		name, query, header, value string
		code                       int
		body                       string
	}{
		{"selector", "&fieldSelector=nope%3Dx", "", "", 400, "not a known field selector"},
		{"revision", "&resourceVersion=abc", "", "", 500, "invalid"},
		{"media type", "", "Accept", "application/yaml", 406, "only the following media types are accepted: application/json;stream=watch,"},
		{"user", "", "Authorization", "Bearer wrong", 401, "Unauthorized"},
		{"no origin", "", "Origin", "", 403, ""},
		{"origin", "", "Origin", "%zz", 403, ""},
		{"version", "", "Sec-WebSocket-Version", "12", 400, ""},
		{"key", "", "Sec-WebSocket-Key", "", 400, ""},
		{"two protocols", "", "Sec-WebSocket-Protocol", "a, b", 400, ""},
		{"no upgrade", "&timeoutSeconds=1&resourceVersion=0", "Connection", "keep-alive", 200, "ADDED"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?watch=true"+c.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(usual); i += 2 {
			r.Header.Set(usual[i], usual[i+1])
		}
		if c.header != "" {
			if r.Header.Set(c.header, c.value); c.value == "" {
				r.Header.Del(c.header)
			}
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.code || !strings.Contains(string(body), c.body) {
			t.Errorf("%s: %s", c.name, fmt.Sprint(res.StatusCode, " ", string(body)))
		}
	}
}
