// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

func options(t *testing.T, dir string, errs io.Writer) Options {
	return Options{Dir: dir, Out: io.Discard, Errs: errs, Cache: t.TempDir(), Keys: t.TempDir(), Version: "devel"}
}

// developed is a steer dev that runs in a project.
type developed struct {
	t      *testing.T
	dir    string
	lines  *bufio.Scanner
	seen   strings.Builder
	client client.Client
	server string
	stop   func()       // ends it
	ended  func() error // waits until it has ended by itself
}

// begin starts steer dev in a project.
func begin(t *testing.T, dir string, change func(o *Options)) *developed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	read, write := io.Pipe()
	o := options(t, dir, write)
	change(&o)
	done := make(chan error, 1)
	go func() {
		err := Project(ctx, o)
		write.Close()
		done <- err
	}()
	d := &developed{t: t, dir: dir, lines: bufio.NewScanner(read)}
	d.ended = func() error {
		_, _ = io.Copy(io.Discard, read) // until it has ended
		return <-done
	}
	d.stop = func() {
		cancel()
		if err := d.ended(); err != nil {
			t.Errorf("steer dev: %v", err)
		}
	}
	t.Cleanup(cancel)
	return d
}

// develop starts steer dev with a control plane of the project's own, and waits until the
// operator runs.
func develop(t *testing.T, dir string, change func(o *Options)) *developed {
	t.Helper()
	d := begin(t, dir, change)
	d.await("the operator runs")
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, ".steer", "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	d.server = config.Host
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "webapp.example.com", Version: "v1", Kind: "Guestbook"}, &guestbook{})
	if d.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return d
}

// await reads what is printed up to a line.
func (d *developed) await(text string) {
	d.t.Helper()
	for d.lines.Scan() {
		d.seen.WriteString(d.lines.Text() + "\n")
		if strings.Contains(d.lines.Text(), text) {
			return
		}
	}
	d.t.Fatalf("%q was not printed:\n%s", text, d.seen.String())
}

