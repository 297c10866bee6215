// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/auth"
)

// meantFor accepts one token, which is for some audiences.
type meantFor []string

// AuthenticateToken implements auth.TokenAuthenticator.
func (m meantFor) AuthenticateToken(_ context.Context, token string, audiences []string) (*auth.User, []string, error) {
	if token != "bound" {
		return nil, nil, nil
	}
	meant := slices.DeleteFunc(slices.Clone(audiences), func(a string) bool { return !slices.Contains(m, a) })
	if len(meant) == 0 {
		return nil, nil, errors.New("it is for others")
	}
	return &auth.User{Name: "bot"}, meant, nil
}

func TestTokensAreForTheirAudiences(t *testing.T) {
	t.Parallel()
	long, tooLong := strings.Repeat("x", 32<<10), strings.Repeat("x", 32<<10+1)
	b := auth.Bearer{Tokens: []auth.TokenAuthenticator{auth.Tokens{"static": {Name: "ann"}, long: {Name: "ann"}, tooLong: {Name: "ann"}}, meantFor{"here", "vault"}}, Audiences: []string{"here", "api"}}
	for _, c := range []struct {
		token     string
		audiences []string
		user      string
		meant     []string
		err       string
	}{
		{"static", nil, "ann", []string{"here", "api"}, ""},
		{"static", []string{"api", "vault"}, "ann", []string{"api"}, ""},
		{"static", []string{"vault"}, "", nil, "invalid bearer token"},
		{"bound", nil, "bot", []string{"here"}, ""},
		{"bound", []string{"vault", "x"}, "bot", []string{"vault"}, ""},
		{"bound", []string{"x"}, "", nil, "[invalid bearer token, it is for others]"},
		{"nonsense", nil, "", nil, "invalid bearer token"},
		{long, nil, "ann", []string{"here", "api"}, ""},
		{tooLong, nil, "", nil, "invalid bearer token"},
	} {
		user, meant, err := b.Review(t.Context(), c.token, c.audiences)
		if c.err != "" {
			if err == nil || err.Error() != c.err || !errors.Is(err, auth.ErrBadCredentials) || user != nil {
				t.Errorf("%s for %v: %v, %v", c.token, c.audiences, user, err)
			}
			continue
		}
		if err != nil || user.Name != c.user || !slices.Equal(meant, c.meant) {
			t.Errorf("%s for %v: %v for %v, %v", c.token, c.audiences, user, meant, err)
		}
	}
}

func TestWebSocketsCarryTheirTokenAsASubprotocol(t *testing.T) {
	t.Parallel()
	b := auth.Bearer{Tokens: []auth.TokenAuthenticator{auth.Tokens{"secret": {Name: "ann"}}}}
	const protocol = "base64url.bearer.authorization.k8s.io."
	token := protocol + base64.RawURLEncoding.EncodeToString([]byte("secret"))
	for name, c := range map[string]struct {
		upgrade, offers string
		user, left      string
		refused         bool
	}{
		"with another":       {"websocket", "v4.channel.k8s.io, " + token, "ann", "v4.channel.k8s.io", false},
		"alone":              {"websocket", token, "", "", true},
		"twice":              {"websocket", token + "," + token + ",x", "", "", true},
		"damaged":            {"websocket", protocol + "!,x", "", "", true},
		"of no known user":   {"websocket", protocol + "eA,x", "", "", true},
		"not in a WebSocket": {"", token + ",x", "", token + ",x", false},
		"none":               {"websocket", "x", "", "x", false},
	} {
		r := request("Upgrade", c.upgrade, "Sec-WebSocket-Protocol", c.offers)
		user, err := b.Authenticate(r)
		if (err != nil) != c.refused || (user == nil) != (c.user == "") || user != nil && user.Name != c.user {
			t.Errorf("%s: %v, %v", name, user, err)
		}
		if left := r.Header.Get("Sec-WebSocket-Protocol"); !c.refused && left != c.left {
			t.Errorf("%s: %q is left", name, left)
		}
	}
}

func TestFrontProxiesNameUsers(t *testing.T) {
	t.Parallel()
	authority, key := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
	stranger, strangeKey := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	}
	good, _ := certificate(t, template("proxy"), authority, key)
	other, _ := certificate(t, template("other"), authority, key)
	bad, _ := certificate(t, template("proxy"), stranger, strangeKey)
	p := auth.FrontProxy{Certificates: auth.NewCertificates(authority), Names: []string{"proxy"}}
	headers := []string{"X-Remote-User", "jane", "X-Remote-Uid", "7", "X-Remote-Group", "dev", "X-Remote-Group", "ops", "X-Remote-Extra-Scopes%2fx", "view"}
	for name, c := range map[string]struct {
		cert    *x509.Certificate
		headers []string
		known   bool
		refused bool
	}{
		"the proxy":         {good, headers, true, false},
		"without a name":    {good, headers[2:], false, false},
		"another name":      {other, headers, false, true},
		"another authority": {bad, headers, false, true},
		"no certificate":    {nil, headers, false, false},
	} {
		r := request(c.headers...)
		r.TLS = &tls.ConnectionState{}
		if c.cert != nil {
			r.TLS.PeerCertificates = []*x509.Certificate{c.cert}
		}
		user, err := p.Authenticate(r)
		if (user != nil) != c.known || (err != nil) != c.refused {
			t.Errorf("%s: %v, %v", name, user, err)
		}
		if !c.known {
			continue
		}
		want := &auth.User{Name: "jane", UID: "7", Groups: []string{"dev", "ops"}, Extra: map[string][]string{"scopes/x": {"view"}}}
		if diff := cmp.Diff(want, user); diff != "" || len(r.Header) != 0 {
			t.Errorf("%s: headers %v are left, user (-want +got):\n%s", name, r.Header, diff)
		}
	}
}

func TestCertificatesMayNameAUID(t *testing.T) {
	t.Parallel()
	oid := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}
	authority, key := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true}, nil, nil)
	a := auth.NewCertificates(authority)
	for _, uids := range [][]string{{"7"}, {"7", "8"}, {}} {
		subject := pkix.Name{CommonName: "jane"}
		for _, uid := range uids {
			subject.ExtraNames = append(subject.ExtraNames, pkix.AttributeTypeAndValue{Type: oid, Value: uid})
		}
		cert, _ := certificate(t, &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, authority, key)
		r := request()
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		switch u, err := a.Authenticate(r); {
		case len(uids) == 2 && err == nil:
			t.Errorf("two UIDs: %v", u)
		case len(uids) < 2 && (err != nil || u.UID != append(uids, "")[0]):
			t.Errorf("UIDs %v: %v, %v", uids, u, err)
		}
	}
}
