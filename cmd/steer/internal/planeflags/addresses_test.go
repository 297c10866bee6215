// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"

	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/controlplane/kubelet"
)

func TestKubeletsAreReachedAsTheFlagsSay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	renew := func() *tls.Certificate {
		t.Helper()
		certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("kubelet", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string][]byte{certificate: certPEM, key: keyPEM} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		return &pair
	}
	apply := func(args ...string) (o kubelet.Options, err error) {
		var k planeflags.Kubelets
		f := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
		k.AddFlags(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		err = k.Apply(&o)
		return o, err
	}
	renew()
	o, err := apply("--kubelets=127.0.0.0/8,::1/128", "--kubelet-certificate-authority="+certificate, "--kubelet-client-certificate="+certificate, "--kubelet-client-key="+key)
	if err != nil || len(o.Reach) != 2 || o.Authorities == nil {
		t.Fatalf("the options are %+v, %v", o, err)
	}
	want := renew() // while the server runs
	if got, err := o.Certificate(); err != nil || string(got.Certificate[0]) != string(want.Certificate[0]) {
		t.Errorf("the certificate is not that of the file any more: %v", err)
	}
	for flag, text := range map[string]string{
		"--kubelets=127.0.0.1":                        "is no range of addresses",
		"--kubelet-certificate-authority=/absent":     "--kubelet-certificate-authority: ",
		"--kubelet-client-certificate=" + certificate: "--kubelet-client-certificate and --kubelet-client-key: ",
	} {
		if _, err := apply(flag); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %s", flag, err, text)
		}
	}
}
