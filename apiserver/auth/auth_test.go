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
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	a := auth.NewCertificates(roots)
	r := request()
	if u, err := a.Authenticate(r); u != nil || err != nil {
		t.Errorf("without a certificate: %v, %v", u, err)
	}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{good}}
	u, err := a.Authenticate(r)
	if err != nil || u.Name != "jane" || !u.In("ops") {
		t.Errorf("known authority: %v, %v", u, err)
	}
	r.TLS.PeerCertificates = []*x509.Certificate{bad}
	if u, err := a.Authenticate(r); err == nil {
		t.Errorf("unknown authority: %v", u)
	}
}

func TestRememberedCertificatesEndWhenTheyEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		authority, key := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
		client, _ := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "jane"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, authority, key)
		roots := x509.NewCertPool()
		roots.AddCert(authority)
		a := auth.NewCertificates(roots)
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

func TestImpersonationAsksForEachPart(t *testing.T) {
	t.Parallel()
	me := &auth.User{Name: "me"}
	as, needs, err := auth.Impersonation(request("Impersonate-User", "jane", "Impersonate-Group", "dev", "Impersonate-Uid", "7",
		"Impersonate-Extra-Scopes%2fx", "view"), me)
	if err != nil {
		t.Fatal(err)
	}
	want := &auth.User{Name: "jane", UID: "7", Groups: []string{"dev", auth.Authenticated}, Extra: map[string][]string{"scopes/x": {"view"}}}
	if diff := cmp.Diff(want, as); diff != "" {
		t.Error(diff)
	}
	var asked []string
	for _, n := range needs {
		asked = append(asked, n.Resource+"/"+n.Subresource+" "+n.Name)
	}
	if diff := cmp.Diff([]string{"users/ jane", "groups/ dev", "userextras/scopes/x view", "uids/ 7"}, asked); diff != "" {
		t.Error(diff)
	}

	as, needs, err = auth.Impersonation(request("Impersonate-User", "system:serviceaccount:ns:bot"), me)
	if err != nil || len(needs) != 1 || needs[0].Resource != "serviceaccounts" || needs[0].Namespace != "ns" || needs[0].Name != "bot" {
		t.Errorf("service account: %v, %v", needs, err)
	}
	if !as.In("system:serviceaccounts:ns") || !as.In(auth.Authenticated) {
		t.Errorf("groups of a service account: %v", as.Groups)
	}
	if _, _, err = auth.Impersonation(request("Impersonate-Group", "dev"), me); err == nil {
		t.Error("a group without a user")
	}
	if as, _, err = auth.Impersonation(request(), me); as != nil || err != nil {
		t.Errorf("nothing asked: %v, %v", as, err)
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
