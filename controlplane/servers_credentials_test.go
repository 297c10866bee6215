// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/controlplane"
)

// readsAndWrites reads and writes with an Authorization header, which may be empty, and a certificate, which
// may be nil, and returns the codes of the answers.
func (a *actors) readsAndWrites(name, header string, certificate *tls.Certificate) [2]int {
	a.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	a.Cleanup(transport.CloseIdleConnections)
	client := &api{tb: a, host: a.plane.URL(), client: &http.Client{Transport: transport}}
	headers := map[string]string{"Content-Type": "application/yaml"}
	if header != "" {
		headers["Authorization"] = header
	}
	read, _ := client.send(http.MethodGet, "/api/v1/secrets", "", headers)
	written, _ := client.send(http.MethodPost, configMaps, configMap(name), headers)
	return [2]int{read, written}
}

// pairOf is the certificate in the kubeconfig of a plane.
func pairOf(t *testing.T, plane *controlplane.Plane) *tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(clientPair(t, plane))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

func TestListenerRefusesUnauthenticatedRequests(t *testing.T) {
	t.Parallel()
	other, _ := listening(t, controlplane.Options{})
	stranger := pairOf(t, other)
	onEachServer(t, func(a *actors) {
		own := pairOf(a.T, a.plane)
		done, nobody, refused := [2]int{200, 201}, [2]int{403, 403}, [2]int{401, 401}
		for i, test := range []struct {
			who, header string
			certificate *tls.Certificate
			want        [2]int
		}{
			{"nobody", "", nil, nobody},
			{"a form that is not known", "Basic x", nil, nobody},
			{"a wrong token", "Bearer wrong", nil, refused},
			{"the administrator's token", "Bearer ada-token", nil, done},
			{"the same, written otherwise", "bearer  ada-token", nil, done},
			{"a user without a role", "Bearer bob-token", nil, nobody},
			{"the administrator's certificate", "", own, done},
			{"the certificate of another authority", "", stranger, refused},
			{"a wrong token beside a certificate", "Bearer wrong", own, done},
		} {
			if got := a.readsAndWrites(fmt.Sprint("a", i), test.header, test.certificate); got != test.want {
				a.Errorf("%s: %v, want %v", test.who, got, test.want)
			}
		}
	})
}

// signAgain returns a token with claims that are changed, signed by the key of the cluster.
func (a *actors) signAgain(token string, change map[string]any) string {
	a.Helper()
	parts := strings.Split(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		a.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(text, &claims); err != nil {
		a.Fatal(err)
	}
	for name, value := range change {
		claims[name] = value
	}
	if text, err = json.Marshal(claims); err != nil {
		a.Fatal(err)
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(text)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, a.keys.Accounts.Signer.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		a.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// A token is good from one time to another, on every server.
func TestActorsWithTokensOutOfTheirTimeDoNothing(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		token, now := a.account("one"), time.Now()
		in := func(d time.Duration) int64 { return now.Add(d).Unix() }
		for i, test := range []struct {
			what   string
			claims map[string]any
			want   [2]int
		}{
			{"as it was", nil, [2]int{200, 201}},
			{"that has ended", map[string]any{"iat": in(-2 * time.Hour), "nbf": in(-2 * time.Hour), "exp": in(-time.Minute)}, [2]int{401, 401}},
			{"that is not good yet", map[string]any{"nbf": in(time.Hour), "exp": in(2 * time.Hour)}, [2]int{401, 401}},
			{"for another audience", map[string]any{"aud": []string{"vault"}}, [2]int{401, 401}},
			{"of another issuer", map[string]any{"iss": "https://example.com"}, [2]int{401, 401}},
		} {
			if got := a.readsAndWrites(fmt.Sprint("a", i), "Bearer "+a.signAgain(token, test.claims), nil); got != test.want {
				a.Errorf("a token %s: %v, want %v", test.what, got, test.want)
			}
		}
	})
}
