// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/controlplane"
)

func TestFlagsOfSeveralServersAreUnderstood(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "api.example.com": "api.example.com:6443", "api.example.com:443": "api.example.com:443",
		"10.0.0.1": "10.0.0.1:6443", "fd00::1": "[fd00::1]:6443", "[fd00::1]:443": "[fd00::1]:443",
	} {
		var o controlplane.Options
		if err := (&several{endpoint: text}).apply(&o); err != nil || o.Endpoint != want {
			t.Errorf("--control-plane-endpoint %q: %q, %v, want %q", text, o.Endpoint, err, want)
		}
	}
	for text, want := range map[string]string{"10.0.0.1": "10.0.0.1:0", "10.0.0.1:6443": "10.0.0.1:6443", "fd00::1": "[fd00::1]:0"} {
		var o controlplane.Options
		if err := (&several{advertise: text}).apply(&o); err != nil || o.Advertise.String() != want {
			t.Errorf("--advertise-address %q: %v, %v, want %q", text, o.Advertise, err, want)
		}
	}
	for want, s := range map[string]several{
		"an IP address that others connect to": {advertise: "0.0.0.0"},
		"--advertise-address":                  {advertise: "api.example.com"},
		"no name or address with a port":       {endpoint: ":6443"},
		"--control-plane-endpoint":             {endpoint: "a:b"},
		"not negative":                         {delay: -1},
	} {
		if err := s.apply(&controlplane.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", s, err, want)
		}
	}
}

func TestUpUsesTheKeysAndNamesOfSeveralServers(t *testing.T) {
	t.Parallel()
	pki := t.TempDir()
	dataDir := t.TempDir()
	r := runUp(t, upOptions{dataDir: dataDir, listen: "127.0.0.1:0", several: several{
		certDir: pki, endpoint: "api.example.com", advertise: "192.0.2.7:7443",
	}})
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dataDir, "pki")); !os.IsNotExist(err) {
		t.Errorf("there are keys in the data directory as well: %v", err)
	}
	config, err := clientcmd.LoadFromFile(r.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cluster := config.Clusters["steer"]
	if cluster.Server != "https://api.example.com:6443" || string(cluster.CertificateAuthorityData) != string(ca) {
		t.Errorf("the kubeconfig leads to %s with the authority\n%s", cluster.Server, cluster.CertificateAuthorityData)
	}
}
