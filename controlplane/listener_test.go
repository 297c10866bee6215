// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
)

// listening returns a started plane with a listener, and its administrator.
func listening(t *testing.T, o controlplane.Options) (*controlplane.Plane, *api) {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	plane, err := controlplane.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := plane.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return plane, apiOf(t, config)
}

func TestKubeconfigReachesTheListener(t *testing.T) {
	t.Parallel()
	_, api := listening(t, controlplane.Options{})
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	api.must("POST", cronTabs, cronTab("a"))
	equal(t, "names", []string{"a"}, api.names(cronTabs))
}

func TestStopEndsWatchesOfTheNetwork(t *testing.T) {
	t.Parallel()
	plane, api := listening(t, controlplane.Options{})
	watch := api.open(t.Context(), "GET", configMaps+"?watch=true", "")
	defer watch.Body.Close()
	if err := plane.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, watch.Body); err != nil {
		t.Errorf("the watch did not end cleanly: %v", err)
	}
}

func TestStrangersSeeNothing(t *testing.T) {
	t.Parallel()
	plane, _ := listening(t, controlplane.Options{Tokens: auth.Tokens{
		"ada-token": {Name: "ada", Groups: []string{auth.Masters}},
		"bob-token": {Name: "bob"},
	}})
	kubeconfig, err := plane.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{"": 403, "wrong": 401, "ada-token": 200, "bob-token": 403} {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		config.CertData, config.KeyData, config.BearerToken = nil, nil, token
		stranger := apiOf(t, config)
		if got, answer := stranger.do("GET", "/api/v1/secrets", ""); got != want {
			t.Errorf("with token %q: %d, want %d: %s", token, got, want, answer)
		}
	}
}

func TestPlaneWithADirectoryRemembers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, api := listening(t, controlplane.Options{DataDir: dir})
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	created := api.must("POST", cronTabs, cronTab("a"))
	kubeconfig, err := first.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, again := listening(t, controlplane.Options{DataDir: dir})
	found := again.must("GET", cronTabs+"/a", "")
	equal(t, "object after the restart", created.Object, found.Object)

	// Credentials from before the restart are good after it.
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Host = second.URL()
	equal(t, "names with the old kubeconfig", []string{"a"}, apiOf(t, config).names(cronTabs))
}

func TestSnapshotsAreForMasters(t *testing.T) {
	t.Parallel()
	plane, _ := newPlane(t)
	bob := apiOf(t, plane.RESTConfigFor(&auth.User{Name: "bob"}))
	if code, _ := bob.do("GET", controlplane.SnapshotPath, ""); code != http.StatusForbidden {
		t.Errorf("bob got %d", code)
	}
	admin := apiOf(t, plane.RESTConfig())
	code, snapshot := admin.do("GET", controlplane.SnapshotPath, "")
	if code != http.StatusOK || !strings.Contains(string(snapshot), "kube-node-lease") {
		t.Errorf("the administrator got %d and %d bytes", code, len(snapshot))
	}
}
