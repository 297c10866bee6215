// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
)

// TestSampleAPIServerBehindSteer has the sample of Kubernetes, with an etcd of its own, serve
// its kinds behind a control plane as it does behind a cluster. Module oracle builds both;
// STEER_UPSTREAM_BIN names the directory of the programs.
func TestSampleAPIServerBehindSteer(t *testing.T) {
	t.Parallel()
	binaries := os.Getenv("STEER_UPSTREAM_BIN")
	if binaries == "" {
		t.Skip("STEER_UPSTREAM_BIN is not set: see oracle/README.md")
	}
	plane, a := listening(t, controlplane.Options{})
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	clients, peers, port := freePort(t), freePort(t), freePort(t)
	program(t, filepath.Join(binaries, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--log-level=error",
		"--listen-client-urls=http://"+clients, "--advertise-client-urls=http://"+clients,
		"--listen-peer-urls=http://"+peers, "--initial-advertise-peer-urls=http://"+peers, "--initial-cluster=default=http://"+peers)
	_, number, _ := net.SplitHostPort(port)
	program(t, filepath.Join(binaries, "sample-apiserver"), "--etcd-servers=http://"+clients, "--cert-dir="+filepath.Join(dir, "certs"),
		"--bind-address=127.0.0.1", "--secure-port="+number,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
	a.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: wardle}}")
	a.must("POST", "/api/v1/namespaces/wardle/services", "{apiVersion: v1, kind: Service, metadata: {name: api}, spec: {type: ExternalName, externalName: localhost, ports: [{port: "+number+"}]}}")
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		a.must("POST", apiServices, fmt.Sprintf("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: %s.wardle.example.com}, spec: {insecureSkipTLSVerify: true, "+
			"group: wardle.example.com, version: %[1]s, groupPriorityMinimum: 1000, versionPriority: 15, service: {namespace: wardle, name: api, port: %s}}}", version, number))
	}
	const alpha, beta = "/apis/wardle.example.com/v1alpha1", "/apis/wardle.example.com/v1beta1"
	const flunders = alpha + "/namespaces/default/flunders"
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(2 * time.Minute); ; {
		one, _ := a.do("GET", flunders, "")
		other, last := a.do("GET", beta+"/flunders", "")
		if one == http.StatusOK && other == http.StatusOK {
			break
		}
		select {
		case <-end:
			t.Fatalf("flunders are not served: %d, %d %s", one, other, last)
		case <-tick.C:
		}
	}

	first := a.must("POST", flunders, "{apiVersion: wardle.example.com/v1alpha1, kind: Flunder, metadata: {name: first, labels: {a: b}}, spec: {reference: other}}")
	// The other version, by the conversion of the server.
	got := a.must("GET", beta+"/namespaces/default/flunders/first", "")
	if reference, _, _ := unstructured.NestedString(got.Object, "spec", "flunderReference"); got.GetUID() != first.GetUID() || reference != "other" {
		t.Errorf("in v1beta1 it is %v", got.Object)
	}
	if names := a.names(flunders + "?labelSelector=a%3Db"); len(names) != 1 || names[0] != "first" {
		t.Errorf("the list has %q", names)
	}
	code, answer := a.send("PATCH", flunders+"/applied?fieldManager=test", "{apiVersion: wardle.example.com/v1alpha1, kind: Flunder, metadata: {name: applied}, spec: {reference: first}}",
		map[string]string{"Content-Type": "application/apply-patch+yaml"})
	if code != http.StatusCreated || !strings.Contains(string(answer), `"manager":"test"`) {
		t.Errorf("apply: %d %s", code, answer)
	}
	var seen []string
	a.until(t, flunders+"?watch=true&resourceVersion="+first.GetResourceVersion(), func(event string, o *unstructured.Unstructured) bool {
		if seen = append(seen, event+" "+o.GetName()); event == "ADDED" {
			go a.do("DELETE", flunders+"/"+o.GetName(), "")
		}
		return event == "DELETED"
	})
	if want := "ADDED applied, DELETED applied"; strings.Join(seen, ", ") != want {
		t.Errorf("the watch has %q, want %s", seen, want)
	}
	// Its own admission, and its own validation.
	a.must("POST", alpha+"/fischers", "{apiVersion: wardle.example.com/v1alpha1, kind: Fischer, metadata: {name: f}, disallowedFlunders: [bad]}")
	refused := "{apiVersion: wardle.example.com/v1alpha1, kind: Flunder, metadata: {name: bad}, spec: {}}"
	for end := time.After(time.Minute); ; { // its plugin has a cache
		code, answer := a.do("POST", flunders+"?dryRun=All", refused)
		if code == http.StatusForbidden {
			break
		}
		select {
		case <-end:
			t.Fatalf("a flunder that is not allowed: %d %s", code, answer)
		case <-tick.C:
		}
	}
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		for args, want := range map[string]string{
			"get flunders -o name": "flunder.wardle.example.com/first\n",
			"explain --api-version wardle.example.com/v1alpha1 flunder.spec.reference": "A name of another flunder or fischer",
			"label flunder first by=kubectl":                                           "flunder.wardle.example.com/first labeled\n",
		} {
			cmd := exec.CommandContext(t.Context(), kubectl, append([]string{"--kubeconfig", kubeconfig, "--cache-dir", t.TempDir(), "--namespace", "default"}, strings.Fields(args)...)...)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
				t.Errorf("kubectl %s: %v\n%s", args, err, out)
			}
		}
	}
	// The deletion of a namespace takes its flunders along; the collector follows owners.
	a.must("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: over}}")
	a.must("POST", alpha+"/namespaces/over/flunders", "{apiVersion: wardle.example.com/v1alpha1, kind: Flunder, metadata: {name: one}, spec: {}}")
	a.must("DELETE", "/api/v1/namespaces/over", "")
	a.untilGone(t, "/api/v1/namespaces", "over")
	if names := a.names(alpha + "/flunders"); len(names) != 1 || names[0] != "first" {
		t.Errorf("after the deletion of a namespace there are %q", names)
	}
	owned := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: wardle.example.com/v1alpha1, kind: Flunder, name: first, uid: %s}]}}", first.GetUID())
	a.must("POST", "/api/v1/namespaces/default/configmaps", owned)
	a.must("DELETE", flunders+"/first", "")
	a.untilGone(t, "/api/v1/namespaces/default/configmaps", "owned")
}

// freePort returns an address of the loopback interface that was free.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// program runs a program until the test ends. What it wrote is logged if the test fails.
func program(t *testing.T, path string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if _ = cmd.Wait(); t.Failed() { // it was killed
			t.Logf("%s:\n%s", filepath.Base(path), out.String())
		}
	})
}
