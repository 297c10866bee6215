// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/cmd/steer/internal/dev/webhooks"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

// withDebugger makes a project that has a stand-in for dlv as a tool: it prints its
// arguments.
func withDebugger(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.com/guestbook\n\ngo 1.26.0\n\ntool example.com/guestbook/tools/dlv\n",
		"tools/dlv/main.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() { fmt.Println(os.Args[1:]) }\n",
		webhookFile: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: validating-webhook-configuration},
  webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {namespace: system, name: webhooks}}}]}`,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// standIn is a target with nothing around the operator.
type standIn struct{ dir string }

func (standIn) prepare(context.Context) error  { return nil }
func (standIn) complete(context.Context) error { return nil }
func (standIn) late(context.Context) error     { return nil }
func (standIn) arguments() []string            { return []string{"--a"} }
func (standIn) environment() []string          { return nil }
func (s standIn) folder() string               { return s.dir }

func TestDebuggerRunsTheOperator(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	l := &loop{Options: Options{Dir: withDebugger(t), Out: &out, Errs: &errs, Debug: "127.0.0.1:2345"}, target: standIn{"bin"}, advice: &advice{}}
	if err := l.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if how := <-l.ended; how != "exit status 0" {
		t.Errorf("the debugger ended with %s", how)
	}
	want := "[exec --headless --listen=127.0.0.1:2345 --api-version=2 --accept-multiclient --continue " + l.binary() + " -- --zap-devel --health-probe-bind-address=0 --a]\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
	if want := "debuggers of Go can attach to 127.0.0.1:2345, as with: dlv connect 127.0.0.1:2345"; !strings.Contains(errs.String(), want) {
		t.Errorf("%q lacks %q", errs.String(), want)
	}
}

// TestDebuggerStopsInReconcile of a whole project, where dlv is installed.
func TestDebuggerStopsInReconcile(t *testing.T) {
	t.Parallel()
	dlv, err := exec.LookPath("dlv")
	if err != nil {
		t.Skip("the debugger is not installed")
	}
	dir := t.TempDir()
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}}); err != nil {
		t.Fatal(err)
	}
	address, err := webhooks.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	d := develop(t, dir, func(o *Options) { o.Debug = address })
	defer d.stop()
	d.reconciled("the cluster is as the spec says")

	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("break (*GuestbookReconciler).Reconcile\ncontinue\nprint obj.ObjectMeta.Name\nclearall\nquit -c\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	debugger := exec.CommandContext(t.Context(), dlv, "connect", address, "--allow-non-terminal-interactive=true", "--init", script)
	debugger.Stdout, debugger.Stderr = &said, &said
	if err := debugger.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- debugger.Wait() }()
	for { // until one comes after the breakpoint is set
		more := &guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "more-"}}
		if err := d.client.Create(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil || !strings.Contains(said.String(), `"more-`) {
				t.Errorf("the debugger: %v\n%s", err, said.String())
			}
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// TestWebhooksWaitForADebuggerWhileThereIsOne that a key turns on and off.
func TestWebhooksWaitForADebuggerWhileThereIsOne(t *testing.T) {
	t.Parallel()
	plane := startedPlane(t)
	operator := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(operator.Close)
	c, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: "steer-dev"})
	if err != nil {
		t.Fatal(err)
	}
	o := &own{
		loop:     &loop{Options: Options{Dir: withDebugger(t), Errs: io.Discard}, client: c, applied: map[string]string{}},
		webhooks: webhooks.New(operator.Listener.Addr().String()),
	}
	if err := MakeState(o.Dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{10, 30, 10} {
		if err := o.complete(t.Context()); err != nil {
			t.Fatal(err)
		}
		live := client.NewUnstructured(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"})
		if err := c.Get(t.Context(), client.ObjectKey{Name: "validating-webhook-configuration"}, live); err != nil {
			t.Fatal(err)
		}
		hooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
		if got := hooks[0].(map[string]any)["timeoutSeconds"]; got != want {
			t.Errorf("debugging: %t: webhooks have %v seconds, want %d", o.Debug != "", got, want)
		}
		if err := o.toggleDebug(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDebuggerThatIsMissingIsNotTurnedOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dlv"); err == nil {
		t.Skip("the debugger is installed")
	}
	l := &loop{Options: Options{Dir: t.TempDir()}, applied: map[string]string{}}
	if err := l.toggleDebug(t.Context()); !errors.Is(err, errNoDebugger) || l.Debug != "" {
		t.Errorf("got %v, and the address %q", err, l.Debug)
	}
}
