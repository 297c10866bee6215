// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server measures control planes from outside, over HTTP, with the same
// client and the same requests for both sides.
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Subject is a control plane that can be started.
type Subject interface {
	// Start runs a fresh control plane and returns when /readyz says ok.
	Start(ctx context.Context) (*Instance, error)
}

// Instance is a running control plane.
type Instance struct {
	// URL is the base of its API.
	URL string
	// TLS authenticates the server and, where it is set, the client.
	TLS *tls.Config
	// Kubeconfig is a file that says all this; empty where there is none.
	Kubeconfig string
	// Token is the bearer token of an administrator; may be empty.
	Token string
	// Etcd is the URL of its etcd; empty where it has none of its own.
	Etcd string
	// PIDs are its processes.
	PIDs []int
	// Ready is the time from exec to /readyz.
	Ready time.Duration
	// Bare is a binary that calls [ServeBare], which is measured beside the
	// instance; empty for none.
	Bare string

	stop func() error
	kill func() error
	log  string // the file of its output
}

// Stop ends the processes and waits for them.
func (i *Instance) Stop() error { return i.stop() }

// Kill ends the process as kill -9 does; Stop is called all the same.
func (i *Instance) Kill() error { return i.kill() }

// NewClient returns a client with a connection of its own.
func (i *Instance) NewClient() *Client {
	return &Client{base: i.URL, token: i.Token, secure: i.TLS, accept: jsonType}
}

// NewClients returns so many clients, and what closes them.
func (i *Instance) NewClients(n int) (clients []*Client, done func()) {
	clients = make([]*Client, n)
	for at := range clients {
		clients[at] = i.NewClient()
	}
	return clients, func() {
		for _, c := range clients {
			c.Close()
		}
	}
}

// Client sends requests over one connection, which it opens when it is first
// needed. It is for one goroutine at a time.
type Client struct {
	base, token string
	accept      string // the media type that it asks for
	secure      *tls.Config
	connection  *connection
	answer      []byte
}

// Close drops the connection.
func (c *Client) Close() {
	if c.connection != nil {
		_ = c.connection.close() // nothing is under way
		c.connection = nil
	}
}

// Do sends one request and returns its body, which is valid until the next
// request; a status of 400 and above is an error.
func (c *Client) Do(ctx context.Context, method, path, kind string, body []byte) ([]byte, error) {
	data, err := c.do(ctx, method, path, kind, body)
	if err != nil {
		c.Close() // its state is unknown
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status := c.connection.status; status < 200 || status >= 400 {
		return nil, fmt.Errorf("%s %s: status %d: %.300s", method, path, status, data)
	}
	return data, nil
}

// Warnings is Do, and returns how many warnings the answer has.
func (c *Client) Warnings(ctx context.Context, method, path, kind string, body []byte) (int, error) {
	if _, err := c.Do(ctx, method, path, kind, body); err != nil {
		return 0, err
	}
	return c.connection.warnings, nil
}

// Drain sends a GET and returns how long the body of the answer is. It keeps nothing
// of it: what a client does with a large list costs more than to serve it.
func (c *Client) Drain(ctx context.Context, path string) (size int, err error) {
	defer func() {
		if err != nil {
			c.Close() // its state is unknown
			err = fmt.Errorf("GET %s: %w", path, err)
		}
	}()
	if err := c.begin(ctx, "GET", path, "", nil); err != nil {
		return 0, err
	}
	for {
		piece, last, err := c.connection.receive()
		if err != nil {
			return 0, err
		}
		if size += len(piece); last {
			break
		}
	}
	if c.connection.status != 200 {
		return 0, fmt.Errorf("status %d", c.connection.status)
	}
	return size, nil
}

func (c *Client) do(ctx context.Context, method, path, kind string, body []byte) ([]byte, error) {
	if err := c.begin(ctx, method, path, kind, body); err != nil {
		return nil, err
	}
	c.answer = c.answer[:0]
	for {
		piece, last, err := c.connection.receive()
		if err != nil {
			return nil, err
		}
		c.answer = append(c.answer, piece...)
		if last {
			return c.answer, nil
		}
	}
}

func (c *Client) begin(ctx context.Context, method, path, kind string, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.connection == nil {
		connection, err := dial(ctx, c.base, c.secure)
		if err != nil {
			return err
		}
		c.connection = connection
	}
	return c.connection.send(method, path, kind, c.accept, c.token, body)
}

// Stream sends a GET and returns when the answer begins; its body comes from
// Receive.
func (c *Client) Stream(ctx context.Context, path string) error {
	if err := c.begin(ctx, "GET", path, "", nil); err != nil {
		return err
	}
	if _, _, err := c.connection.receive(); err != nil {
		return err
	}
	if c.connection.status != 200 {
		return fmt.Errorf("GET %s: status %d", path, c.connection.status)
	}
	return nil
}

// Receive returns the next piece of a stream, valid until the next call; it
// fails when the stream has ended or the client was closed.
func (c *Client) Receive() ([]byte, error) {
	if err := c.connection.conn.SetReadDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return nil, err
	}
	piece, last, err := c.connection.receive()
	if err == nil && last {
		err = io.EOF
	}
	return piece, err
}

// abort makes a Receive under way fail. Unlike the other methods it may be called
// from any goroutine.
func (c *Client) abort() { _ = c.connection.close() } // what it holds is lost anyway

// trust returns a TLS configuration that knows one authority.
func trust(ca []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in the authority's PEM")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// stopProcess interrupts a child, waits, and kills it when it does not end.
func stopProcess(command *exec.Cmd) error {
	if err := command.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	killer := time.AfterFunc(15*time.Second, func() { _ = command.Process.Kill() })
	defer killer.Stop()
	err := command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // ended by the signal: what was asked for
	}
	return err
}

// heap is how many bytes of the heap were in use after the last collection, of a server that
// was started with [Steer.Heap].
func (i *Instance) heap() (float64, error) {
	text, err := os.ReadFile(i.log)
	if err != nil {
		return 0, err
	}
	all := regexp.MustCompile(`(?m)^gc \d+ .*->(\d+) MB,`).FindAllSubmatch(text, -1) // gc 1 @0.1s 2%: ..., 4->5->3 MB, ...
	if len(all) == 0 {
		return 0, errors.New("the server has not collected garbage")
	}
	return float64(atoi(string(all[len(all)-1][1]))) * (1 << 20), nil
}

// usage is what processes have used so far.
type usage struct {
	// cpu is user and system time.
	cpu time.Duration
	// resident and anonymous memory, in bytes.
	resident, anonymous float64
}

// use sums the usage of processes. It needs /proc; elsewhere it is zero.
func use(pids []int) usage {
	var sum usage
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if precise := cpuOfThreads(pid); precise > 0 {
			sum.cpu += precise
		} else if fields := strings.Fields(rest); len(fields) > 12 {
			const tick = 10 * time.Millisecond // USER_HZ is 100 on all Linux ports of Go
			sum.cpu += time.Duration(atoi(fields[11])+atoi(fields[12])) * tick
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			fields := strings.Fields(line)
			if len(fields) < 2 {
				continue
			}
			switch fields[0] {
			case "VmRSS:":
				sum.resident += float64(atoi(fields[1])) * 1024
			case "RssAnon:":
				sum.anonymous += float64(atoi(fields[1])) * 1024
			}
		}
	}
	return sum
}

// cpuOfThreads sums the CPU time of the threads of a process, which the scheduler counts in
// nanoseconds; 0 if it does not.
func cpuOfThreads(pid int) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		sum += time.Duration(atoi(first))
	}
	return sum
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
