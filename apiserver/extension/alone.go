// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/storage/durable"
)

// files is the [certificate.Cluster] of a server that stands alone: the authority is in
// files, and kubectl trusts it by the kubeconfig.
type files struct {
	*program
	keeper *certificate.Keeper
	dir    string // empty: nothing is stored
	token  string
}

// alone returns the home of a server without a cluster: one user, who may do everything.
func (p *program) alone() (*home, error) {
	if p.options.TLS.Dir != "" {
		return nil, fmt.Errorf("%w: a server that stands alone makes its certificate itself: leave out --cert-path", ErrUsage)
	}
	f := &files{program: p}
	if p.options.DataDir != "" {
		f.dir = filepath.Join(p.options.DataDir, "keys")
		if err := durable.MkdirAll(f.dir, 0o700); err != nil {
			return nil, fmt.Errorf("extension: make the directory of the keys: %w", err)
		}
	}
	if err := f.readToken(); err != nil {
		return nil, err
	}
	f.keeper = certificate.NewKeeper(certificate.KeeperOptions{
		Cluster: f, Server: "API server", Place: cmp.Or(f.dir, "memory"), Names: p.certificateNames(), Log: p.log,
		Advice: func(error) string { return "it is tried again" },
	})
	return &home{
		authenticator: auth.Authenticators{auth.Bearer{Tokens: []auth.TokenAuthenticator{
			auth.Tokens{f.token: {Name: "admin", Groups: []string{auth.Masters}}},
		}}, auth.AsAnonymous{}},
		authorizer: auth.Authorizers{auth.AllowMasters{}, auth.AllowPaths{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*"}},
		keeper:     f.keeper,
		run:        f.keeper.Run,
	}, nil
}

// The files of the keys.
const (
	tokenFile     = "token"
	authorityFile = "authority"
)

// readToken reads the token of the user, or makes one.
func (f *files) readToken() error {
	path := filepath.Join(f.dir, tokenFile)
	if f.dir != "" {
		text, err := os.ReadFile(path)
		if err == nil && len(text) > 0 {
			f.token = strings.TrimSpace(string(text))
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("extension: read the token: %w", err)
		}
	}
	f.token = rand.Text()
	if f.dir == "" {
		return nil
	}
	if err := durable.WriteFile(path, []byte(f.token), 0o600); err != nil {
		return fmt.Errorf("extension: write the token: %w", err)
	}
	return nil
}

// Read implements [certificate.Cluster].
func (f *files) Read(context.Context) (map[string][]byte, error) {
	data := map[string][]byte{}
	if f.dir == "" {
		return nil, nil // there is none
	}
	entries, err := os.ReadDir(filepath.Join(f.dir, authorityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // there is none
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if data[e.Name()], err = os.ReadFile(filepath.Join(f.dir, authorityFile, e.Name())); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// Write implements [certificate.Cluster].
func (f *files) Write(_ context.Context, data map[string][]byte) error {
	if f.dir == "" {
		return nil
	}
	dir := filepath.Join(f.dir, authorityFile)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, value := range data {
		if err := durable.WriteFile(filepath.Join(dir, name), value, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Trust implements [certificate.Cluster]: it writes the kubeconfig.
func (f *files) Trust(_ context.Context, bundle []byte) (complete bool) {
	if f.options.Kubeconfig == "" {
		return true
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[f.Name] = &clientcmdapi.Cluster{Server: f.url(), CertificateAuthorityData: bundle}
	config.AuthInfos[f.Name] = &clientcmdapi.AuthInfo{Token: f.token}
	config.Contexts[f.Name] = &clientcmdapi.Context{Cluster: f.Name, AuthInfo: f.Name}
	config.CurrentContext = f.Name
	content, err := clientcmd.Write(*config)
	if err == nil {
		if old, failed := os.ReadFile(f.options.Kubeconfig); failed == nil && string(old) == string(content) {
			return true
		}
		err = durable.WriteFile(f.options.Kubeconfig, content, 0o600)
	}
	if err != nil {
		f.keeper.Tell("kubeconfig", fmt.Errorf("write %s: %w", f.options.Kubeconfig, err), "name another file (--write-kubeconfig)")
		return false
	}
	f.log.Info("Users have a kubeconfig", "try", "kubectl --kubeconfig "+f.options.Kubeconfig+" api-resources")
	return true
}

// Now implements [certificate.Cluster].
func (f *files) Now(context.Context) time.Time { return time.Time{} }
