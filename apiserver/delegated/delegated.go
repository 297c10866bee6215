// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/cluster"
)

// Options of a [Delegation]. Only Config is required.
type Options struct {
	// Config reaches the cluster's API server.
	Config *rest.Config
	// Audiences are the names of this server: a token must be for one of them. Empty:
	// tokens for the cluster's API server are accepted.
	Audiences []string
	// TokenTTL, AllowedTTL and DeniedTTL are how long answers are remembered. 0: 10 s.
	TokenTTL, AllowedTTL, DeniedTTL time.Duration
	// Every is how often the trust of the cluster is read again. 0: one minute.
	Every time.Duration
	// Log receives failures of reading the trust. nil: they are discarded.
	Log *slog.Logger
}

// key is the hash of a question: tokens are not kept.
type key = [sha256.Size]byte

// kept bounds how many answers of each kind are remembered, good ones and others apart.
const kept = 10_000

// Delegation authenticates and authorizes by a cluster. It is safe for concurrent use.
type Delegation struct {
	*reviewer
	options Options
	trust   atomic.Pointer[trust]
}

// New returns a delegation, which refuses all requests before [Delegation.Load].
func New(o Options) (*Delegation, error) {
	if o.Config == nil {
		return nil, errors.New("delegated: Options.Config is required: use rest.InClusterConfig or a kubeconfig")
	}
	for _, ttl := range []*time.Duration{&o.TokenTTL, &o.AllowedTTL, &o.DeniedTTL} {
		if *ttl == 0 {
			*ttl = 10 * time.Second
		}
	}
	if o.Every == 0 {
		o.Every = time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := cluster.New(o.Config)
	if err != nil {
		return nil, fmt.Errorf("delegated: %w", err)
	}
	return &Delegation{options: o, reviewer: newReviewer(reviewer{
		client: c, tokenPath: "/apis/authentication.k8s.io/v1/tokenreviews", accessPath: "/apis/authorization.k8s.io/v1/subjectaccessreviews", version: "v1",
		tokenTTL: o.TokenTTL, allowedTTL: o.AllowedTTL, deniedTTL: o.DeniedTTL,
	})}, nil
}

// trust is what the cluster says about the clients that it has authenticated.
type trust struct {
	data          map[string]string
	authenticator auth.Authenticator
}

// trustPath is the ConfigMap in which the cluster says it.
const trustPath = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"

// Load reads which certificates the cluster trusts. An error leaves what was read before.
func (d *Delegation) Load(ctx context.Context) error {
	var config corev1.ConfigMap
	if err := d.client.Get(ctx, trustPath, &config); err != nil {
		advice := "bind the Role extension-apiserver-authentication-reader in kube-system"
		var answered *cluster.Error
		if !errors.As(err, &answered) {
			advice = "the API server cannot be reached: start it, or correct the address in the kubeconfig"
		}
		return fmt.Errorf("delegated: read the ConfigMap kube-system/extension-apiserver-authentication (%s): %w", advice, err)
	}
	if old := d.trust.Load(); old != nil && sameData(old.data, config.Data) {
		return nil // verified certificates stay cached
	}
	authenticator, err := d.authenticatorOf(config.Data)
	if err != nil {
		return err
	}
	d.trust.Store(&trust{data: config.Data, authenticator: authenticator})
	return nil
}

func sameData(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, value := range a {
		if other, ok := b[name]; !ok || other != value {
			return false
		}
	}
	return true
}

// Run reads the trust again from time to time, until ctx ends.
func (d *Delegation) Run(ctx context.Context) {
	ticker := time.NewTicker(d.options.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := d.Load(ctx); err != nil && ctx.Err() == nil {
				d.options.Log.Warn("the trust of the cluster was not read; the last one stays in force", "error", err)
			}
		}
	}
}

// authenticatorOf returns the authenticator that the ConfigMap describes.
func (d *Delegation) authenticatorOf(data map[string]string) (auth.Authenticator, error) {
	proxies, err := authorities(data, "requestheader-client-ca-file")
	if err != nil {
		return nil, err
	}
	clients, err := authorities(data, "client-ca-file")
	if err != nil {
		return nil, err
	}
	lists := map[string][]string{}
	for _, name := range []string{
		"requestheader-allowed-names", "requestheader-username-headers", "requestheader-uid-headers",
		"requestheader-group-headers", "requestheader-extra-headers-prefix",
	} {
		var list []string
		if text := data[name]; text != "" {
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				return nil, fmt.Errorf("delegated: %s of extension-apiserver-authentication is not a list of strings: %w", name, err)
			}
		}
		if len(list) > 0 {
			lists[name] = list
		}
	}
	var all auth.Authenticators
	if len(proxies) > 0 {
		all = append(all, auth.FrontProxy{
			Certificates: auth.NewCertificates(proxies...), Names: lists["requestheader-allowed-names"],
			UserHeaders: lists["requestheader-username-headers"], UIDHeaders: lists["requestheader-uid-headers"],
			GroupHeaders: lists["requestheader-group-headers"], ExtraPrefixes: lists["requestheader-extra-headers-prefix"],
		})
	}
	if len(clients) > 0 {
		all = append(all, auth.NewCertificates(clients...))
	}
	return append(all, auth.Bearer{Tokens: []auth.TokenAuthenticator{d}, Audiences: d.options.Audiences}, auth.AsAnonymous{}), nil
}

// authorities returns the certificates of an entry, none if there is no such entry.
func authorities(data map[string]string, name string) (out []*x509.Certificate, err error) {
	for rest := []byte(data[name]); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("delegated: %s of extension-apiserver-authentication: %w", name, err)
		}
		out = append(out, c)
	}
	if data[name] != "" && len(out) == 0 {
		return nil, fmt.Errorf("delegated: %s of extension-apiserver-authentication has no certificate", name)
	}
	return slices.Clip(out), nil
}

// errNotLoaded refuses requests that come too early.
var errNotLoaded = errors.New("delegated: the trust of the cluster has not been read yet")

// Authenticate implements [auth.Authenticator].
func (d *Delegation) Authenticate(r *http.Request) (*auth.User, error) {
	t := d.trust.Load()
	if t == nil {
		return nil, errNotLoaded
	}
	return t.authenticator.Authenticate(r)
}

// Authorizer returns an authorizer that allows the group system:masters everything and
// every user to read health, and asks the cluster about all other requests.
func (d *Delegation) Authorizer() auth.Authorizer {
	return auth.Authorizers{auth.AllowMasters{}, auth.AllowPaths{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*"}, authorizer{d.reviewer}}
}

// Checks returns the health check of a server that uses the delegation.
func (d *Delegation) Checks() []apiserver.Check {
	return []apiserver.Check{{Name: "delegated-authentication", ReadyOnly: true, Run: func() error {
		if d.trust.Load() == nil {
			return errNotLoaded
		}
		return nil
	}}}
}
