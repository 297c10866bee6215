// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/auth"
)

func request(header ...string) *http.Request {
	r := &http.Request{Header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func TestWrongCredentialsAreNotAnonymous(t *testing.T) {
	t.Parallel()
	all := auth.Authenticators{auth.Bearer{Tokens: []auth.TokenAuthenticator{auth.Tokens{"a": {Name: "ann"}}, auth.Tokens{"b": {Name: "bob"}}}}, auth.AsAnonymous{}}
	for header, want := range map[string]string{"": auth.Anonymous, "Bearer a": "ann", "bearer  b": "bob", "Bearer c": "", "Basic x": auth.Anonymous} {
		u, err := all.Authenticate(request("Authorization", header))
		if want == "" {
			if err == nil {
				t.Errorf("%q is %v", header, u)
			}
			continue
		}
		if err != nil || u.Name != want {
			t.Errorf("%q: %v, %v, want %s", header, u, err, want)
		}
	}
}

func TestCertificatesNameUserAndGroups(t *testing.T) {
	t.Parallel()
	authority, key := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
	client := &x509.Certificate{Subject: pkix.Name{CommonName: "jane", Organization: []string{"dev", "ops"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	good, _ := certificate(t, client, authority, key)
	stranger, strangeKey := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
	bad, _ := certificate(t, client, stranger, strangeKey)
	a := auth.NewCertificates(authority)
	r := request()
	if u, err := a.Authenticate(r); u != nil || err != nil {
		t.Errorf("without a certificate: %v, %v", u, err)
	}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{good}}
	u, err := a.Authenticate(r)
	if err != nil || u.Name != "jane" || !u.In("ops") || !u.In(auth.Authenticated) {
		t.Errorf("known authority: %v, %v", u, err)
	}
	r.TLS.PeerCertificates = []*x509.Certificate{bad}
	if u, err := a.Authenticate(r); err == nil {
		t.Errorf("unknown authority: %v", u)
	}
}

func TestCachedCertificatesExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		authority, key := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
		client, _ := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "jane"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, authority, key)
		a := auth.NewCertificates(authority)
		r := request()
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{client}}
		first, err := a.Authenticate(r)
		if err != nil || first.Name != "jane" {
			t.Fatalf("at first: %v, %v", first, err)
		}
		if again, err := a.Authenticate(r); err != nil || again != first {
			t.Errorf("again: %v, %v, want what was remembered", again, err)
		}
		time.Sleep(2 * time.Hour)
		if u, err := a.Authenticate(r); err == nil {
			t.Errorf("after its end: %v", u)
		}
	})
}

// TestCertificateCacheKeysTheWholeChain: a certificate that is valid with an intermediate
// certificate is neither valid alone nor with another one.
func TestCertificateCacheKeysTheWholeChain(t *testing.T) {
	t.Parallel()
	ca := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}
	authority, key := certificate(t, ca, nil, nil)
	between, betweenKey := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true}, authority, key)
	third, _ := certificate(t, ca, nil, nil)
	client, _ := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "jane"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, between, betweenKey)
	a := auth.NewCertificates(authority)
	for range 2 {
		for _, c := range []struct {
			shown []*x509.Certificate
			good  bool
		}{{[]*x509.Certificate{client, between}, true}, {[]*x509.Certificate{client}, false}, {[]*x509.Certificate{client, third}, false}} {
			r := request()
			r.TLS = &tls.ConnectionState{PeerCertificates: c.shown}
			if u, err := a.Authenticate(r); (err == nil) != c.good {
				t.Errorf("with %d certificates: %v, %v", len(c.shown), u, err)
			}
		}
	}
}

func certificate(t *testing.T, template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := *template
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, signer = &c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out, key
}

func TestImpersonationHeadersNameTheUser(t *testing.T) {
	t.Parallel()
	as, err := auth.WantedUser(request("Impersonate-User", "jane", "Impersonate-Group", "dev", "Impersonate-Uid", "7",
		"Impersonate-Extra-Scopes%2fx", "view").Header)
	if err != nil {
		t.Fatal(err)
	}
	want := &auth.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"scopes/x": {"view"}}}
	if diff := cmp.Diff(want, as); diff != "" {
		t.Error(diff)
	}
	if _, err = auth.WantedUser(request("Impersonate-Group", "dev").Header); err == nil {
		t.Error("a group without a user")
	}
	if as, err = auth.WantedUser(request().Header); as != nil || err != nil {
		t.Errorf("nothing asked: %v, %v", as, err)
	}
}

// permissions allows requests by lines of "verb group/resource/subresource
// namespace/name".
type permissions map[string]bool

func (p permissions) Authorize(_ context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	if p[a.Verb+" "+a.Group+"/"+a.Resource+"/"+a.Subresource+" "+a.Namespace+"/"+a.Name] {
		return auth.Allow, "", nil
	}
	return auth.NoOpinion, "", nil
}

