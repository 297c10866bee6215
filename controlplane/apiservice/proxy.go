// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	pathpkg "path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/leadership"
)

// discoveryTimeout bounds requests for the resources of a version, which clients make
// for all versions before they do anything else.
const discoveryTimeout = 5 * time.Second

// proxy passes the requests for a version on to the API server behind its APIService.
type proxy struct {
	*backend
	available bool
	running   context.Context // the life of the aggregator
	buffers   httputil.BufferPool
	log       *slog.Logger
}

// ServeHTTP implements [http.Handler].
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := auth.UserFrom(r.Context())
	if !p.available || user == nil || p.running.Err() != nil {
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	upgrade, connected := upgrading(r), false
	carrier, err := p.carrier(r.Context(), upgrade)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.running, cancel)()
	if ctx.Value(http.ServerContextKey) == nil {
		// The proxy aborts an incomplete answer only of a request that a server has received; those
		// of this process have to fail as well.
		ctx = context.WithValue(ctx, http.ServerContextKey, &http.Server{ReadHeaderTimeout: discoveryTimeout})
	}
	if isDiscovery(r.URL.Path) {
		bounded, ended := context.WithTimeout(ctx, discoveryTimeout)
		defer ended()
		ctx = bounded
	}
	if upgrade {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	}
	reverse := &httputil.ReverseProxy{
		Transport:      carrier,
		BufferPool:     p.buffers,
		ErrorLog:       slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		Rewrite:        func(out *httputil.ProxyRequest) { p.rewrite(w, out, user, upgrade) },
		ModifyResponse: func(answer *http.Response) error { return passed(w, answer, upgrade) },
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, err error) { failed(w, r, err, upgrade, connected) },
	}
	reverse.ServeHTTP(w, r.WithContext(ctx))
}

// isDiscovery reports whether a path is that of the resources of a version.
func isDiscovery(at string) bool {
	at = strings.Trim(at, "/")
	return strings.HasPrefix(at, "apis/") && strings.Count(at, "/") == 2
}

func upgrading(r *http.Request) bool {
	return httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade")
}

// rewrite makes the request that the server gets.
func (p *proxy) rewrite(w http.ResponseWriter, r *httputil.ProxyRequest, user *auth.User, upgrade bool) {
	out := r.Out
	// The path as it was authorized, whatever its encoding was.
	out.URL.Scheme, out.URL.Host, out.URL.RawPath = "https", p.service.Host(), ""
	out.Host = out.URL.Host
	p.headers.strip(out.Header)
	if out.URL.RawQuery != "" {
		out.URL.RawQuery = out.URL.Query().Encode() // in one form, whatever servers take for a separator
	}
	out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	r.SetXForwarded()
	if upgrade {
		delete(out.Header, "X-Forwarded-Host")
		delete(out.Header, "X-Forwarded-Proto")
		delete(out.Header, "X-Forwarded-Uri")
	} else {
		out.Header["X-Forwarded-Uri"] = []string{cleaned(out.URL)}
	}
	p.headers.set(out.Header, user)
	if audit := w.Header().Get("Audit-Id"); audit != "" {
		out.Header.Set("Audit-Id", audit)
	}
}

// cleaned is the path of a URL without repeated slashes.
func cleaned(u *url.URL) string {
	escaped := u.EscapedPath()
	clean := pathpkg.Clean(escaped)
	if strings.HasSuffix(escaped, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// strip removes what a client may not say, and what it says to this server alone.
func (h *identityHeaders) strip(header http.Header) {
	auth.StripCredentials(header, func(plain string) bool {
		has := func(prefix string) bool { return strings.HasPrefix(plain, prefix) }
		return slices.Contains(h.taken, plain) || slices.ContainsFunc(h.prefixes, has)
	})
}

// set names a user.
func (h *identityHeaders) set(header http.Header, u *auth.User) {
	header.Set(h.user, u.Name)
	if u.UID != "" {
		header.Set(h.uid, u.UID)
	}
	header[textproto.CanonicalMIMEHeaderKey(h.group)] = slices.Clone(u.Groups)
	for key, values := range u.Extra {
		for _, value := range values {
			header.Add(h.extra+escaped(key), value)
		}
	}
}

// escaped is a key as a part of the name of a header.
func escaped(key string) string {
	var out strings.Builder
	for i := range len(key) {
		if c := key[i]; c != '%' && httpguts.IsTokenRune(rune(c)) {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// errRedirect is the error of an answer that is a redirect: it would lead the client, with
// its credentials, where the server wants.
var errRedirect = errors.New("the backend attempted to redirect this request, which is not permitted")

// passed decides about an answer before the client gets it.
func passed(w http.ResponseWriter, answer *http.Response, upgrade bool) error {
	switch code := answer.StatusCode; {
	case upgrade && code != http.StatusSwitchingProtocols && code < http.StatusBadRequest:
		return fmt.Errorf("invalid upgrade response: status code %d", code)
	case code >= 300 && code <= 399 && answer.Header.Get("Location") != "":
		return errRedirect
	}
	if upgrade && answer.StatusCode != http.StatusSwitchingProtocols {
		// What the client has sent after its request is not for this server.
		w.Header().Set("Connection", "close")
	}
	for _, what := range [...]string{"Credentials", "Headers", "Methods", "Origin"} {
		delete(answer.Header, "Access-Control-Allow-"+what) // this server decides about pages of other origins
	}
	for name := range answer.Header {
		if strings.HasPrefix(name, leadership.HeaderPrefix) {
			delete(answer.Header, name) // what servers of one store say to each other
			continue
		}
		delete(w.Header(), name) // the answer of the server has them once
	}
	return nil
}

// failed answers for a server that does not answer; connected reports of an upgrade that there was a
// connection.
func failed(w http.ResponseWriter, r *http.Request, err error, upgrade, connected bool) {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errRedirect):
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte(err.Error()))
		return
	case errors.As(err, &status): // there is no such Service, or nothing behind it
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	case errors.Is(r.Context().Err(), context.DeadlineExceeded):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8") // as of kube-apiserver
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = io.WriteString(w, timedOut+"\n") // the client may have gone
		return
	case connected && errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case connected:
	case upgrade:
		err = fmt.Errorf("error dialing backend: %w", err)
	default:
		err = fmt.Errorf("error trying to reach service: %w", err)
	}
	if upgrade {
		w.Header().Set("Connection", "close")
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// timedOut is the answer to a request whose time limit has passed.
const timedOut = `{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}`
