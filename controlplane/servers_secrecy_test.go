// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"github.com/steer-dev/steer/storage"
)

// traces are the forms in which a private key could be stored: the number that it is, as bytes
// and as text, and what all private keys in PEM begin with.
func traces(t *testing.T, keys map[string]crypto.Signer) map[string][]string {
	t.Helper()
	// Base64 of three bytes is four characters: what stands before decides which of three
	// texts the inner ones are.
	inner := func(secret []byte) (out []string) {
		for shift := range 3 {
			text := base64.StdEncoding.EncodeToString(append(make([]byte, shift), secret...))
			out = append(out, text[4:len(text)-4])
		}
		return out
	}
	out := map[string][]string{"PEM": append(inner([]byte("PRIVATE KEY")), "PRIVATE KEY")}
	for name, signer := range keys {
		key, ok := signer.(*ecdsa.PrivateKey)
		if !ok {
			t.Fatalf("%s is a %T", name, signer)
		}
		number, err := key.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil || !bytes.Contains(der, number) {
			t.Fatalf("%s: its encoding lacks its number: %v", name, err)
		}
		out[name] = append(inner(number), string(number), hex.EncodeToString(number))
	}
	return out
}

// found returns what of the traces is in a store, and how many objects that has.
func found(v storage.View, all map[string][]string) (where []string, objects int) {
	for bucket := range v.Buckets() {
		for rec := range v.Ascend(bucket, "", "") {
			objects++
			for name, texts := range all {
				for _, text := range texts {
					if bytes.Contains(rec.Value, []byte(text)) {
						where = append(where, fmt.Sprintf("%s in %s", name, rec.Key))
					}
				}
			}
		}
	}
	return where, objects
}

// The keys of servers are in their folders alone: a reader of etcd has none of them.
func TestStoreHasNoPrivateKeys(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(a *actors) {
		a.account("one")
		a.admin.must(http.MethodPost, "/api/v1/namespaces/default/secrets", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
metadata: {name: token, annotations: {kubernetes.io/service-account.name: default}}}`)
		a.awaitRecord(storage.Key{Bucket: "secrets", Name: "default/token"}, `"token":"`)
		a.admin.must(http.MethodPost, "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: fresh}}")
		a.awaitObject("configmaps", "fresh/kube-root-ca.crt")
		signers := map[string]crypto.Signer{
			"ca": a.keys.Signer, "front-proxy-ca": a.keys.FrontProxy.Signer, "peer-ca": a.keys.Peer.Signer, "sa": a.keys.Accounts.Signer,
		}
		all := traces(a.T, signers)
		if where, objects := found(a.other.Latest(), all); len(where) > 0 || objects < 50 {
			a.Errorf("of %d objects: %v", objects, where)
		}
		// So would a key look that is stored.
		for name, signer := range signers {
			der, err := x509.MarshalPKCS8PrivateKey(signer)
			if err != nil {
				a.Fatal(err)
			}
			a.admin.must(http.MethodPost, "/api/v1/namespaces/default/secrets", `{apiVersion: v1, kind: Secret, metadata: {name: `+name+`}, data: {key: "`+base64.StdEncoding.EncodeToString(der)+`"}}`)
			a.awaitObject("secrets", "default/"+name)
			if where, _ := found(a.other.Latest(), map[string][]string{name: all[name]}); len(where) != 1 {
				a.Errorf("%s, which is stored: found %v", name, where)
			}
		}
	})
}