func TestImpersonationModes(t *testing.T) {
	t.Parallel()
	const authn = " authentication.k8s.io/"
	me := &auth.User{Name: "me"}
	agent := &auth.User{Name: "system:serviceaccount:ns:agent", Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}}
	for name, c := range map[string]struct {
		user, as *auth.User
		may      []string
		groups   []string // of the resulting user; nil: refused
		refusal  string
	}{
		"a user with all parts, unconstrained": {
			user: me, as: &auth.User{Name: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"a/b": {"v"}}},
			may:    []string{"impersonate /users/ /jane", "impersonate /groups/ /dev", "impersonate" + authn + "uids/ /7", "impersonate" + authn + "userextras/a/b /v"},
			groups: []string{"dev", auth.Authenticated},
		},
		"a part is missing": {
			user: me, as: &auth.User{Name: "jane", Groups: []string{"dev"}}, may: []string{"impersonate /users/ /jane"},
			refusal: `User "me" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"`,
		},
		"a user, for lists of pods": {
			user: me, as: &auth.User{Name: "jane"},
			may:    []string{"impersonate-on:user-info:list /pods/ default/", "impersonate:user-info" + authn + "users/ /jane"},
			groups: []string{auth.Authenticated},
		},
		"masters, only unconstrained": {
			user: me, as: &auth.User{Name: "jane", Groups: []string{auth.Masters}},
			may:     []string{"impersonate-on:user-info:list /pods/ default/", "impersonate:user-info" + authn + "users/ /jane", "impersonate:user-info" + authn + "groups/ /" + auth.Masters},
			refusal: `User "me" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed`,
		},
		"a service account": {
			user: me, as: &auth.User{Name: "system:serviceaccount:ns:bot"}, may: []string{"impersonate /serviceaccounts/ ns/bot"},
			groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns", auth.Authenticated},
		},
		"any node": {
			user: me, as: &auth.User{Name: "system:node:n1"},
			may:    []string{"impersonate-on:arbitrary-node:list /pods/ default/", "impersonate:arbitrary-node" + authn + "nodes/ /n1"},
			groups: []string{"system:nodes", auth.Authenticated},
		},
		"the own node": {
			user: agent, as: &auth.User{Name: "system:node:n1"},
			may:    []string{"impersonate-on:associated-node:list /pods/ default/", "impersonate:associated-node" + authn + "nodes/ /*"},
			groups: []string{"system:nodes", auth.Authenticated},
		},
		"another node than the own": {
			user: agent, as: &auth.User{Name: "system:node:n2"},
			may:     []string{"impersonate-on:associated-node:list /pods/ default/", "impersonate:associated-node" + authn + "nodes/ /*"},
			refusal: `User "system:serviceaccount:ns:agent" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" in the namespace "default"`,
		},
		"anonymous": {
			user: me, as: &auth.User{Name: auth.Anonymous}, may: []string{"impersonate /users/ /" + auth.Anonymous},
			groups: []string{auth.Unauthenticated},
		},
		"many groups by one permission": {
			user: me, as: &auth.User{Name: "jane", Groups: []string{"a", "b", "c", "d"}},
			may:    []string{"impersonate-on:user-info:list /pods/ default/", "impersonate:user-info" + authn + "users/ /jane", "impersonate:user-info" + authn + "groups/ /*"},
			groups: []string{"a", "b", "c", "d", auth.Authenticated},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			may := permissions{}
			for _, line := range c.may {
				may[line] = true
			}
			i := &auth.Impersonator{Authorizer: may}
			request := &auth.Attributes{User: c.user, Verb: "list", ResourceRequest: true, Version: "v1", Resource: "pods", Namespace: "default"}
			got, _, err := i.Impersonate(t.Context(), request, c.as)
			if c.groups == nil {
				if err == nil || err.Error() != c.refusal {
					t.Errorf("%+v, %v, want %s", got, err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := *c.as
			want.Groups = c.groups
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImpersonationRefusalIsThatOfTheLastMode(t *testing.T) {
	t.Parallel()
	i := &auth.Impersonator{Authorizer: permissions{"impersonate /users/ /jane": true}}
	a := &auth.Attributes{User: &auth.User{Name: "me"}, Verb: "list", ResourceRequest: true, Resource: "pods"}
	if _, _, err := i.Impersonate(t.Context(), a, &auth.User{Name: "jane"}); err != nil {
		t.Fatal(err)
	}
	_, _, err := i.Impersonate(t.Context(), a, &auth.User{Name: "joe"})
	if want := `User "me" cannot impersonate resource "users" in API group "" at the cluster scope`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestFirstOpinionDecides(t *testing.T) {
	t.Parallel()
	all := auth.Authorizers{auth.AllowMasters{}, auth.AllowPaths{"/version", "/api/*"}}
	for _, c := range []struct {
		a    auth.Attributes
		want auth.Decision
	}{
		{auth.Attributes{User: &auth.User{Groups: []string{auth.Masters}}, Verb: "delete"}, auth.Allow},
		{auth.Attributes{User: &auth.User{}, Verb: "get", Path: "/version"}, auth.Allow},
		{auth.Attributes{User: &auth.User{}, Verb: "get", Path: "/api/v1"}, auth.Allow},
		{auth.Attributes{User: &auth.User{}, Verb: "post", Path: "/version"}, auth.NoOpinion},
		{auth.Attributes{User: &auth.User{}, Verb: "get", Path: "/version", ResourceRequest: true}, auth.NoOpinion},
		{auth.Attributes{Verb: "get", Path: "/metrics"}, auth.NoOpinion},
	} {
		if got, _, err := all.Authorize(context.Background(), &c.a); got != c.want || err != nil {
			t.Errorf("%+v: %v, %v", c.a, got, err)
		}
	}
}
