// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package zpages

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func ask(t *testing.T, h http.Handler, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestPagesAreTextUnlessAnObjectIsAskedFor: the headers are those of Kubernetes' own test.
func TestPagesAreTextUnlessAnObjectIsAskedFor(t *testing.T) {
	t.Parallel()
	pages := map[string]http.Handler{
		"Statusz": Statusz(Process{Paths: func() []string { return nil }}),
		"Flagz":   Flagz(map[string]string{"v": "2"}),
	}
	for kind, h := range pages {
		for accept, want := range map[string]struct {
			code    int
			begins  string
			warning bool
		}{
			"":           {200, "\napiserver " + strings.ToLower(kind) + "\nWarning: This endpoint is not meant to be machine parseable", false},
			"text/plain": {200, "\napiserver ", false},
			"*/*":        {200, "\napiserver ", false},
			"application/json;v=foo;g=config.k8s.io;as=KIND,*/*":                                                     {200, "\napiserver ", false},
			"application/json;v=v1beta1;g=config.k8s.io;as=KIND":                                                     {200, `{"apiVersion":"config.k8s.io/v1beta1",`, false},
			"application/yaml;v=v1beta1;g=config.k8s.io;as=KIND":                                                     {200, "apiVersion: config.k8s.io/v1beta1\n", false},
			"application/json;g=config.k8s.io;v=v1alpha1;as=KIND,application/json;g=config.k8s.io;v=v1beta1;as=KIND": {200, `{"apiVersion":"config.k8s.io/v1alpha1",`, true},
			"application/json;g=config.k8s.io;v=v1beta1;as=KIND,application/json;g=config.k8s.io;v=v1alpha1;as=KIND": {200, `{"apiVersion":"config.k8s.io/v1beta1",`, false},
			"application/xml":  {406, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: text/plain, application/json;`, false},
			"application/json": {406, `{"kind":"Status",`, false},
			"application/json;v=v1beta1;g=config.k8s.io":          {406, `{"kind":"Status",`, false},
			"application/json;v=v1beta1;g=config.k8s.io;as=Other": {406, `{"kind":"Status",`, false},
		} {
			w := ask(t, h, strings.ReplaceAll(accept, "KIND", kind))
			if w.Code != want.code || !strings.HasPrefix(w.Body.String(), want.begins) {
				t.Errorf("%s, Accept %q: %d %q, want %d and a body that begins %q", kind, accept, w.Code, w.Body, want.code, want.begins)
			}
			if got := w.Header().Get("Warning") != ""; got != want.warning {
				t.Errorf("%s, Accept %q: a warning: %v, want %v", kind, accept, got, want.warning)
			}
		}
	}
}

func TestStatuszTellsWhatTheProcessIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := Statusz(Process{
			Started: time.Now(), GoVersion: "go1", Version: "1.36.3", Emulates: "1.36",
			Paths: func() []string {
				return []string{"/", "/api", "/apis/apps", "/livez/ping", "/healthz", "/livez", "/openapi/v3", "/.well-known/x", "/openid/v1/jwks"}
			},
		})
		time.Sleep(3725 * time.Second)
		got := ask(t, h, "").Body.String()
		for _, line := range []string{"Up: 1 hr 02 min 05 sec", "Go version: go1", "Binary version: 1.36.3", "Emulation version: 1.36", "Paths: /healthz /livez", "Started: Sat Jan  1 00:00:00 UTC 2000"} {
			if !strings.Contains(got, "\n"+line+"\n") {
				t.Errorf("no line %q in %s", line, got)
			}
		}
		want := `{"apiVersion":"config.k8s.io/v1beta1","binaryVersion":"1.36.3","emulationVersion":"1.36","goVersion":"go1","kind":"Statusz",` +
			`"metadata":{"name":"apiserver"},"paths":["/healthz","/livez"],"startTime":"2000-01-01T00:00:00Z","uptimeSeconds":3725}` + "\n"
		if got := ask(t, h, "application/json;v=v1beta1;g=config.k8s.io;as=Statusz").Body.String(); got != want {
			t.Errorf("the object is %s, want %s", got, want)
		}
	})
}

func TestFlagzListsFlags(t *testing.T) {
	t.Parallel()
	h := Flagz(map[string]string{"v": "2", "listen": "127.0.0.1:6443"})
	if got := ask(t, h, "").Body.String(); !strings.HasSuffix(got, "only.\nlisten=127.0.0.1:6443\nv=2\n") {
		t.Errorf("the text is %q", got)
	}
	want := `{"apiVersion":"config.k8s.io/v1beta1","flags":{"listen":"127.0.0.1:6443","v":"2"},"kind":"Flagz","metadata":{"name":"apiserver"}}` + "\n"
	if got := ask(t, h, "application/json;v=v1beta1;g=config.k8s.io;as=Flagz").Body.String(); got != want {
		t.Errorf("the object is %s, want %s", got, want)
	}
}
