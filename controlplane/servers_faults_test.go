// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// balancer gives each connection to the next server that accepts it.
type balancer struct {
	listener net.Listener

	mu      sync.Mutex
	servers []string // host and port
	next    int
}

// balance returns the balancer of the servers of a cluster.
func (c *cluster) balance() *balancer {
	c.Helper()
	l, err := new(net.ListenConfig).Listen(c.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		c.Fatal(err)
	}
	b := &balancer{listener: l}
	b.set(c.servers...)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { b.carry(conn) })
		}
	})
	c.Cleanup(func() { _ = l.Close() })
	return b
}

// set replaces the servers.
func (b *balancer) set(servers ...*server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers = nil
	for _, s := range servers {
		b.servers = append(b.servers, s.URL()[len("https://"):])
	}
}

// connect returns a connection to a server, nil if none accepts it.
func (b *balancer) connect() net.Conn {
	b.mu.Lock()
	servers, first := b.servers, b.next
	b.next++
	b.mu.Unlock()
	for i := range servers {
		if conn, err := net.Dial("tcp", servers[(first+i)%len(servers)]); err == nil {
			return conn
		}
	}
	return nil
}

func (b *balancer) carry(client net.Conn) {
	defer client.Close()
	server := b.connect()
	if server == nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(client, server)
}

// dynamic returns a client of an address.
func (c *cluster) dynamic(address string) dynamic.Interface {
	c.Helper()
	raw, err := c.servers[0].Kubeconfig()
	if err != nil {
		c.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		c.Fatal(err)
	}
	config.Host, config.QPS = "https://"+address, -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}
	return client
}

var configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// load writes and watches ConfigMaps until it is stopped.
type load struct {
	*testing.T
	writing, watching sync.WaitGroup
	stop              context.CancelFunc
	stopped           context.Context

	mu           sync.Mutex
	acknowledged map[string]bool
	failed       []error
	watched      [][]string // by watcher, in their order
	progress     chan struct{}
}

// startLoad begins with writers and watchers. What the writers do is counted from 0 in the
// names.
func startLoad(t *testing.T, writers, watchers []dynamic.Interface) *load {
	l := &load{T: t, acknowledged: map[string]bool{}, watched: make([][]string, len(watchers)), progress: make(chan struct{}, 1)}
	l.stopped, l.stop = context.WithCancel(t.Context())
	for i, client := range watchers {
		configMaps := client.Resource(configMapResource).Namespace("default")
		list, err := configMaps.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l.watching.Go(func() { l.watch(i, configMaps, list.GetResourceVersion()) })
	}
	for i, client := range writers {
		l.writing.Go(func() { l.write(i, client.Resource(configMapResource).Namespace("default")) })
	}
	return l
}

func (l *load) write(writer int, to dynamic.ResourceInterface) {
	for n := 0; l.stopped.Err() == nil; n++ {
		name := fmt.Sprintf("w%d-%d", writer, n)
		ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
		_, err := to.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"n": strconv.Itoa(n)},
		}}, metav1.CreateOptions{})
		cancel()
		l.mu.Lock()
		if err != nil {
			l.failed = append(l.failed, fmt.Errorf("create %s: %w", name, err))
		} else {
			l.acknowledged[name] = true
		}
		l.mu.Unlock()
		select {
		case l.progress <- struct{}{}:
		default:
		}
	}
}

// watch notes what was added, over as many watches as it takes, until the object named end
// comes.
func (l *load) watch(watcher int, of dynamic.ResourceInterface, from string) {
	for l.Context().Err() == nil {
		w, err := of.Watch(l.Context(), metav1.ListOptions{ResourceVersion: from})
		if err != nil {
			continue // connections break when servers end
		}
		for e := range w.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == "ERROR" {
				l.Errorf("watcher %d got %s %v", watcher, e.Type, e.Object)
				return
			}
			from = obj.GetResourceVersion()
			if obj.GetName() == "end" {
				w.Stop()
				return
			}
			l.mu.Lock()
			l.watched[watcher] = append(l.watched[watcher], obj.GetName())
			l.mu.Unlock()
		}
	}
}

