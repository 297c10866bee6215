// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leadership makes several API servers on one store act as one: a server leads and
// executes the requests that change something, the others pass them on to it.
//
// [Server.Run] campaigns for the store. While it leads, requests are executed here
// ([Server.Enter]); otherwise they go to the leader over TLS ([Server.Forward]), to the
// address that it gave in its campaign. Both ends of such a connection show a certificate
// of an authority that signs nothing else. Its requests name the user that the other
// server has authenticated, or carry the token by which it did: what a token is bound to may
// be gone by now, so that the leader authenticates it again on its own state. The leader
// authorizes and admits such requests as its own.
//
// # Guarantees
//
// A request is sent to a leader once. It is sent again only if it was certainly not
// executed: nothing of it was written to a connection, or the other server says that it
// does not lead. Otherwise the answer is 500, and the outcome is unknown.
//
// Servers of another version of this protocol execute nothing for each other: the answer is
// 503 and names both versions.
//
// Servers with other keys than the cluster's do nothing: neither is a request executed or
// answered, nor does such a server lead. The store has the fingerprints of the cluster's keys.
//
// A server campaigns again only when every request of its earlier term has ended.
package leadership

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/storage"
)

const (
	// ServerName is what a server is called on connections from others of its kind; its
	// certificates are for this name.
	ServerName = "peer.steer.internal"
	// HeaderPrefix begins the headers between servers. They are taken from no client and from
	// no backend.
	HeaderPrefix = "Steer-Peer-"
	// userHeader names the user of a request between servers, as JSON in base64, and
	// tokenHeader, in its place, has the bearer token of one whose token rests on what is
	// stored.
	userHeader  = "Steer-Peer-User"
	tokenHeader = "Steer-Peer-Token"
	// refusedHeader is on answers to requests that were not executed because the server
	// does not lead.
	refusedHeader = "Steer-Peer-Refused"
	// protocolHeader is on every request between servers, and on the answer to one that was
	// not executed because it has another.
	protocolHeader = "Steer-Peer-Protocol"
	// protocol is the version of what servers send each other: the headers above and their
	// meaning. It changes when a server of the version before would misunderstand a request.
	protocol = 2
)

// Options of [New]. Without a word to the contrary they are required.
type Options struct {
	// Store that the servers share.
	Store storage.Elector
	// Identity of this server; see [storage.Member].
	Identity string
	// Authority signs the certificates of the servers, and nothing else.
	Authority func() (*x509.Certificate, error)
	// Certificate is that of this server, for [ServerName], as server and as client.
	Certificate func() (*tls.Certificate, error)
	// Keys returns the fingerprints of the keys that all servers of the store must have.
	Keys func() (Fingerprints, error)
	// Load has the process serve what its store says; it runs after writes to the buckets
	// in Follows.
	Load    func(ctx context.Context) error
	Follows []string
	// TakeOver runs at the beginning of a term, before a request is executed. Requests
	// with its context are executed at once. The first one in the life of the database
	// stores what servers need that follow.
	TakeOver func(ctx context.Context) error
	// Prepared is called when the TakeOver of a leader, this one or another, has returned.
	Prepared func()
	// Lead runs for the rest of the term, which ends ctx.
	Lead func(ctx context.Context)
	// Dial connects to another server. nil: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Log receives what no client sees.
	Log *slog.Logger
}

// Server is one of several servers. It is safe for concurrent use and implements
// [apiserver.Leadership].
type Server struct {
	options   Options
	protocol  string // that of this program
	transport *http.Transport
	verified  func() (*auth.Certificates, error)
	// fingerprints of this server, as they are stored.
	fingerprints func() ([]byte, error)

	loading sync.Mutex
	// loaded is the newest write of what the server follows that it has loaded. It may be 0
	// after the first time: a store does not know the writes before its history.
	loaded     storage.Revision
	everLoaded bool // both are guarded by loading

	view view

	mu sync.Mutex
	// phase of this server, and the requests under way that it executes.
	phase    phase
	requests int
	// changed is closed when phase changes, or the last request under way has ended.
	changed chan struct{}
}

// phase is what a server does with requests that change something.
type phase int

const (
	following  phase = iota // it passes them on
	takingOver              // they wait
	leading                 // it executes them
)

// New returns a server that follows.
func New(o Options) *Server {
	s := &Server{options: o, protocol: strconv.Itoa(protocol), changed: make(chan struct{})}
	s.verified = sync.OnceValues(func() (*auth.Certificates, error) {
		authority, err := o.Authority()
		if err != nil {
			return nil, err
		}
		return auth.NewCertificates(authority), nil
	})
	s.fingerprints = sync.OnceValues(func() ([]byte, error) {
		keys, err := o.Keys()
		if err != nil {
			return nil, err
		}
		return json.Marshal(keys)
	})
	s.transport = s.newTransport()
	return s
}

// encodeUser and decodeUser are the form of a user in a header.
func encodeUser(u *auth.User) (string, error) {
	text, err := json.Marshal(u)
	if err != nil {
		return "", fmt.Errorf("leadership: encode user %s: %w", u.Name, err)
	}
	return base64.StdEncoding.EncodeToString(text), nil
}

func decodeUser(text string) (*auth.User, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	u := &auth.User{}
	if err := json.Unmarshal(raw, u); err != nil {
		return nil, err
	}
	if u.Name == "" {
		return nil, errors.New("the user has no name")
	}
	return u, nil
}
