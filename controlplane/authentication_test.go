// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane"
)

const signingRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// certified lets a plane sign a certificate for a new key, as kubectl would.
func certified(t *testing.T, plane *controlplane.Plane, api *api, name pkix.Name) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	api.must("POST", signingRequests, `
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: mine}
spec: {signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], request: `+request+`}`)
	api.must("PATCH", signingRequests+"/mine/approval", `status: {conditions: [{type: Approved, status: "True", reason: Mine}]}`)
	settle(t, plane)
	signed := api.must("GET", signingRequests+"/mine", "")
	text, _, _ := unstructured.NestedString(signed.Object, "status", "certificate")
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("no certificate: %v", signed.Object["status"])
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// whoAmI returns the status code of a request and the user that it is of.
func whoAmI(t *testing.T, plane *controlplane.Plane, cert *x509.Certificate, header http.Header) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	r.TLS = &tls.ConnectionState{}
	if cert != nil {
		r.TLS.PeerCertificates = []*x509.Certificate{cert}
	}
	w := httptest.NewRecorder()
	plane.Handler().ServeHTTP(w, r)
	var answer struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	var review struct {
		UserInfo struct {
			Username string `json:"username"`
		} `json:"userInfo"`
	}
	_ = json.Unmarshal(answer.Status, &review) // of a refusal it is a word
	return w.Code, review.UserInfo.Username
}

func TestAuthenticationAcceptsSignedCertificates(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	cert := certified(t, plane, api, pkix.Name{CommonName: "jane", Organization: []string{"dev"}})
	if code, user := whoAmI(t, plane, cert, nil); code != 201 || user != "jane" {
		t.Errorf("with the certificate: %d, %s", code, user)
	}
	other, _ := newPlane(t)
	if code, _ := whoAmI(t, other, cert, nil); code != 401 {
		t.Errorf("at another plane: %d", code)
	}
}

func TestAuthenticationAcceptsUsersOfAFrontProxy(t *testing.T) {
	t.Parallel()
	authority, api := newPlane(t)
	proxy := certified(t, authority, api, pkix.Name{CommonName: "proxy"})
	keys, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	ca := api.must("GET", configMaps+"/kube-root-ca.crt", "")
	text, _, _ := unstructured.NestedString(ca.Object, "data", "ca.crt")
	roots, err := cert.ParseCertsPEM([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.New(controlplane.Options{ManualControllers: true, Authentication: controlplane.Authentication{
		Keys: keys, NoAnonymous: true, FrontProxy: &auth.FrontProxy{Certificates: auth.NewCertificates(roots...)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop(t.Context())
	jane := http.Header{"X-Remote-User": {"jane"}}
	if code, user := whoAmI(t, plane, proxy, jane); code != 201 || user != "jane" {
		t.Errorf("by the proxy: %d, %s", code, user)
	}
	for name, c := range map[string]struct {
		cert   *x509.Certificate
		header http.Header
	}{"without a certificate": {nil, jane}, "by a proxy that names no user": {proxy, nil}, "without anything": {nil, nil}} {
		if code, user := whoAmI(t, plane, c.cert, c.header); code != 401 {
			t.Errorf("%s: %d, %s", name, code, user)
		}
	}
}

func TestAnonymousRequestsMayAskForTheGivenPathsOnly(t *testing.T) {
	t.Parallel()
	plane, api := listening(t, controlplane.Options{Authentication: controlplane.Authentication{AnonymousPaths: []string{"/livez"}}})
	stranger := apiOf(t, rest.AnonymousClientConfig(configOf(t, plane)))
	for path, want := range map[string]int{"/livez": 200, "/readyz": 401, "/livez/ping": 401, "/version": 401, "/api/v1/namespaces": 401} {
		if code, body := stranger.do("GET", path, ""); code != want {
			t.Errorf("GET %s without credentials: %d %s, want %d", path, code, body, want)
		}
		if code, body := api.do("GET", path, ""); code != 200 {
			t.Errorf("GET %s as an administrator: %d %s", path, code, body)
		}
	}
}