// save replaces texts in a file, and saves it once: an old one, what it becomes, and so on.
func (d *developed) save(name string, edits ...string) {
	d.t.Helper()
	file := filepath.Join(d.dir, filepath.FromSlash(name))
	text, err := os.ReadFile(file)
	for i := 0; i < len(edits); i += 2 {
		if err != nil || !strings.Contains(string(text), edits[i]) {
			d.t.Fatalf("%s lacks %q: %v", name, edits[i], err)
		}
		text = []byte(strings.Replace(string(text), edits[i], edits[i+1], 1))
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// guestbook is as much of the project's kind as the test reads.
type guestbook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (g *guestbook) DeepCopyObject() runtime.Object {
	out := *g
	out.ObjectMeta = *g.ObjectMeta.DeepCopy()
	out.Status.Conditions = slices.Clone(g.Status.Conditions)
	return &out
}

// reconciled waits for the message of the condition of the sample.
func (d *developed) reconciled(message string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	_, err := await.Object(ctx, d.client, client.ObjectKey{Namespace: "default", Name: "guestbook-sample"}, func(g *guestbook) bool {
		return g != nil && len(g.Status.Conditions) == 1 && g.Status.Conditions[0].Message == message
	})
	if err != nil {
		d.t.Fatalf("%v\n%s", err, d.seen.String())
	}
}

// TestDevRunsTheOperatorAnewOnEverySave builds and links an operator some twenty times.
func TestDevRunsTheOperatorAnewOnEverySave(t *testing.T) {
	if os.Getenv("STEER_PROJECTS") == "" {
		t.Skip("runs in `.ci/run projects`: set STEER_PROJECTS=1")
	}
	t.Parallel()
	const code = "internal/controller/guestbook_controller.go"
	dir := t.TempDir()
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: gvk}); err != nil {
		t.Fatal(err)
	}
	d := develop(t, dir, func(*Options) {})
	d.reconciled("the cluster is as the spec says")

	began := time.Now()
	d.save(code, "the cluster is as the spec says", "edited once")
	d.await("the operator runs")
	d.reconciled("edited once")
	t.Logf("from a save to reconciling: %s", time.Since(began))

	// Markers count as well as code, and mistakes of both leave what runs.
	d.save("api/v1/guestbook_types.go", "// +kubebuilder:subresource:status", "// +kubebuilder:subresource:statis")
	d.await("guestbook_types.go:")
	d.await("what runs goes on until a file is saved")
	d.save(code, "return controller.Done(), nil", "return controller.Don(), nil")
	d.await("what runs goes on until a file is saved")
	d.save("api/v1/guestbook_types.go", "statis", "status")
	d.await("undefined: controller.Don")
	d.await("what runs goes on until a file is saved")
	d.save(code, "Don()", "Done()")
	d.await("the operator runs")
	d.save("api/v1/guestbook_types.go", "\t// +optional\n\tFoo string", "\t// +kubebuilder:default=fighters\n\t// +optional\n\tFoo string")
	d.await("the operator runs")
	crd := client.NewMetadata(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := d.client.Get(t.Context(), client.ObjectKey{Name: "guestbooks.webapp.example.com"}, crd); err != nil || crd.GetGeneration() != 2 {
		t.Errorf("the CRD is of generation %d, want 2 (%v)", crd.GetGeneration(), err)
	}

	// The operator has the rights of its role, and the lack of one names the marker.
	d.save(code, "resources=guestbooks/status,verbs=patch", "resources=guestbooks/status,verbs=get", "edited once", "edited twice")
	d.await("may not patch guestbooks/status (webapp.example.com); add the marker at internal/controller/guestbook_controller.go:22: " +
		"// +kubebuilder:rbac:groups=webapp.example.com,resources=guestbooks/status,verbs=patch")
	d.save(code, "resources=guestbooks/status,verbs=get", "resources=guestbooks/status,verbs=patch")
	d.await("the operator runs")

	// Webhooks are called, those of the newest code, until they are deleted.
	hooks := scaffold.WebhookOptions{Dir: dir, GVK: gvk, Validation: true}
	if _, err := scaffold.CreateWebhook(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
	d.save("internal/webhook/v1/guestbook_webhook.go", "return nil, nil", "return nil, errors.New(\"no guestbooks today\")")
	more := func() error {
		return d.client.Create(t.Context(), &guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "more-"}})
	}
	for err := more(); err == nil || !strings.Contains(err.Error(), "no guestbooks today"); err = more() {
		d.await("the operator runs") // a command can be seen half-way
	}
	if _, err := scaffold.DeleteWebhook(t.Context(), scaffold.DeleteOptions{Dir: dir, GVK: gvk, Force: true}); err != nil {
		t.Fatal(err)
	}
	for more() != nil {
		d.await("the operator runs")
	}
	if strings.Contains(d.seen.String(), "self-signed") {
		t.Errorf("it warns of a certificate that no server asks for:\n%s", d.seen.String())
	}

	// A further kind comes with its sample.
	further := project.GVK{Group: "webapp", Version: "v1", Kind: "Visitor"}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: further}); err != nil {
		t.Fatal(err)
	}
	visitor := client.NewMetadata(schema.GroupVersionKind{Group: "webapp.example.com", Version: "v1", Kind: "Visitor"})
	for d.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "visitor-sample"}, visitor) != nil {
		d.await("the operator runs") // a command can be seen half-way
	}

	servesBeside(d)

	// Data and address stay, and a sample that was deleted is not made again.
	sample := &guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guestbook-sample"}}
	if err := d.client.Delete(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	d.stop()
	if err := os.WriteFile(filepath.Join(dir, "cmd", "input.go"), []byte(readsInput), 0o644); err != nil {
		t.Fatal(err)
	}
	input, keyboard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	defer keyboard.Close()
	again := develop(t, dir, func(o *Options) { o.In = input })
	defer again.stop()
	for _, line := range []string{"first", "second"} { // the second one goes to another process
		if _, err := keyboard.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
		again.await("the operator read " + line)
		again.save("cmd/input.go", "// "+line, "//")
		again.await("the operator runs")
	}
	if again.server != d.server {
		t.Errorf("the address was %s and is %s", d.server, again.server)
	}
	if err := again.client.Get(t.Context(), client.ObjectKeyFromObject(sample), sample); !apierrors.IsNotFound(err) {
		t.Errorf("the sample is there again: %v", err)
	}
	if err := Project(t.Context(), options(t, dir, io.Discard)); err == nil || !strings.Contains(err.Error(), "another steer dev runs in this project") {
		t.Errorf("a second one in the project: %v", err)
	}
}

// readsInput is a file of an operator that reads standard input.
const readsInput = `package main

import (
	"bufio"
	"log"
	"os"
)

// first
// second
var _ = func() int {
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			log.Print("the operator read ", lines.Text())
		}
	}()
	return 0
}()
`

// servesBeside adds a custom API server to the project, which serves behind the control
// plane, and removes it.
func servesBeside(d *developed) {
	d.t.Helper()
	gvk := project.GVK{Group: "notes", Version: "v1", Kind: "Note"}
	if _, err := scaffold.CreateServer(d.t.Context(), scaffold.ServerOptions{Dir: d.dir, GVK: gvk}); err != nil {
		d.t.Fatal(err)
	}
	write := func() error {
		note := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"foo": "bar"}}}
		note.SetGroupVersionKind(schema.GroupVersionKind{Group: "notes.example.com", Version: "v1", Kind: "Note"})
		note.SetNamespace("default")
		note.SetGenerateName("note-")
		return d.client.Create(d.t.Context(), note)
	}
	for write() != nil {
		d.await("the operator runs") // a command can be seen half-way
	}
	if _, err := scaffold.DeleteServer(d.t.Context(), scaffold.DeleteOptions{Dir: d.dir, GVK: gvk, Force: true}); err != nil {
		d.t.Fatal(err)
	}
	for write() == nil {
		d.await("the operator runs")
	}
}

func TestDevWithoutAProjectIsAWrongUsage(t *testing.T) {
	t.Parallel()
	if err := Project(t.Context(), options(t, t.TempDir(), io.Discard)); !errors.Is(err, project.ErrUsage) {
		t.Errorf("got %v", err)
	}
}
