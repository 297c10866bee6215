// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"
)

// Local is a page on a loopback interface, for who has its token.
type Local struct {
	page     *Page
	listener net.Listener
	// token is in the URL, session in the cookie that takes its place.
	token, session string
	started        atomic.Bool
}

// ErrStarted is a second [Local.Run].
var ErrStarted = errors.New("dashboard: the page has been served before, and is served once: listen again")

// Listen listens for the page on an address of a loopback interface; port 0 takes any free
// one. Other addresses are refused: the token would travel in the clear.
func (p *Page) Listen(address string) (*Local, error) {
	if !loopback(address) {
		return nil, errors.New("dashboard: " + address + " is not of a loopback interface: use 127.0.0.1, or Add, which serves others by HTTPS")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errors.Join(errors.New("dashboard: choose another address for the page, or port 0 for any free one"), err)
	}
	return &Local{page: p, listener: listener, token: rand.Text(), session: rand.Text()}, nil
}

// loopback reports whether an address with a port is reachable from this machine alone.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && at.IsLoopback()
}

// URL is that of the page, with its token. A browser that opens it gets a cookie, and an
// address without the token.
func (l *Local) URL() string {
	return "http://" + l.listener.Addr().String() + "/?token=" + l.token
}

// Close stops listening, for a page that is not served.
func (l *Local) Close() error { return l.listener.Close() }

// Run serves the page until ctx ends; streams end with it.
func (l *Local) Run(ctx context.Context) error {
	if l.started.Swap(true) {
		return ErrStarted
	}
	l.page.current() // what a long recording has is read before a browser asks
	return serve(ctx, l.listener, &http.Server{Handler: l})
}

// serve serves until ctx ends, which also ends the streams.
func serve(ctx context.Context, listener net.Listener, server *http.Server) error {
	server.ReadHeaderTimeout, server.IdleTimeout, server.MaxHeaderBytes = 10*time.Second, 90*time.Second, 64<<10
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	if server.ErrorLog == nil {
		server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close() // of who does not read
		}
	})
	var err error
	if server.TLSConfig != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if stop() { // it ended by itself
		return errors.Join(err, server.Close())
	}
	<-ended
	return nil
}

// ServeHTTP implements http.Handler: it lets through who has the cookie, and gives it for
// the token.
func (l *Local) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if why := l.strange(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	_, port, _ := net.SplitHostPort(l.listener.Addr().String())
	name := "steer-page-" + port // cookies are for all ports of a host
	query := r.URL.Query()
	if token := query.Get("token"); token != "" && r.Method == http.MethodGet {
		if !same(token, l.token) {
			l.refuse(w)
			return
		}
		query.Del("token")
		http.SetCookie(w, &http.Cookie{Name: name, Value: l.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		to := url.URL{Path: "/", RawQuery: query.Encode()}
		if r.URL.Path != "" && r.URL.Path[0] == '/' && (len(r.URL.Path) == 1 || r.URL.Path[1] != '/' && r.URL.Path[1] != '\\') {
			to.Path = r.URL.Path // a path of ours, never that of another host
		}
		http.Redirect(w, r, to.String(), http.StatusSeeOther)
		return
	}
	if cookie, err := r.Cookie(name); err != nil || !same(cookie.Value, l.session) {
		l.refuse(w)
		return
	}
	l.page.ServeHTTP(w, r)
}

func (l *Local) refuse(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "the page needs its token: open the URL that was printed when it was started, with ?token=", http.StatusUnauthorized)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// strange says why a request is of another site, or under another name for this host: a
// name that others can make lead here (DNS rebinding). It is empty for one of the page.
func (l *Local) strange(r *http.Request) string {
	if !loopback(withPort(r.Host)) {
		return "the page is served under the address of this machine alone, as 127.0.0.1 or localhost"
	}
	return foreign(r, "http://")
}

// foreign says that a page of another site made the request.
func foreign(r *http.Request, scheme string) string {
	if origin := r.Header.Get("Origin"); origin != "" && origin != scheme+r.Host {
		return "the page answers no other origins"
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return ""
	}
	return "the page answers no other sites: open its URL in the address bar"
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(host, "80")
	}
	return host
}
