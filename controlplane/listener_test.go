// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver"
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
	return plane, apiOf(t, configOf(t, plane))
}

// configOf is the one of the kubeconfig that a plane gives out.
func configOf(t *testing.T, plane *controlplane.Plane) *rest.Config {
	t.Helper()
	kubeconfig, err := plane.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Connections that were there go on, requests in process need none, and one that ends makes room.
func TestOpenConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	plane, admin := listening(t, controlplane.Options{Limits: apiserver.Limits{OpenConnections: 3}})
	admin.must(http.MethodGet, "/version", "") // its connection stays open
	address := strings.TrimPrefix(plane.URL(), "https://")
	connect := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	greet := func(c net.Conn) error { return tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake() }
	var open []net.Conn
	for range 2 {
		c := connect()
		if err := greet(c); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for range 5 {
		if err := greet(connect()); err == nil {
			t.Error("a fourth connection is served")
		}
	}
	admin.must(http.MethodGet, "/api/v1/namespaces", "")
	apiOf(t, plane.RESTConfig()).must(http.MethodGet, "/api/v1/namespaces", "")
	_ = open[0].Close() // the server sees it in its own time
	for began := time.Now(); greet(connect()) != nil; {
		if time.Since(began) > time.Minute {
			t.Fatal("one that has ended makes no room")
		}
	}
}

func TestKubeconfigReachesTheListener(t *testing.T) {
	t.Parallel()
	_, api := listening(t, controlplane.Options{})
	api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	api.must("POST", cronTabs, cronTab("a"))
	equal(t, "names", []string{"a"}, api.names(cronTabs))
}

func TestKubeconfigNamesTheBalancer(t *testing.T) {
	t.Parallel()
	plane, _ := listening(t, controlplane.Options{Endpoint: "api.example.com:6443"})
	config := configOf(t, plane)
	equal(t, "server", "https://api.example.com:6443", config.Host)
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) { // what a balancer does
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(plane.URL(), "https://"))
	}
	apiOf(t, config).must("GET", "/api/v1/namespaces/default", "")
}

// The other plane stands for a second authority: what it shows and whom it knows
// are its own certificates.
func TestListenerAcceptsOtherAuthoritiesBesideItsOwn(t *testing.T) {
	t.Parallel()
	other, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	foreign, _ := listening(t, controlplane.Options{Authentication: controlplane.Authentication{Keys: other}})
	keys, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	keys.Clients = []*x509.Certificate{other.CA}
	pair, err := tls.X509KeyPair(clientPair(t, foreign))
	if err != nil {
		t.Fatal(err)
	}
	keys.Serving = &pair
	plane, _ := listening(t, controlplane.Options{Authentication: controlplane.Authentication{Keys: keys}})

	for name, cert := range map[string]*controlplane.Plane{"own": plane, "other": foreign} {
		crt, key := clientPair(t, cert)
		config := &rest.Config{Host: plane.URL(), TLSClientConfig: rest.TLSClientConfig{CertData: crt, KeyData: key, Insecure: true}}
		equal(t, name, 200, first(apiOf(t, config).do("GET", configMaps, "")))
	}
	conn, err := tls.Dial("tcp", strings.TrimPrefix(plane.URL(), "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	equal(t, "serving certificate", true, conn.ConnectionState().PeerCertificates[0].Equal(pair.Leaf))
}

func first(code int, _ []byte) int { return code }

// clientPair returns the certificate and key in a plane's kubeconfig.
func clientPair(t *testing.T, plane *controlplane.Plane) (crt, key []byte) {
	t.Helper()
	config := configOf(t, plane)
	return config.CertData, config.KeyData
}

func TestPlaneStopEndsWatchesOfTheNetwork(t *testing.T) {
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
	api.onlyLease(t, first)
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, again := listening(t, controlplane.Options{DataDir: dir})
	again.onlyLease(t, second)
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

// onlyLease waits until a plane has its identity Lease, and those of earlier starts are gone.
func (a *api) onlyLease(t *testing.T, of *controlplane.Plane) {
	t.Helper()
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	a.until(t, leases+"?watch=1", func(string, *unstructured.Unstructured) bool {
		items, _, _ := unstructured.NestedSlice(a.must("GET", leases, "").Object, "items")
		if len(items) != 1 {
			return false
		}
		address, _, _ := unstructured.NestedString(items[0].(map[string]any), "metadata", "annotations", "steer.dev/address")
		return address == strings.TrimPrefix(of.URL(), "https://")
	})
}

func TestSnapshotEndpointRequiresSystemMasters(t *testing.T) {
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