// await returns after twenty more writes.
func (l *load) await() {
	for range 20 {
		select {
		case <-l.progress:
		case <-time.After(time.Minute):
			l.Fatal("nothing is written")
		}
	}
}

// finish ends the load and checks that what was acknowledged is there, and that every
// watcher has seen what is there once and in the same order.
func (l *load) finish(client dynamic.Interface) {
	l.Helper()
	l.stop()
	l.writing.Wait()
	configMaps := client.Resource(configMapResource).Namespace("default")
	_, err := configMaps.Create(l.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "end"},
	}}, metav1.CreateOptions{})
	if err != nil {
		l.Fatal(err)
	}
	l.watching.Wait()
	list, err := configMaps.List(l.Context(), metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	stored := map[string]bool{}
	for i := range list.Items {
		stored[list.Items[i].GetName()] = true
	}
	for name := range l.acknowledged {
		if !stored[name] {
			l.Errorf("%s was acknowledged and is lost", name)
		}
	}
	for i, seen := range l.watched {
		if !slices.Equal(seen, l.watched[0]) {
			l.Errorf("watchers 0 and %d saw different histories", i)
		}
	}
	once := map[string]bool{}
	for _, name := range l.watched[0] {
		if once[name] {
			l.Errorf("%s was seen twice", name)
		}
		once[name] = true
		if !stored[name] {
			l.Errorf("%s was seen and is not stored", name)
		}
	}
	for name := range l.acknowledged {
		if !once[name] {
			l.Errorf("%s was not seen", name)
		}
	}
	l.Logf("%d writes acknowledged, %d failed", len(l.acknowledged), len(l.failed))
}

func TestServersAreRestartedOneByOneWithoutAFailedRequest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	b := c.balance()
	address := b.listener.Addr().String()
	var writers, watchers []dynamic.Interface
	for range 3 {
		writers, watchers = append(writers, c.dynamic(address)), append(watchers, c.dynamic(address))
	}
	l := startLoad(t, writers, watchers)
	for range 3 {
		l.await()
		old := c.servers[0]
		c.servers = c.servers[1:]
		b.set(c.servers...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := old.Stop(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := old.store.Close(); err != nil {
			t.Error(err)
		}
		c.start()
		b.set(c.servers...)
	}
	l.await()
	l.finish(writers[0])
	for _, err := range l.failed {
		t.Error(err)
	}
}

func TestServersGoOnWhenTheLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	leader, _ := c.leader()
	var writers, watchers []dynamic.Interface
	for _, s := range c.servers {
		if s != leader { // its requests wait with it
			writers, watchers = append(writers, c.dynamic(s.URL()[len("https://"):])), append(watchers, c.dynamic(s.URL()[len("https://"):]))
		}
	}
	l := startLoad(t, writers, watchers)
	for range 2 {
		l.await()
		leader, _ := c.leader()
		thaw := leader.store.Freeze()
		leader.store.Expire()
		c.awaitLeaderOtherThan(leader)
		l.await()
		thaw()
		// Awake, it passes requests on.
		woken := c.dynamic(leader.URL()[len("https://"):]).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		if _, err := woken.Patch(t.Context(), "default", types.MergePatchType, []byte(`{"metadata":{"labels":{"woken":"again"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l.finish(writers[0])
}

// awaitLeaderOtherThan returns when another server leads.
func (c *cluster) awaitLeaderOtherThan(old *server) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	was, _ := old.store.Leader()
	for _, s := range c.servers {
		if s == old {
			continue
		}
		for {
			now, changed := s.store.Leader()
			if now.Term > was.Term {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				c.Fatal("no other server leads")
			}
		}
	}
}
