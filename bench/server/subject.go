// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server measures control planes from outside, over HTTP, with the same
// client and the same requests for both sides.
package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
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
	// PIDs are its processes.
	PIDs []int
	// Ready is the time from exec to /readyz.
	Ready time.Duration

	stop func() error
}

// Stop ends the processes and waits for them.
func (i *Instance) Stop() error { return i.stop() }

// NewClient returns a client with a connection of its own.
func (i *Instance) NewClient() *Client {
	transport := &http.Transport{
		TLSClientConfig:     i.TLS.Clone(),
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 1,
		DisableCompression:  true,
	}
	return &Client{base: i.URL, token: i.Token, http: &http.Client{Transport: transport}}
}

// Client sends requests over one connection.
type Client struct {
	base, token string
	http        *http.Client
}

// Close drops the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do sends one request and returns its body; a status of 400 and above is an
// error.
func (c *Client) Do(ctx context.Context, method, path, kind string, body []byte) ([]byte, error) {
	response, err := c.Open(ctx, method, path, kind, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, response.Status, data)
	}
	return data, err
}

// Open sends one request and leaves the body to the caller.
func (c *Client) Open(ctx context.Context, method, path, kind string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("Accept", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(request)
}

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
	if err := command.Process.Signal(os.Interrupt); err != nil {
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
		if fields := strings.Fields(rest); len(fields) > 12 {
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

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
