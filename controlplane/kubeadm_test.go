// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controlplane"
)

// kubeadm writes the files of kubeadm into a folder: PKCS #1 and RSA, as its default is.
type kubeadm struct {
	*testing.T
	dir       string
	authority *x509.Certificate
	signer    *rsa.PrivateKey
	accounts  *rsa.PrivateKey
}

func (k *kubeadm) write(name, kind string, content []byte) {
	k.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(filepath.Join(k.dir, name), text, 0o600); err != nil {
		k.Fatal(err)
	}
}

// issue returns a certificate and its key; nil signs it with the key itself.
func (k *kubeadm) issue(template *x509.Certificate, parent *x509.Certificate, signer *rsa.PrivateKey) (*x509.Certificate, *rsa.PrivateKey) {
	k.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		k.Fatal(err)
	}
	if parent == nil {
		parent, signer = template, key
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		k.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		k.Fatal(err)
	}
	return cert, key
}

func newKubeadm(t *testing.T) *kubeadm {
	t.Helper()
	k := &kubeadm{T: t, dir: filepath.Join(t.TempDir(), "pki")}
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, name := range map[string]string{"ca": "kubernetes", "front-proxy-ca": "front-proxy-ca"} {
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		}
		cert, key := k.issue(template, nil, nil)
		k.write(file+".crt", "CERTIFICATE", cert.Raw)
		k.write(file+".key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
		if file == "ca" {
			k.authority, k.signer = cert, key
		}
	}
	_, k.accounts = k.issue(&x509.Certificate{}, nil, nil)
	public, err := x509.MarshalPKIXPublicKey(k.accounts.Public())
	if err != nil {
		t.Fatal(err)
	}
	k.write("sa.key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k.accounts))
	k.write("sa.pub", "PUBLIC KEY", public)
	return k
}

// files returns the names and contents in the folder.
func (k *kubeadm) files() map[string]string {
	k.Helper()
	out := map[string]string{}
	all, err := os.ReadDir(k.dir)
	if err != nil {
		k.Fatal(err)
	}
	for _, f := range all {
		text, err := os.ReadFile(filepath.Join(k.dir, f.Name()))
		if err != nil {
			k.Fatal(err)
		}
		out[f.Name()] = string(text)
	}
	return out
}

func TestPlaneUsesTheKeysOfKubeadm(t *testing.T) {
	t.Parallel()
	k := newKubeadm(t)
	before := k.files()
	keys, err := controlplane.OpenKeys(k.dir)
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.New(controlplane.Options{Listen: "127.0.0.1:0", Authentication: controlplane.Authentication{Keys: keys}})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})

	// admin.conf of kubeadm has a certificate of ca.crt, and trusts that.
	cert, key := k.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes-super-admin", Organization: []string{"system:masters"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, k.authority, k.signer)
	admin := apiOf(t, &rest.Config{Host: plane.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData:   []byte(before["ca.crt"]),
		CertData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
		KeyData:  pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}})
	admin.must(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: one}}`)
	request := admin.must(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/one/token", `{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}`)
	token, _, err := unstructured.NestedString(request.Object, "status", "token")
	if err != nil {
		t.Fatal(err)
	}
	// Others verify it with sa.pub.
	dot := strings.LastIndex(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(token[dot+1:])
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(token[:dot]))
	if err := rsa.VerifyPKCS1v15(&k.accounts.PublicKey, crypto.SHA256, sum[:], raw); err != nil {
		t.Errorf("the token is not signed with sa.key: %v", err)
	}

	after := k.files()
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s was changed", name)
		}
		delete(after, name)
	}
	if names := slices.Sorted(maps.Keys(after)); !slices.Equal(names, []string{"peer-ca.crt", "peer-ca.key"}) {
		t.Errorf("there are new files: %v", names)
	}
}

// With --external-ca of kubeadm the key of the authority is elsewhere.
func TestKeysKeepTheCertificateOfAnAuthorityWhoseKeyIsElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ca", "front-proxy-ca"} {
		k := newKubeadm(t)
		if err := os.Remove(filepath.Join(k.dir, name+".key")); err != nil {
			t.Fatal(err)
		}
		before := k.files()[name+".crt"]
		_, err := controlplane.OpenKeys(k.dir)
		if err == nil || !strings.Contains(err.Error(), name+".key") {
			t.Errorf("without %s.key: %v", name, err)
		}
		if k.files()[name+".crt"] != before {
			t.Errorf("%s.crt was changed", name)
		}
	}
}
