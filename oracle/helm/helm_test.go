// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helm runs Helm, built from its Go module, against a control plane with
// simulated workloads.
package helm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every command, and what Helm waits for.
const patience = 2 * time.Minute

// cluster is an API server, and the programs to use on it.
type cluster struct {
	t           *testing.T
	steer, helm string
	kubeconfig  string
	env         []string
}

// newCluster builds steer and helm, for the API server of a kubeconfig; where none is
// given, for one that is to be started.
func newCluster(t *testing.T, kubeconfig string) *cluster {
	dir := t.TempDir()
	c := &cluster{t: t, steer: filepath.Join(dir, "steer"), helm: filepath.Join(dir, "helm")}
	c.kubeconfig = cmp.Or(kubeconfig, filepath.Join(dir, "kubeconfig"))
	build(t, "../..", c.steer, "./cmd/steer")
	if given := os.Getenv("STEER_HELM"); given != "" {
		c.helm = given
	} else {
		build(t, ".", c.helm, "helm.sh/helm/v3/cmd/helm")
	}
	c.env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "HELM_DATA_HOME="+dir)
	return c
}

// newSimulated is a cluster of a steer up with simulated workloads.
func newSimulated(t *testing.T) *cluster {
	c := newCluster(t, "")
	up := exec.Command(c.steer, "up", "--in-memory", "--workloads", "--listen", "127.0.0.1:0", "--kubeconfig", c.kubeconfig,
		"--outcome", "app.kubernetes.io/instance=web: ready after 300ms", "--outcome", "app.kubernetes.io/instance=broken: crash loop")
	up.Stderr = os.Stderr
	ready := make(chan struct{})
	up.Stdout = &firstWrite{done: ready}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGINT) // if it has ended, Wait tells
		if err := up.Wait(); err != nil {
			t.Errorf("steer up: %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("steer up does not say that it is up")
	}
	return c
}

// firstWrite closes a channel when something is written for the first time.
type firstWrite struct{ done chan struct{} }

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.done != nil {
		close(w.done)
		w.done = nil
	}
	return len(p), nil
}

func build(t *testing.T, dir, to, pkg string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", to, pkg)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
}

// run runs helm and returns what it said and whether it failed.
func (c *cluster) run(args ...string) (string, error) {
	c.t.Helper()
	return c.runProgram("", c.helm, args...)
}

// runProgram runs a program in a folder.
func (c *cluster) runProgram(dir, program string, args ...string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, c.env
	var out, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &warnings
	began := time.Now()
	err := cmd.Run()
	c.t.Logf("%s %s (%s)\n%s%s", filepath.Base(program), strings.Join(args, " "), time.Since(began).Round(time.Millisecond), out.String(), warnings.String())
	if err != nil {
		err = fmt.Errorf("%w: %s", err, warnings.String())
	}
	return out.String(), err
}

func (c *cluster) must(args ...string) string {
	c.t.Helper()
	return c.mustIn("", c.helm, args...)
}

// mustIn runs a program in a folder, and ends the test if it fails.
func (c *cluster) mustIn(dir, program string, args ...string) string {
	c.t.Helper()
	out, err := c.runProgram(dir, program, args...)
	if err != nil {
		c.t.Fatalf("%s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
	}
	return out
}

// revision is a release as helm history shows it.
type revision struct {
	Revision    int    `json:"revision"`
	Status      string `json:"status"`
	Description string `json:"description"`
}

func (c *cluster) history(release string, args ...string) string {
	c.t.Helper()
	var all []revision
	if err := json.Unmarshal([]byte(c.must(append(args, "history", release, "-o", "json")...)), &all); err != nil {
		c.t.Fatal(err)
	}
	var lines []string
	for _, r := range all {
		lines = append(lines, fmt.Sprintf("%d %s %s", r.Revision, r.Status, r.Description))
	}
	return strings.Join(lines, "\n")
}

func (c *cluster) equal(what, want, got string) {
	c.t.Helper()
	if want != got {
		c.t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// TestHelm lets Helm do its work on one control plane.
func TestHelm(t *testing.T) {
	c := newSimulated(t)
	t.Run("a release lives its life", func(t *testing.T) { c.in(t).life() })
	t.Run("an installation that never gets ready is taken back", func(t *testing.T) { c.in(t).takenBack() })
}

// in returns the cluster for a subtest.
func (c *cluster) in(t *testing.T) *cluster {
	sub := *c
	sub.t = t
	return &sub
}

// life is install, upgrade, a failing upgrade, rollback and uninstall, each
// waited for.
func (c *cluster) life() {
	const chart = "testdata/web"
	c.must("install", "web", chart, "--wait", "--timeout", "60s")
	c.must("upgrade", "web", chart, "--wait", "--timeout", "60s", "--set", "image=example.com/web:2", "--set", "replicas=3")
	if _, err := c.run("upgrade", "web", chart, "--set", "replicas=-1"); err == nil || !strings.Contains(err.Error(), "spec.replicas: Invalid value: -1") {
		c.t.Errorf("an upgrade to -1 replicas: %v", err)
	}
	c.must("rollback", "web", "1", "--wait", "--timeout", "60s")
	if manifest := c.must("get", "manifest", "web"); !strings.Contains(manifest, "image: example.com/web:1") {
		c.t.Errorf("after the rollback:\n%s", manifest)
	}
	c.equal("history", "1 superseded Install complete\n2 superseded Upgrade complete\n3 failed Upgrade \"web\" failed: cannot patch \"web\" with kind Deployment: Deployment.apps \"web\" is invalid: "+
		"spec.replicas: Invalid value: -1: must be greater than or equal to 0\n4 deployed Rollback to 1", c.history("web"))
	c.must("uninstall", "web", "--wait", "--timeout", "60s")
	c.equal("releases", "[]", strings.TrimSpace(c.must("list", "--all", "-o", "json")))
}

// takenBack is an installation of Pods that crash: --atomic waits, gives up and
// removes what it made.
func (c *cluster) takenBack() {
	if _, err := c.run("install", "broken", "testdata/web", "--atomic", "--timeout", "5s"); err == nil {
		c.t.Error("it was installed although its Pods crash")
	}
	c.equal("releases", "[]", strings.TrimSpace(c.must("list", "--all", "-o", "json")))
}
