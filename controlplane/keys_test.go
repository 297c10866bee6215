// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/auth"
)

func TestKeysStayInTheirDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	first, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.CA.Raw, again.CA.Raw) || !first.Accounts.Signer.(*ecdsa.PrivateKey).Equal(again.Accounts.Signer) {
		t.Error("the second time there was another authority, or another key for accounts")
	}
	for name, want := range map[string]os.FileMode{".": 0o700, "ca.key": 0o600, "ca.crt": 0o600, "sa.key": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	issued, err := again.issue(pkix.Name{CommonName: "x"}, []string{"localhost", "127.0.0.1"}, x509.ExtKeyUsageServerAuth)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if _, err := issued.Leaf.Verify(x509.VerifyOptions{Roots: first.pool(), DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestDamagedKeysAreNotReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	if _, err := OpenKeys(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("error %v, want one about damage", err)
	}
}

func TestTestKeysAreAlwaysTheSameAndRefusedByListeners(t *testing.T) {
	t.Parallel()
	a, err := TestKeys()
	if err != nil {
		t.Fatal(err)
	}
	b, err := TestKeys()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.CA.Raw, b.CA.Raw) {
		t.Error("test keys differ between calls")
	}
	if _, err := listen(t.Context(), "127.0.0.1:0", nil, a, nil, nil); !errors.Is(err, ErrTestKeys) {
		t.Errorf("listen: %v, want %v", err, ErrTestKeys)
	}
}

func TestTokensAreReadFromLines(t *testing.T) {
	t.Parallel()
	got, err := ReadTokens(strings.NewReader("secret,ada,1,\"admins, builders\"\nother,bob,2\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := auth.Tokens{
		"secret": {Name: "ada", UID: "1", Groups: []string{"admins", "builders"}},
		"other":  {Name: "bob", UID: "2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"secret,ada":   "line 1 of the tokens",
		"a,b,c\n,b,c":  "line 2 of the tokens",
		"a,b,c\na,d,e": "line 2 of the tokens: this token",
		"a,b,\"c":      "read the tokens",
	} {
		if _, err := ReadTokens(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
