// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapiserver

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig with a configuration, and returns its path.
func Kubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	out := api.NewConfig()
	out.CurrentContext = "test"
	out.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "test"}
	out.Clusters["test"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["test"] = &api.AuthInfo{Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		t.Fatal(err)
	}
	return path
}
