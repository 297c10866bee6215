// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// passed are the headers of an upgrade that a kubelet gets; credentials are not among them.
func passed() []string {
	return []string{
		"Connection", "Upgrade", "User-Agent", "X-Stream-Protocol-Version",
		"Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol",
	}
}

// bearerProtocol begins the WebSocket protocol by which browsers send tokens.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// Upgrade passes an upgraded connection on to a kubelet, and returns when either side has closed
// it, or ctx has ended. An error is returned before anything was written.
func (p *Proxy) Upgrade(ctx context.Context, w http.ResponseWriter, r *http.Request, t *Target) error {
	if !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") || r.Header.Get("Upgrade") == "" {
		return apierrors.NewBadRequest("Upgrade request required")
	}
	hijacker, ok := hijackerOf(w)
	if !ok {
		return apierrors.NewBadRequest(t.What + ": this connection cannot be upgraded: use HTTP/1.1, over a socket")
	}
	ctx, done, err := p.living(ctx)
	if err != nil {
		return err
	}
	defer done()
	backend, err := p.dial(ctx, "tcp", t.Host, t.Unverified)
	if err != nil {
		return p.failed(t, err)
	}
	defer func() { _ = backend.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = backend.Close() })
	defer stop()
	reader := bufio.NewReader(backend)
	response, err := ask(backend, reader, r, t)
	if err != nil {
		return p.failed(t, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		// The client's connection is not used again either: the caller of an upgrade may have sent more.
		w.Header().Set("Connection", "close")
		if err := t.check(response); err != nil {
			return err
		}
		return t.bad("the kubelet of node " + t.Node + " does not upgrade the connection")
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		return t.bad("this connection cannot be upgraded: " + err.Error())
	}
	defer func() { _ = client.Close() }()
	stopClient := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stopClient()
	if err := client.SetDeadline(time.Time{}); err != nil || switchProtocols(client, response) != nil {
		return nil // the client has gone
	}
	tunnel(client, buffered.Reader, backend, reader)
	return nil
}

// hijackerOf finds what gives a connection away.
func hijackerOf(w http.ResponseWriter) (http.Hijacker, bool) {
	for {
		if h, ok := w.(http.Hijacker); ok {
			return h, true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil, false
		}
		w = inner.Unwrap()
	}
}

// ask sends the request for an upgrade, and reads the head of the answer.
func ask(backend net.Conn, reader *bufio.Reader, r *http.Request, t *Target) (*http.Response, error) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, t.url(), http.NoBody)
	if err != nil {
		return nil, err
	}
	for _, name := range passed() {
		for _, value := range r.Header[textproto.CanonicalMIMEHeaderKey(name)] {
			if name == "Sec-Websocket-Protocol" {
				value = withoutTokens(value)
			}
			if value != "" {
				request.Header.Add(name, value)
			}
		}
	}
	if err := backend.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	if err := request.Write(backend); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return response, nil // its text has the same deadline
	}
	return response, backend.SetDeadline(time.Time{})
}

// withoutTokens removes the tokens from a list of WebSocket protocols.
func withoutTokens(protocols string) string {
	var out []string
	for _, p := range strings.Split(protocols, ",") {
		if p = strings.TrimSpace(p); !strings.HasPrefix(p, bearerProtocol) {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}

// switchProtocols tells the client that its connection is the kubelet's now.
func switchProtocols(client net.Conn, response *http.Response) error {
	if err := client.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	var head strings.Builder
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = response.Header.Write(&head) // a Builder takes everything
	head.WriteString("\r\n")
	if _, err := io.WriteString(client, head.String()); err != nil {
		return err
	}
	return client.SetWriteDeadline(time.Time{})
}

// tunnel copies in both directions until one of them ends, and then closes both sides. What was
// read ahead of either comes first.
func tunnel(client net.Conn, fromClient io.Reader, backend net.Conn, fromBackend io.Reader) {
	var both sync.WaitGroup
	end := sync.OnceFunc(func() {
		_, _ = client.Close(), backend.Close() // either may be closed already
	})
	both.Go(func() {
		defer end()
		_, _ = io.Copy(client, fromBackend) // its end is the end of the tunnel
	})
	both.Go(func() {
		defer end()
		_, _ = io.Copy(backend, fromClient) // as above
	})
	both.Wait()
}
