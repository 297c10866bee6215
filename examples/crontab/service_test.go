// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/examples/crontab"
	"github.com/steer-dev/steer/manager"
)

// service is what leads connections to one of the endpoints, at random, as kube-proxy
// does. API servers reach it by a Service of type ExternalName.
type service struct {
	listener  net.Listener
	carrying  sync.WaitGroup
	mu        sync.Mutex
	endpoints []string
	conns     []net.Conn
}

func newService(t *testing.T) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{listener: listener}
	s.carrying.Go(s.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.carrying.Wait()
	})
	return s
}

func (s *service) port() int64 { return int64(s.listener.Addr().(*net.TCPAddr).Port) }

func (s *service) accept() {
	for {
		from, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		var endpoint string
		if n := len(s.endpoints); n > 0 {
			endpoint = s.endpoints[rand.IntN(n)]
		}
		s.mu.Unlock()
		to, err := net.Dial("tcp", endpoint)
		if err != nil {
			_ = from.Close()
			continue
		}
		s.mu.Lock()
		s.conns = append(s.conns, from, to)
		s.mu.Unlock()
		carry := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_ = to.Close()
			_ = from.Close()
		}
		s.carrying.Go(func() { carry(to, from) })
		s.carrying.Go(func() { carry(from, to) })
	}
}

func (s *service) add(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = append(s.endpoints, endpoint)
}

func (s *service) remove(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endpoints = slices.DeleteFunc(s.endpoints, func(e string) bool { return e == endpoint })
}

// install brings the generated manifests to a server, with the Service in them. It
// returns a client of the server.
func (s *service) install(ctx context.Context, t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	scheme, err := client.NewScheme(append(crontab.Operator().Scheme, corev1.AddToScheme, admissionv1.AddToScheme)...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme, FieldOwner: "user"})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "system"}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "webhook-service"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		},
	} {
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := manifest.Read(generated, "config/webhook")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		setPort(o.Object, s.port())
	}
	if err := manifest.Apply(ctx, c, "", objects); err != nil {
		t.Fatal(err)
	}
	return c
}

// trusted waits until the API server has the caBundles.
func trusted(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	_, err := await.Object(ctx, c, client.ObjectKey{Name: "mutating-webhook-configuration"}, func(m *admissionv1.MutatingWebhookConfiguration) bool {
		return m.Webhooks[0].ClientConfig.CABundle != nil
	})
	if err == nil {
		_, err = await.Object(ctx, c, client.ObjectKey{Name: "validating-webhook-configuration"}, func(v *admissionv1.ValidatingWebhookConfiguration) bool {
			return v.Webhooks[0].ClientConfig.CABundle != nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// setPort gives every Service in an object a port.
func setPort(value any, port int64) {
	switch value := value.(type) {
	case map[string]any:
		if service, ok := value["service"].(map[string]any); ok {
			service["port"] = port
		}
		for _, v := range value {
			setPort(v, port)
		}
	case []any:
		for _, v := range value {
			setPort(v, port)
		}
	}
}

// replica is a running operator.
type replica struct {
	manager *manager.Manager
	stop    context.CancelFunc
	ended   chan error
}

// startReplica runs the operator, with an authority of its own, until its webhooks are
// ready.
func startReplica(ctx context.Context, t *testing.T, cfg *rest.Config, configure func(*manager.Options)) *replica {
	t.Helper()
	op := crontab.Operator()
	op.Config = cfg
	op.Configure = func(o *manager.Options) {
		o.Webhooks.Address, o.Webhooks.Authority.Namespace = "127.0.0.1:0", "system"
		configure(o)
	}
	made := make(chan *manager.Manager, 1)
	setUp := op.Setup
	op.Setup = func(ctx context.Context, m *manager.Manager) error {
		defer func() { made <- m }()
		return setUp(ctx, m)
	}
	running, stop := context.WithCancel(ctx)
	r := &replica{stop: stop, ended: make(chan error, 1)}
	go func() {
		r.ended <- steer.Run(running, []string{"--health-probe-bind-address=0", "--zap-log-level=error", "--leader-elect", "--leader-election-namespace=system"}, op)
	}()
	select {
	case r.manager = <-made:
	case err := <-r.ended:
		t.Fatalf("the operator ended: %v", err)
	}
	r.awaitReady(ctx, t, true)
	return r
}

// awaitReady waits until the webhooks are ready, or are not.
func (r *replica) awaitReady(ctx context.Context, t *testing.T, ready bool) {
	t.Helper()
	for (r.manager.Webhooks().Ready(nil) == nil) != ready {
		if err := pause(ctx); err != nil {
			t.Fatalf("the webhooks do not become ready: %t: %v", ready, r.manager.Webhooks().Ready(nil))
		}
	}
}

func (r *replica) address() string { return r.manager.Webhooks().Addr().String() }

// await waits for the end of a replica that was told to stop.
func (r *replica) await() error {
	if err := <-r.ended; err != nil {
		return fmt.Errorf("a replica ended: %w", err)
	}
	return nil
}
