// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package traffic writes, reads and watches ConfigMaps through the API, and checks what it
// has seen: the operations of each object are linearizable, and so are the uses and the
// revocation of each token; what was acknowledged is stored,
// and every watcher has seen every change once and in order, over as many watches as it took.
package traffic

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// Options of a run.
type Options struct {
	// Address of the servers, as host and port, and how to connect to them.
	Address string
	TLS     *tls.Config
	// Name begins the names of the objects.
	Name string
	// Clients and Watchers are their numbers. Each has connections of its own.
	Clients, Watchers int
	// Pause of a client between two operations, and Timeout of an operation.
	Pause, Timeout time.Duration
}

// Run is traffic that goes on until Finish.
type Run struct {
	Options

	clock             atomic.Int64
	done              atomic.Int64 // operations that have succeeded
	clients, watchers sync.WaitGroup
	stopped           context.Context // the life of the clients
	stop              context.CancelFunc

	mu      sync.Mutex
	history []porcupine.Operation
	uses    []porcupine.Operation // of tokens
	created map[string]bool       // whether it was acknowledged
	failed  []error
	seen    []sight // by watcher
}

// keys is the number of objects that are written again and again.
const keys = 3

// Start begins; ctx bounds only that.
func Start(ctx context.Context, o Options) (*Run, error) {
	r := &Run{Options: o, created: map[string]bool{}, seen: make([]sight, o.Watchers)}
	r.stopped, r.stop = context.WithCancel(context.Background())
	c := r.client()
	for i := range keys {
		if err := c.do(ctx, http.MethodPost, "", r.configMap(r.key(i), ""), nil); err != nil {
			return nil, err
		}
	}
	var list list
	if err := c.do(ctx, http.MethodGet, r.selector(), nil, &list); err != nil {
		return nil, err
	}
	for i := range o.Watchers {
		r.watchers.Go(func() { r.watch(i, list.Metadata.ResourceVersion) })
	}
	for i := range o.Clients {
		r.clients.Go(func() { r.operate(i) })
	}
	r.clients.Go(r.tokens)
	return r, nil
}

func (r *Run) key(i int) string { return fmt.Sprintf("%s-r%d", r.Name, i) }

func (r *Run) selector() string { return "?labelSelector=run%3D" + r.Name }

func (r *Run) configMap(name, value string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"run":%q}},"data":{"v":%q}}`, name, r.Name, value)
}

// object and list are what is read of a ConfigMap and of several.
type object struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
	Code int               `json:"code"` // of a Status
}

type list struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []object `json:"items"`
}

// client sends requests.
type client struct {
	base      string
	http      *http.Client
	transport *http.Transport
	timeout   time.Duration
	token     string // empty: the certificate of TLS counts
}

func (r *Run) client() *client {
	t := &http.Transport{
		TLSClientConfig: r.TLS.Clone(), ForceAttemptHTTP2: true, TLSHandshakeTimeout: 3 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 3 * time.Second},
	}
	return &client{base: "https://" + r.Address + "/api/v1/namespaces/default/configmaps", http: &http.Client{Transport: t}, transport: t, timeout: r.Timeout}
}

// statusError is an answer that is no success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.text) }

// do sends one request, once.
func (c *client) do(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
	case resp.StatusCode >= http.StatusMultipleChoices:
		err = &statusError{resp.StatusCode, string(text)}
	case into != nil:
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func (c *client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	switch method {
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/json")
	case http.MethodPatch:
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return c.http.Do(req)
}

// operate creates, writes and reads until the run is stopped.
func (r *Run) operate(number int) {
	c := r.client()
	defer c.transport.CloseIdleConnections()
	for i := 0; r.stopped.Err() == nil; i++ {
		var err error
		switch i % 4 {
		case 0:
			err = r.create(c, fmt.Sprintf("%s-c%d-%d", r.Name, number, i))
		case 1:
			err = r.register(c, number, register{name: r.key((i / 4) % keys), value: fmt.Sprintf("%d-%d", number, i), write: true})
		default:
			err = r.register(c, number, register{name: r.key((i/4 + number) % keys)})
		}
		if err != nil {
			r.fail(err)
			c.transport.CloseIdleConnections()
			time.Sleep(500 * time.Millisecond) // many unknown outcomes take long to check
		} else {
			r.done.Add(1)
		}
		time.Sleep(r.Pause)
	}
}

func (r *Run) create(c *client, name string) error {
	err := c.do(context.Background(), http.MethodPost, "", r.configMap(name, ""), nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.created[name] = err == nil
	return err
}

// register is an operation on the value of one object: a read, or a write.
type register struct {
	name, value string
	write       bool
}

func (r *Run) register(c *client, number int, in register) error {
	op := porcupine.Operation{ClientId: number, Input: in, Call: r.clock.Add(1)}
	var read object
	var err error
	if in.write {
		err = c.do(context.Background(), http.MethodPatch, "/"+in.name, fmt.Appendf(nil, `{"data":{"v":%q}}`, in.value), nil)
	} else {
		err = c.do(context.Background(), http.MethodGet, "/"+in.name, nil, &read)
	}
	op.Output, op.Return = read.Data["v"], r.clock.Add(1)
	switch {
	case err == nil:
	case in.write:
		// It may have been made, or be made later, or never, which is after all reads.
		op.Return = math.MaxInt64
	default:
		return err // it says nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
	return err
}

// Await returns when some more operations have succeeded.
func (r *Run) Await(ctx context.Context, operations int64) error {
	for until := r.done.Load() + operations; r.done.Load() < until; {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			r.mu.Lock()
			defer r.mu.Unlock()
			err := errors.New("no operation has failed")
			if len(r.failed) > 0 {
				err = r.failed[len(r.failed)-1]
			}
			return fmt.Errorf("%d operations are missing: %w", until-r.done.Load(), err)
		}
	}
	return nil
}
