// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/steer-dev/steer/apiserver/auth"
)

func TestHealthReportsEachPart(t *testing.T) {
	t.Parallel()
	p := planeOf(t, Options{Authorizer: auth.AllowAll{}})
	failing := func() string {
		t.Helper()
		w := httptest.NewRecorder()
		p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez?verbose", nil))
		var out []string
		for line := range strings.Lines(w.Body.String()) {
			if name, bad := strings.CutPrefix(line, "[-]"); bad {
				out = append(out, strings.Fields(name)[0])
			}
		}
		if (w.Code == http.StatusOK) != (len(out) == 0) {
			t.Errorf("%d with failing checks %q", w.Code, out)
		}
		return strings.Join(out, " ")
	}
	if got := failing(); got != "" {
		t.Errorf("a fresh plane: %s", got)
	}
	p.stages.Announced.Store(false)
	if got, want := failing(), "poststarthook/start-cluster-authentication-info-controller poststarthook/bootstrap-controller"; got != want {
		t.Errorf("before the address is announced: %s, want %s", got, want)
	}
	p.stages.Announced.Store(true)
	failure := errors.New("the store has closed")
	p.stages.Failure.Store(&failure)
	for _, name := range []string{"priority-and-fairness-config-consumer", "start-apiextensions-controllers", "apiservice-registration-controller"} {
		if got := failing(); !strings.Contains(got, "poststarthook/"+name) {
			t.Errorf("without controllers: %s does not fail, %s do", name, got)
		}
	}
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/livez/poststarthook/kube-apiserver-autoregistration", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "the store has closed") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
