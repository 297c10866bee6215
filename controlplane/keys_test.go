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

func TestKeysThatAreDamagedAreNotReplaced(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	if _, err := OpenKeys(whole); err != nil {
		t.Fatal(err)
	}
	for _, name := range keyFiles() {
		for _, content := range []string{"", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
			for _, alone := range []bool{false, true} {
				dir := t.TempDir()
				if !alone {
					if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
						t.Fatal(err)
					}
				} else if filepath.Ext(name) == certSuffix {
					continue // without a key it is worth nothing
				}
				file := filepath.Join(dir, name)
				_ = os.Remove(file) // CopyFS has made it, or it is not there
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := OpenKeys(dir)
				if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "restore") || !strings.Contains(err.Error(), dir) {
					t.Errorf("%s is %q, alone %v: error %v, want one about damage that says what to do", name, content, alone, err)
				}
				if left, err := os.ReadFile(file); err != nil || string(left) != content {
					t.Errorf("%s was replaced: %v", name, err)
				}
			}
		}
	}
}

// A crash while a directory is made leaves some of the files, whichever order the
// disk has written the names in, and half-written ones.
func TestKeysAreCompletedAfterACrash(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	made, err := OpenKeys(whole)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := made.issue(pkix.Name{CommonName: "x"}, nil, x509.ExtKeyUsageClientAuth)
	if err != nil {
		t.Fatal(err)
	}
	names := keyFiles()
	for there := range 1 << len(names) {
		dir := t.TempDir()
		kept := map[string]bool{}
		for i, name := range names {
			from := filepath.Join(whole, name)
			to := filepath.Join(dir, "."+name+".1234")
			if kept[name] = there&(1<<i) != 0; kept[name] {
				to = filepath.Join(dir, name)
			}
			content, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if !kept[name] {
				content = content[:len(content)/2]
			}
			if err := os.WriteFile(to, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found, err := OpenKeys(dir)
		if err != nil {
			t.Errorf("with %v: %v", kept, err)
			continue
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != len(names) {
			t.Errorf("with %v: left %v, %v", kept, all, err)
		}
		again, err := OpenKeys(dir)
		if err != nil || !again.CA.Equal(found.CA) || !again.Accounts.Signer.(*ecdsa.PrivateKey).Equal(found.Accounts.Signer) {
			t.Errorf("with %v: the second time there were other keys: %v", kept, err)
		}
		if same := found.FrontProxy.Certificate.PublicKey.(*ecdsa.PublicKey).Equal(made.FrontProxy.Certificate.PublicKey); same != kept["front-proxy-ca.key"] {
			t.Errorf("with %v: the key of the front proxy stayed %v", kept, same)
		}
		if same := found.Accounts.Signer.(*ecdsa.PrivateKey).Equal(made.Accounts.Signer); same != kept[accountKeyFile] {
			t.Errorf("with %v: the key of the accounts stayed %v", kept, same)
		}
		_, err = issued.Leaf.Verify(x509.VerifyOptions{Roots: found.pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if (err == nil) != kept["ca.key"] {
			t.Errorf("with %v: what was issued before: %v", kept, err)
		}
	}
}

func TestKeysForTestsAreConstantAndRefusedByListeners(t *testing.T) {
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
	if _, err := listen(t.Context(), "127.0.0.1:0", nil, a, nil, nil, nil, nil); !errors.Is(err, ErrTestKeys) {
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
