// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaddress_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
)

func newTable(t *testing.T, changeable bool, values ...string) *serviceaddress.Table {
	t.Helper()
	table, err := serviceaddress.New(changeable, values...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestValuesAreValidated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"operators/hook":                   "the address is missing",
		"hook=127.0.0.1:9443":              "the namespace of the Service is missing",
		"/hook=127.0.0.1:9443":             `"" is not a name of a namespace`,
		"operators/Hook=127.0.0.1:9443":    `"Hook" is not a name of a Service`,
		"operators/hook:https=127.0.0.1:1": `"https" is not a port`,
		"operators/hook:0=127.0.0.1:9443":  `"0" is not a port`,
		"operators/hook=127.0.0.1":         `"127.0.0.1" is not an address HOST:PORT`,
		"operators/hook=:9443":             `":9443" is not an address HOST:PORT`,
		"operators/hook=localhost:0":       `"0" is not a port`,
		"operators/hook=localhost:webhook": `"webhook" is not a port`,
		"operators/hook=[::1]:65536":       `"65536" is not a port`,
	} {
		if _, err := serviceaddress.New(false, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	_, err := serviceaddress.New(false, "operators/hook=localhost:1", "operators/hook=localhost:2")
	if err == nil || !strings.Contains(err.Error(), "operators/hook is given as localhost:1 and as localhost:2") {
		t.Errorf("a Service that is given twice: got %v", err)
	}
}

// TestAddressesOfPortsComeBeforeThatOfTheService, and 443 is the port that is not named.
func TestAddressesOfPortsComeBeforeThatOfTheService(t *testing.T) {
	t.Parallel()
	table := newTable(t, false, "operators/hook=localhost:1", "operators/hook:8443=localhost:2", "operators/metrics:443=localhost:3", "operators/metrics:6443=[::1]:4")
	for key, want := range map[serviceaddress.Key]string{
		{Namespace: "operators", Name: "hook"}:                "localhost:1",
		{Namespace: "operators", Name: "hook", Port: 443}:     "localhost:1",
		{Namespace: "operators", Name: "hook", Port: 8443}:    "localhost:2",
		{Namespace: "operators", Name: "metrics"}:             "localhost:3",
		{Namespace: "operators", Name: "metrics", Port: 443}:  "localhost:3",
		{Namespace: "operators", Name: "metrics", Port: 6443}: "[::1]:4",
		{Namespace: "operators", Name: "metrics", Port: 9}:    "",
		{Namespace: "default", Name: "hook"}:                  "",
	} {
		if got, ok := table.Address(key); got != want || ok != (want != "") {
			t.Errorf("%s is at %q, want %q", key, got, want)
		}
	}
}

// do sends a request to the table, and returns the status and the body of its answer.
func do(t *testing.T, table *serviceaddress.Table, groups []string, method, mediaType, body string) (int, string) {
	t.Helper()
	request := httptest.NewRequestWithContext(auth.WithUser(t.Context(), &auth.User{Name: "jane", Groups: groups}), method, serviceaddress.Path, strings.NewReader(body))
	request.Header.Set("Content-Type", mediaType)
	answer := httptest.NewRecorder()
	table.Handlers()[serviceaddress.Path].ServeHTTP(answer, request)
	return answer.Code, strings.TrimSpace(answer.Body.String())
}

func TestAddressesChangeTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	table := newTable(t, true, "operators/hook=localhost:1")
	changes := 0
	stop := table.OnChange(func() { changes++ })
	const patch = "application/merge-patch+json"
	masters := []string{auth.Masters}
	for _, step := range []struct {
		groups                  []string
		method, mediaType, body string
		code                    int
		want                    string
		changes                 int
	}{
		{masters, "GET", "", "", http.StatusOK, `{"operators/hook":"localhost:1"}`, 0},
		{[]string{"system:authenticated"}, "GET", "", "", http.StatusForbidden, "for members of system:masters alone", 0},
		{nil, "PATCH", patch, `{"operators/hook":null}`, http.StatusForbidden, "for members of system:masters alone", 0},
		{masters, "PUT", patch, `{}`, http.StatusMethodNotAllowed, "GET and PATCH", 0},
		{masters, "PATCH", "application/json", `{}`, http.StatusUnsupportedMediaType, "send application/merge-patch+json", 0},
		{masters, "PATCH", patch, `{"operators/hook":9443}`, http.StatusBadRequest, "no object of addresses", 0},
		{masters, "PATCH", patch, `{"operators/hook":null,"operators/metrics":"localhost"}`, http.StatusBadRequest, "is not an address HOST:PORT", 0},
		{masters, "PATCH", patch, `{"operators/metrics:6443":"localhost:2"}`, http.StatusOK, `{"operators/hook":"localhost:1","operators/metrics:6443":"localhost:2"}`, 1},
		{masters, "PATCH", patch, `{"operators/metrics:6443":"localhost:2"}`, http.StatusOK, `{"operators/hook":"localhost:1","operators/metrics:6443":"localhost:2"}`, 1},
		{masters, "PATCH", patch, `{"operators/hook":null,"operators/metrics:6443":"localhost:3"}`, http.StatusOK, `{"operators/metrics:6443":"localhost:3"}`, 2},
		{masters, "PATCH", patch, strings.Repeat(" ", 1<<20) + `{}`, http.StatusRequestEntityTooLarge, "limit is", 2},
	} {
		code, got := do(t, table, step.groups, step.method, step.mediaType, step.body)
		if exact := strings.HasPrefix(step.want, "{"); code != step.code || exact && got != step.want || !strings.Contains(got, step.want) || changes != step.changes {
			t.Errorf("%s %.60s: got %d %s after %d changes, want %d %s", step.method, step.body, code, got, changes, step.code, step.want)
		}
	}
	stop()
	if err := table.Change(map[string]*string{"operators/metrics:6443": nil}); err != nil || changes != 2 || table.Changes() != 3 {
		t.Errorf("after the end of the subscription: %v, %d calls, %d changes", err, changes, table.Changes())
	}
}

func TestTablesThatDoNotChangeHaveNoHandler(t *testing.T) {
	t.Parallel()
	for _, table := range []*serviceaddress.Table{nil, newTable(t, false)} {
		if got := table.Handlers(); len(got) > 0 {
			t.Errorf("there are handlers: %v", got)
		}
	}
	var none *serviceaddress.Table
	if diff := cmp.Diff(map[string]string{}, none.All()); diff != "" {
		t.Error(diff)
	}
}

func TestAdviceNamesWhatTheServerUnderstands(t *testing.T) {
	t.Parallel()
	key := serviceaddress.Key{Namespace: "operators", Name: "hook", Port: 443}
	other := serviceaddress.Key{Namespace: "operators", Name: "hook", Port: 8443}
	for _, test := range []struct {
		table *serviceaddress.Table
		key   serviceaddress.Key
		want  string
	}{
		{nil, key, ""},
		{newTable(t, false), key, "what runs outside of the cluster is given an address by --service operators/hook=HOST:PORT"},
		{newTable(t, false), other, "what runs outside of the cluster is given an address by --service operators/hook:8443=HOST:PORT"},
		{newTable(t, true), key, "what runs outside of the cluster is given an address by: steer service operators/hook=HOST:PORT"},
	} {
		if got := test.table.Advice(test.key); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
