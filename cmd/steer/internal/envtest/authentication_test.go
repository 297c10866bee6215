// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/controlplane"
)

// parsed reads the flags of a kube-apiserver.
func parsed(t *testing.T, args ...string) *authenticationFlags {
	t.Helper()
	var a authenticationFlags
	f := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
	a.register(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &a
}

func TestDisabledPluginsThatThereAreNotAreNamed(t *testing.T) {
	t.Parallel()
	var notes strings.Builder
	got := parsed(t, "--disable-admission-plugins=ServiceAccount,AlwaysPullImages", "--enable-admission-plugins=PodNodeSelector,LimitRanger").disabled(&notes)
	if want := []string{"ServiceAccount"}; !slices.Equal(got, want) {
		t.Errorf("disabled are %v, want %v", got, want)
	}
	for _, name := range []string{"AlwaysPullImages", "PodNodeSelector"} {
		if !strings.Contains(notes.String(), name) {
			t.Errorf("nothing is said about %s:\n%s", name, notes.String())
		}
	}
	if strings.Contains(notes.String(), "LimitRanger") {
		t.Errorf("a plugin that there is was complained about:\n%s", notes.String())
	}
}

func TestKeysOfAccountsAreThoseOfTheFlags(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sa.key")
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	o := controlplane.Authentication{Keys: &controlplane.Keys{}}
	flags := parsed(t, "--service-account-signing-key-file="+file, "--service-account-key-file="+file,
		"--service-account-issuer=https://a", "--service-account-issuer=https://b", "--api-audiences=x,y", "--anonymous-auth=false")
	if err := flags.apply(&o); err != nil {
		t.Fatal(err)
	}
	if !key.Equal(o.Keys.Accounts.Signer) || len(o.Keys.Accounts.Verifiers) != 1 || !key.PublicKey.Equal(o.Keys.Accounts.Verifiers[0]) {
		t.Errorf("the keys are %+v", o.Keys.Accounts)
	}
	if !slices.Equal(o.Issuers, []string{"https://a", "https://b"}) || !slices.Equal(o.Audiences, []string{"x", "y"}) || !o.NoAnonymous || o.ExactTokenLife {
		t.Errorf("authentication is %+v", o)
	}
	for _, flag := range []string{"--service-account-signing-key-file", "--service-account-key-file", "--requestheader-client-ca-file"} {
		err := parsed(t, flag+"="+file+".missing").apply(&controlplane.Authentication{Keys: &controlplane.Keys{}})
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s with a file that there is not: %v", flag, err)
		}
	}
}

func TestAuthenticationConfigurationRestrictsAnonymousRequests(t *testing.T) {
	t.Parallel()
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "authentication.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const head = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"
	for _, test := range []struct {
		text  string
		more  []string // flags
		none  bool     // no anonymous requests
		paths []string
		err   string
	}{
		{head + "anonymous: {enabled: true}", nil, false, nil, ""},
		{head + "anonymous: {enabled: false}", nil, true, nil, ""},
		{head + "anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}", nil, false, []string{"/livez", "/readyz"}, ""},
		{head, []string{"--anonymous-auth=false"}, true, nil, ""},
		{head + "anonymous: {enabled: true}", []string{"--anonymous-auth=true"}, false, nil, "--anonymous-auth says it as well"},
		{head + "anonymous: {enabled: false, conditions: [{path: /livez}]}", nil, false, nil, "nothing to restrict"},
		{head + "anonymous: {enabled: true, conditions: [{}]}", nil, false, nil, "anonymous.conditions[0].path is missing"},
		{head + "jwt: [{issuer: {url: 'https://a'}}]", nil, false, nil, "jwt: tokens of other issuers are not implemented"},
		{head + "anonymus: {}", nil, false, nil, `unknown field "anonymus"`},
		{"kind: AuthenticationConfiguration", nil, false, nil, `want an AuthenticationConfiguration of apiserver.config.k8s.io/v1`},
	} {
		o := controlplane.Authentication{Keys: &controlplane.Keys{}}
		err := parsed(t, append(test.more, "--authentication-config="+write(test.text))...).apply(&o)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), "--authentication-config: ") {
				t.Errorf("%s: %v, want %s", test.text, err, test.err)
			}
			continue
		}
		if err != nil || o.NoAnonymous != test.none || !slices.Equal(o.AnonymousPaths, test.paths) {
			t.Errorf("%s: refused %t, paths %q, %v", test.text, o.NoAnonymous, o.AnonymousPaths, err)
		}
	}
}
