// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controlplane"
)

func TestControllersAreThoseOfTheList(t *testing.T) {
	t.Parallel()
	all := controlplane.Controllers()
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
	}
	for list, want := range map[string]struct {
		disabled  []string // where the plugin ServiceAccount is there
		bare      []string // where it is not
		workloads bool
	}{
		"":                     {all, all, false},
		" , ":                  {all, all, false},
		"all":                  {nil, accountControllers(), true},
		"all,-workloads":       {nil, accountControllers(), false},
		"-workloads, all":      {nil, accountControllers(), false},
		"namespace-controller": {without("namespace-controller"), without("namespace-controller"), false},
		"all,-namespace-controller,serviceaccount-controller": {
			[]string{"namespace-controller"}, []string{"namespace-controller", "root-ca-certificate-publisher-controller"}, true},
		"workloads": {all, all, true},
	} {
		for plugin, disabled := range map[string][]string{"": want.disabled, "ServiceAccount": append([]string{"ServiceAccount"}, want.bare...)} {
			o := controlplane.Options{}
			if plugin != "" {
				o.Disable = []string{plugin}
			}
			if err := selectControllers(list, &o); err != nil {
				t.Errorf("%q: %v", list, err)
			}
			slices.Sort(o.Disable)
			slices.Sort(disabled)
			if !slices.Equal(o.Disable, disabled) || (o.Workloads != nil) != want.workloads {
				t.Errorf("%q without the plugin %q: disabled are %q, want %q; workloads %v", list, plugin, o.Disable, disabled, o.Workloads != nil)
			}
		}
	}
	if err := selectControllers("all,none", &controlplane.Options{}); err == nil || !strings.Contains(err.Error(), `STEER_CONTROLLERS: there is no controller "none"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestStandInDoesNothingByItself holds that a namespace which is deleted waits for the
// suite under the name of kube-apiserver, unless controllers are asked for, while what
// runs inside kube-apiserver runs.
func TestStandInDoesNothingByItself(t *testing.T) {
	t.Parallel()
	for list, stays := range map[string]bool{"": true, "all": false} {
		o := controlplane.Options{Disable: []string{"ServiceAccount"}, ManualControllers: true}
		if err := selectControllers(list, &o); err != nil {
			t.Fatal(err)
		}
		plane, err := controlplane.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = plane.Stop(context.Background()) }) // it is in memory
		ask := func(method, path, body string) (int, string) {
			t.Helper()
			return asked(t, plane.RESTConfig(), method, path, body)
		}
		ask(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"short"}}`)
		ask(http.MethodPost, "/apis/apps/v1/namespaces/short/deployments", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
		ask(http.MethodDelete, "/api/v1/namespaces/short", "")
		ask(http.MethodPost, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", `{"metadata":{"name":"mine"},"spec":{"priorityLevelConfiguration":{"name":"exempt"}}}`)
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		code, body := ask(http.MethodGet, "/api/v1/namespaces/short", "")
		if is := code == http.StatusOK && strings.Contains(body, `"Terminating"`); is != stays {
			t.Errorf("controllers %q: the namespace stays: %v, want %v: %s", list, is, stays, body)
		}
		if _, body := ask(http.MethodGet, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/mine", ""); !strings.Contains(body, `"Dangling"`) {
			t.Errorf("controllers %q: nothing is said of a flow schema: %s", list, body)
		}
		if !stays {
			continue
		}
		for _, plural := range []string{"/apis/apps/v1/replicasets", "/api/v1/pods", "/api/v1/serviceaccounts", "/api/v1/nodes"} {
			if _, body := ask(http.MethodGet, plural, ""); !strings.Contains(body, `"items":[]`) {
				t.Errorf("%s: a controller made some: %s", plural, body)
			}
		}
		final := strings.Replace(body, `"finalizers":["kubernetes"]`, `"finalizers":[]`, 1)
		if code, body := ask(http.MethodPut, "/api/v1/namespaces/short/finalize", final); code != http.StatusOK {
			t.Errorf("the suite cannot finalize the namespace with what it has read: %d %s", code, body)
		}
		if code, _ := ask(http.MethodGet, "/api/v1/namespaces/short", ""); code != http.StatusNotFound {
			t.Errorf("the namespace that the suite has finalized: %d", code)
		}
	}
}

// asked sends a request in process and returns the answer.
func asked(t *testing.T, config *rest.Config, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := config.Transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}
