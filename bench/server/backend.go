// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// What the backend serves. An item is one of 2 KB, its log and the events of a watch are as
// many as the query says.
const (
	proxiedVersion    = "/apis/proxied.example.com/v1"
	proxiedCollection = proxiedVersion + "/namespaces/default/items"
	proxiedItem       = proxiedCollection + "/first"
	proxiedLog        = proxiedItem + "/log"

	proxiedResources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"proxied.example.com/v1","resources":[` +
		`{"name":"items","singularName":"item","namespaced":true,"kind":"Item","verbs":["get","list","watch"]},` +
		`{"name":"items/log","singularName":"","namespaced":true,"kind":"Item","verbs":["get"]}]}`
)

// logPiece is how much of a log the backend writes at once.
const logPiece = 16 << 10

// ServeBackend runs the API server that planes pass requests on to, until ctx ends: HTTP/2 and
// HTTP/1.1 over TLS, and answers that are the same each time. It prints its address and the PEM
// of its certificate, followed by a line that is empty.
func ServeBackend(ctx context.Context, out io.Writer) error {
	return serveTLS(ctx, out, backendHandler())
}

// ServeBareProxy runs the least that a proxy can be with net/http, in front of a backend at an
// address, until ctx ends; it prints what [ServeBackend] prints. What a control plane adds to a
// request beyond it is authentication, authorization, its bounds, and its own code.
func ServeBareProxy(ctx context.Context, out io.Writer, address string) error {
	target := &url.URL{Scheme: "https", Host: address}
	return serveTLS(ctx, out, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as of the APIService
			ForceAttemptHTTP2: true, DisableCompression: true,
		},
	})
}

func backendHandler() http.Handler {
	item := object("first", 1)
	event := append(append([]byte(`{"type":"MODIFIED","object":`), item...), "}\n"...)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+proxiedVersion, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, []byte(proxiedResources)) })
	mux.HandleFunc("GET "+proxiedItem, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, item) })
	mux.HandleFunc("GET "+proxiedCollection, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		stream(w, event, wanted(r), true)
	})
	mux.HandleFunc("GET "+proxiedLog, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		stream(w, []byte(strings.Repeat("a line of a log\n", logPiece/16)), wanted(r), false)
	})
	return mux
}

func serveTLS(ctx context.Context, out io.Writer, handler http.Handler) error {
	certificate, public, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: exchangeTimeout,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := fmt.Fprintf(out, "%s\n%s\n", listener.Addr(), public); err != nil {
		return err
	}
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func answerJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client has gone
}

// wanted is how many pieces of a stream a request asks for.
func wanted(r *http.Request) int { return atoi(r.URL.Query().Get("count")) }

// stream writes a piece so many times; each is sent at once if it is an event.
func stream(w http.ResponseWriter, piece []byte, count int, events bool) {
	to := http.NewResponseController(w)
	for range count {
		if _, err := w.Write(piece); err != nil {
			return
		}
		if events && to.Flush() != nil {
			return
		}
	}
}

// backend is a running API server of [ServeBackend], or a proxy of [ServeBareProxy].
type backend struct {
	address string
	secure  *tls.Config
	stop    func() error
}

// startBackend runs the program, with the address of a backend as a proxy for that; stop ends it.
func startBackend(ctx context.Context, binary string, args ...string) (*backend, error) {
	command := exec.CommandContext(ctx, binary, args...)
	command.Stderr = os.Stderr
	printed, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	b := &backend{stop: func() error { return stopProcess(command) }}
	var public []byte
	for lines := bufio.NewScanner(printed); lines.Scan() && lines.Text() != ""; {
		if b.address == "" {
			b.address = lines.Text()
			continue
		}
		public = append(append(public, lines.Bytes()...), '\n')
	}
	if b.secure, err = trust(public); err != nil {
		return nil, errors.Join(fmt.Errorf("the backend is not up: %w", err), b.stop())
	}
	return b, nil
}

// clients returns clients that ask the backend itself, and what closes them.
func (b *backend) clients(n int) ([]*Client, func()) {
	return (&Instance{URL: "https://" + b.address, TLS: b.secure}).NewClients(n)
}
