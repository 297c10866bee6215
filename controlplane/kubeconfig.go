// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/storage/durable"
)

// contextName names cluster, user and context in a kubeconfig.
const contextName = "steer"

// adminName is the user of [Plane.RESTConfig] and of the kubeconfig.
const adminName = "kubernetes-admin"

// Kubeconfig returns a configuration with which kubectl and other clients reach
// the listener as administrator. It holds a private key.
func (p *Plane) Kubeconfig() ([]byte, error) {
	config, err := p.clientConfig()
	if err != nil {
		return nil, err
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("controlplane: encode the kubeconfig: %w", err)
	}
	return out, nil
}

// WriteKubeconfig puts the plane into a kubeconfig file, as the current context
// "steer". Other contexts in the file stay. The file is replaced in one step and
// has mode 0600.
func (p *Plane) WriteKubeconfig(path string) error {
	ours, err := p.clientConfig()
	if err != nil {
		return err
	}
	// A link stays a link.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	merged := clientcmdapi.NewConfig()
	switch old, err := os.ReadFile(path); {
	case err == nil:
		if merged, err = clientcmd.Load(old); err != nil {
			return fmt.Errorf("controlplane: %s is not a kubeconfig: %w; name another file", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("controlplane: read the kubeconfig: %w", err)
	}
	merged.Clusters[contextName] = ours.Clusters[contextName]
	merged.AuthInfos[contextName] = ours.AuthInfos[contextName]
	merged.Contexts[contextName] = ours.Contexts[contextName]
	merged.CurrentContext = contextName
	content, err := clientcmd.Write(*merged)
	if err != nil {
		return fmt.Errorf("controlplane: encode the kubeconfig: %w", err)
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("controlplane: make the directory for the kubeconfig: %w", err)
	}
	if err := durable.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("controlplane: write %s: %w", path, err)
	}
	return nil
}

func (p *Plane) clientConfig() (*clientcmdapi.Config, error) {
	url := p.URL()
	if url == "" {
		return nil, ErrNoListener
	}
	if p.options.Endpoint != "" {
		url = "https://" + p.options.Endpoint
	}
	keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	admin, err := keys.issue(pkix.Name{CommonName: adminName, Organization: []string{auth.Masters}}, nil, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return nil, err
	}
	key, err := encodeKey(admin.PrivateKey)
	if err != nil {
		return nil, err
	}
	c := clientcmdapi.NewConfig()
	c.Clusters[contextName] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: keys.CertificatePEM()}
	c.AuthInfos[contextName] = &clientcmdapi.AuthInfo{
		ClientCertificateData: encodeCertificate(admin.Certificate[0]), ClientKeyData: key,
	}
	c.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	c.CurrentContext = contextName
	return c, nil
}
