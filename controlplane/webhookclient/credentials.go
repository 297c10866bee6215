// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"errors"
	"net"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// credentials are the users of a kubeconfig, by the names of the servers that they are for.
type credentials struct{ config clientcmdapi.Config }

func loadCredentials(file string) (*credentials, error) {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, err
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, err
	}
	return &credentials{config: *config}, nil
}

// forHost returns the configuration of the user whose name is the host and port, or the longest
// pattern such as "*.default.svc:443" that matches it; for port 443 also without the port; else
// "*", else the user of the current context, else none.
func (c *credentials) forHost(hostPort string) (*rest.Config, error) {
	if c == nil {
		return &rest.Config{}, nil
	}
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port, hostPort = hostPort, "443", net.JoinHostPort(strings.Trim(hostPort, "[]"), "443")
	}
	names := patterns(hostPort)
	if port == "443" {
		names = append(names, patterns(host)...)
	}
	names = append(names, "*")
	if current := c.config.Contexts[c.config.CurrentContext]; current != nil {
		names = append(names, current.AuthInfo)
	}
	for _, name := range names {
		if user := c.config.AuthInfos[name]; user != nil {
			return configOf(user)
		}
	}
	return &rest.Config{}, nil
}

// patterns are the names that users for a host may have, the most specific first.
func patterns(host string) []string {
	out := []string{host}
	for {
		_, parent, ok := strings.Cut(host, ".")
		if !ok {
			return out
		}
		host = parent
		out = append(out, "*."+host)
	}
}

// configOf returns the configuration of a client that is a user.
func configOf(user *clientcmdapi.AuthInfo) (*rest.Config, error) {
	if user.AuthProvider != nil {
		return nil, errors.New("auth provider not supported")
	}
	config := &rest.Config{
		BearerToken: user.Token, BearerTokenFile: user.TokenFile,
		Username: user.Username, Password: user.Password, ExecProvider: user.Exec,
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
		},
		TLSClientConfig: rest.TLSClientConfig{
			CertFile: user.ClientCertificate, CertData: user.ClientCertificateData,
			KeyFile: user.ClientKey, KeyData: user.ClientKeyData,
		},
	}
	if user.Token == "" && user.TokenFile != "" {
		token, err := os.ReadFile(user.TokenFile)
		if err != nil {
			return nil, err
		}
		config.BearerToken = string(token)
	}
	return config, nil
}
