// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page walks through the page of an operator with a browser, and measures what it costs
// the browser.
package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/examples/replicas"
	v1 "github.com/steer-dev/steer/examples/replicas/api/v1"
	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/manager"
)

// Subject is a control plane, an operator with faults, and its page, each as users start them: the
// operator of examples/replicas, and controllers that
//
//   - fail for good: one that registers Fleets elsewhere is refused for Fleet search
//   - come back every 10 s: one that looks after the certificate of Fleet cache
//   - keep each other busy: two that write a field of ConfigMap prices
//
// The Pods of Fleet search find no node, and a user, bob, scales Fleet web.
type Subject struct {
	// URL is that of the page, with its token.
	URL string

	dir     string
	running []*children.Child
	reading sync.WaitGroup // what they print
	stop    context.CancelFunc
	ended   sync.WaitGroup // the operator
	failed  error          // of the operator
}

// Open starts one with the program steer, within ctx. root is the directory of the main module.
// Close ends it.
func Open(ctx context.Context, steer, root string) (s *Subject, err error) {
	if steer, err = filepath.Abs(steer); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "steer-page-")
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // it goes on after ctx, which is for the start
	s = &Subject{dir: dir, stop: stop}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	kubeconfig, records := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "fleets")
	if err := os.Mkdir(records, 0o700); err != nil {
		return s, err
	}
	if _, err := s.start(ctx, "Ctrl-C", steer, "up", "--in-memory", "--listen=127.0.0.1:0", "--kubeconfig="+kubeconfig,
		"--workloads", "--outcome=example.com/fleet=search: unschedulable"); err != nil {
		return s, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return s, err
	}
	scheme, err := client.NewScheme(v1.AddToScheme, corev1.AddToScheme)
	if err != nil {
		return s, err
	}
	c, err := client.New(config, client.Options{FieldOwner: "kubectl", Scheme: scheme})
	if err != nil {
		return s, err
	}
	definitions, err := manifest.Read(filepath.Join(root, "examples", "replicas", "config", "crd", "bases"))
	if err != nil {
		return s, err
	}
	if err := manifest.Apply(ctx, c, "", definitions); err != nil {
		return s, err
	}
	m, err := operator(config, scheme, records)
	if err != nil {
		return s, err
	}
	s.ended.Go(func() { s.failed = m.Start(running) })
	if err := settle(ctx, c, config, scheme); err != nil {
		return s, err
	}
	s.URL, err = s.start(ctx, "http://", steer, "page", filepath.Base(records), "--kubeconfig="+kubeconfig)
	return s, err
}

// Close ends all of it.
func (s *Subject) Close() error {
	s.stop()
	s.ended.Wait()
	for i := range s.running {
		child := s.running[len(s.running)-1-i]
		child.Signal(syscall.SIGTERM)
		_ = child.Wait() // it was told to
	}
	s.reading.Wait()
	return errors.Join(s.failed, os.RemoveAll(s.dir))
}

// start starts a program, and returns the line that has a text.
func (s *Subject) start(ctx context.Context, text, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir // the page has the name of its directory of records
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+s.dir)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	child, err := children.Start(cmd)
	if err != nil {
		return "", err
	}
	found := make(chan string, 1)
	s.reading.Go(func() {
		defer close(found)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				found <- lines.Text()
				_, _ = io.Copy(io.Discard, out) // until it ends
				return
			}
		}
	})
	select {
	case line, ok := <-found:
		if ok {
			s.running = append(s.running, child)
			return strings.TrimSpace(line), nil
		}
		return "", fmt.Errorf("%s %s: %w: %s", program, args[0], child.Wait(), complaints.String())
	case <-ctx.Done():
		s.running = append(s.running, child)
		return "", fmt.Errorf("%s %s did not say %q: %w", program, args[0], text, ctx.Err())
	}
}

// settle makes the objects, and has bob scale one.
func settle(ctx context.Context, c client.Client, config *rest.Config, scheme *runtime.Scheme) error {
	fleet := func(name string, replicas int32) *v1.Fleet {
		return &v1.Fleet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.FleetSpec{Replicas: replicas, Image: "registry.example.com/" + name + ":1.4"}}
	}
	objects := []client.Object{
		fleet("web", 3), fleet("cache", 2), fleet("search", 3), fleet("mail", 1), fleet("queue", 2),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "prices", Namespace: "default"}, Data: map[string]string{"currency": "CHF"}},
	}
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	of := rest.CopyConfig(config)
	of.Impersonate = rest.ImpersonationConfig{UserName: "bob", Groups: []string{"system:masters"}}
	bob, err := client.New(of, client.Options{FieldOwner: "tool-of-bob", Scheme: scheme})
	if err != nil {
		return err
	}
	return bob.Patch(ctx, fleet("web", 0), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`)))
}

// operator makes one with the faults. What it did is in a directory of records.
func operator(config *rest.Config, scheme *runtime.Scheme, records string) (*manager.Manager, error) {
	m, err := manager.New(config, manager.Options{Name: "town", Scheme: scheme, RecordDir: records, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	register := func(_ context.Context, fleet *v1.Fleet) (controller.Result, error) {
		if fleet.Name == "search" {
			return controller.Result{}, errors.New("registering default/search: the directory answers 422: port 9200 is taken by default/logs")
		}
		return controller.Done(), nil
	}
	renew := func(_ context.Context, fleet *v1.Fleet) (controller.Result, error) {
		if fleet.Name == "cache" {
			return controller.After(10 * time.Second), nil
		}
		return controller.Done(), nil
	}
	prices := controller.Where(func(e controller.Event[*corev1.ConfigMap]) bool { return e.Object.Name == "prices" })
	return m, errors.Join(
		controller.Add(m, &replicas.Reconciler{}, controller.Owns[*corev1.Pod]()),
		controller.Add(m, controller.Func[*v1.Fleet](register), controller.Name("directory")),
		controller.Add(m, controller.Func[*v1.Fleet](renew), controller.Name("certificates")),
		controller.Add(m, sets(m, "EUR"), controller.Name("currency"), prices),
		controller.Add(m, sets(m, "USD"), controller.Name("exchange"), prices),
	)
}

// sets keeps a ConfigMap at a currency. It takes a moment, as one that asks others does.
func sets(m *manager.Manager, currency string) controller.Func[*corev1.ConfigMap] {
	return func(ctx context.Context, prices *corev1.ConfigMap) (controller.Result, error) {
		if prices.Data["currency"] == currency {
			return controller.Done(), nil
		}
		select {
		case <-ctx.Done():
			return controller.Result{}, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		before := prices.DeepCopy()
		prices.Data["currency"] = currency
		return controller.Done(), m.Client().Patch(ctx, prices, client.MergeFrom(before))
	}
}
