// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// BackendSuffix marks a section that describes one path of an aggregated API server. The name
// before it is the path, without its slash.
const BackendSuffix = ".backend"

// hiddenHeaders are not shown of the requests that an aggregated API server received: HTTP
// clients choose them, or they have another value each time.
const hiddenHeaders = "Accept-Encoding Audit-Id Content-Length Date Te User-Agent"

// aggregators are the users as which aggregators ask servers what they serve, at any time: these
// requests are not shown.
const aggregators = "system:kube-aggregator system:aggregator"

// serveBackend answers a request for a path of the aggregated API server.
func (s *webhookServer) serveBackend(w http.ResponseWriter, r *http.Request, body []byte, hook *Webhook) {
	if !slices.Contains(strings.Fields(aggregators), r.Header.Get("X-Remote-User")) {
		s.record(call{line: r.Method + " " + r.URL.RequestURI(), review: passedOn(r, body), backend: true})
	}
	if hook == nil {
		http.NotFound(w, r)
		return
	}
	hook.pause(r.Context())
	if hook.hangUp {
		panic(http.ErrAbortHandler)
	}
	text := []byte(pad(s.fill(hook.body)))
	if !hook.raw && len(text) > 0 {
		converted, err := yaml.YAMLToJSON(text)
		if err != nil {
			http.Error(w, fmt.Sprintf("the section of backend %s: %v", hook.Path, err), http.StatusInternalServerError)
			return
		}
		text = converted
	}
	if hook.upgrade {
		switchProtocols(w, r, hook, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	for key, values := range hook.header {
		w.Header().Del(key)
		for _, value := range values {
			w.Header().Add(key, s.fill(value))
		}
	}
	w.WriteHeader(hook.code)
	_, _ = w.Write(text) // a client that left is not told
}

// switchProtocols switches to the protocol that the request asks for, writes text, and closes the
// connection.
func switchProtocols(w http.ResponseWriter, r *http.Request, hook *Webhook, text []byte) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "the connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return // the client is gone
	}
	defer func() { _ = conn.Close() }()
	header := hook.header.Clone()
	header.Set("Connection", "Upgrade")
	header.Set("Upgrade", r.Header.Get("Upgrade"))
	var answer strings.Builder
	answer.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = header.Write(&answer) // a Builder does not fail
	answer.WriteString("\r\n" + string(text))
	_, _ = io.WriteString(conn, answer.String()) // a client that left is not told
}

// passedOn is what an aggregated API server was sent.
func passedOn(r *http.Request, body []byte) map[string]any {
	header := map[string]any{}
	for name, values := range r.Header {
		if !slices.Contains(strings.Fields(hiddenHeaders), name) {
			header[name] = strings.Join(values, ", ")
		}
	}
	out := map[string]any{"header": header, "protocol": r.Proto}
	if len(body) > 0 {
		out["body"] = string(body)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		out["certificate"] = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	return out
}
