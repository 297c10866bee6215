// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// signers are one key of every kind.
func signers(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	out := map[string]crypto.Signer{}
	for name, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = key
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	out["RS256"] = key
	return out
}

func TestKeysOfEveryTypeSignAndVerify(t *testing.T) {
	t.Parallel()
	said := &claims{Audience: audience{"a", "b"}, Issuer: "https://x", Expires: new(date(7)), Bound: &binding{Namespace: "n", Account: reference{Name: "s", UID: "u"}}}
	all := signers(t)
	for algorithm, signer := range all {
		public, err := newPublicKey(signer.Public())
		if err != nil {
			t.Fatal(err)
		}
		token, err := encode(said, public, signer)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := encode(said, public, signer); err != nil || again != token {
			t.Errorf("%s: the same claims give another token the second time: %v", algorithm, err)
		}
		got, err := decode(token)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*said, got.claims); diff != "" || got.header.Algorithm != algorithm {
			t.Errorf("%s: header %+v, claims (-want +got):\n%s", algorithm, got.header, diff)
		}
		if !got.isSignedBy([]*publicKey{public}) {
			t.Errorf("%s: its own key does not verify it", algorithm)
		}
		if w := public.webKey(); w.ID != public.id || w.Algorithm != algorithm || (w.N == "") == (w.X == "") {
			t.Errorf("%s: published as %+v", algorithm, w)
		}
		for other, stranger := range all {
			if key, err := newPublicKey(stranger.Public()); err != nil || other != algorithm && got.isSignedBy([]*publicKey{key}) {
				t.Errorf("%s: the key of %s verifies it, %v", algorithm, other, err)
			}
		}
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newPublicKey(edwards); !errors.Is(err, ErrKeyType) {
		t.Errorf("an Ed25519 key: %v", err)
	}
}

func TestKeysRefuseForgedTokens(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := newPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	token, err := encode(&claims{Subject: "system:serviceaccount:a:b"}, public, key)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	text := base64.RawURLEncoding.EncodeToString
	for name, forged := range map[string]string{
		"without signature":  parts[0] + "." + parts[1] + ".",
		"of no algorithm":    text([]byte(`{"alg":"none","kid":"`+public.id+`"}`)) + "." + parts[1] + ".",
		"of another":         text([]byte(`{"alg":"RS256","kid":"`+public.id+`"}`)) + "." + parts[1] + "." + parts[2],
		"with other claims":  parts[0] + "." + text([]byte(`{"sub":"system:serviceaccount:kube-system:admin"}`)) + "." + parts[2],
		"of another key":     text([]byte(`{"alg":"ES256","kid":"x"}`)) + "." + parts[1] + "." + parts[2],
		"of half the length": parts[0] + "." + parts[1] + "." + parts[2][:43],
		"of zeros":           parts[0] + "." + parts[1] + "." + text(make([]byte, 64)),
	} {
		if u, err := decode(forged); err == nil && u.isSignedBy([]*publicKey{public}) {
			t.Errorf("a token %s is believed", name)
		}
	}
	for _, header := range []string{`{"alg":"ES256","crit":["x"],"x":1}`, `{"alg":"ES256","jwk":{}}`, `{"ALG":"ES256"}`, `{"alg":"none","alg":"ES256"}`} {
		forged := text([]byte(header)) + "." + parts[1]
		signature, err := public.sign(key, forged)
		if err != nil {
			t.Fatal(err)
		}
		if u, err := decode(forged + "." + text(signature)); err == nil && u.isSignedBy([]*publicKey{public}) {
			t.Errorf("a token with the header %s is believed", header)
		}
	}
	for _, malformed := range []string{"", "a", "a.b", "a.b.c", parts[0] + "." + parts[1], token + ".x", parts[0] + "." + text([]byte("[]")) + "." + parts[2]} {
		if _, err := decode(malformed); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %v", malformed, err)
		}
	}
}
