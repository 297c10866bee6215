// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// recorder is an admission that writes a ConfigMap for every Widget that is created.
type recorder struct{ transport http.RoundTripper }

func (a recorder) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Resource.Plural != "widgets" || r.Operation != resource.Create {
		return nil
	}
	body := strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + r.Object.GetName() + `"}}`)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://in-process.invalid/api/v1/namespaces/default/configmaps", body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (recorder) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

func TestServerBindsWhatSendsRequestsToIt(t *testing.T) {
	t.Parallel()
	s, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	s.Bind(apiserver.Bindings{
		Authenticator: auth.AsAnonymous{},
		Admission:     recorder{s.RoundTripper(admin)},
		Checks:        []apiserver.Check{{Name: "bound", Run: func() error { return errors.New("not yet") }}},
	})
	if err := s.Install(widgetResource(), configMapResource()); err != nil {
		t.Fatal(err)
	}
	client := s.RoundTripper(admin)
	if got := send(t, client, http.MethodPost, widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`); got.code != http.StatusCreated {
		t.Fatalf("a widget is answered with %d %s", got.code, got.body)
	}
	if got := send(t, client, http.MethodGet, "/api/v1/namespaces/default/configmaps/a", ""); got.code != http.StatusOK {
		t.Errorf("the ConfigMap of the admission is answered with %d", got.code)
	}
	if got := send(t, client, http.MethodGet, "/livez", ""); got.code != http.StatusInternalServerError || !strings.Contains(got.body, "bound") {
		t.Errorf("/livez with a check that fails: %d %s", got.code, got.body)
	}
}

func TestServerGenerationFollowsResources(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	before := s.Generation()
	s.Handle("/x", http.NotFoundHandler())
	if now := s.Generation(); now != before || !s.Serves(widgets) {
		t.Errorf("a handler: generation %d after %d, widgets are served: %t", now, before, s.Serves(widgets))
	}
	s.Remove("example.com", "widgets")
	removed := s.Generation()
	if removed == before || s.Serves(widgets) {
		t.Errorf("a removal: generation %d after %d, widgets are served: %t", removed, before, s.Serves(widgets))
	}
	if err := s.Install(widgetResource()); err != nil {
		t.Fatal(err)
	}
	if now := s.Generation(); now == removed || now == before {
		t.Errorf("an installation: generation %d after %d", now, removed)
	}
}
