// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command steer-etcd is steer up with its objects in etcd. Command steer runs it where
// --etcd-servers is given; it is a program of its own because the client of etcd brings gRPC.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/up"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/etcd"
)

// openTime bounds how long etcd may take to send its contents.
const openTime = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := &cobra.Command{Use: "steer-etcd", Short: "steer up with its objects in etcd", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(up.New(open))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "steer: "+err.Error())
		os.Exit(1)
	}
}

// open opens the store that flags describe.
func open(ctx context.Context, e up.Etcd) (storage.Elector, error) {
	config, err := tlsConfig(e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return etcd.Open(ctx, etcd.Options{Endpoints: e.Servers, TLS: config, Prefix: e.Prefix, RevisionFile: e.RevisionFile})
}

// tlsConfig returns nil where no files are named.
func tlsConfig(e up.Etcd) (*tls.Config, error) {
	if e.CAFile == "" && e.CertFile == "" {
		return nil, nil //nolint:nilnil // the default
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CAFile != "" {
		pem, err := os.ReadFile(e.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--etcd-cafile: %s has no certificate in PEM", e.CAFile)
		}
	}
	if e.CertFile != "" {
		// Read for each connection: certificates are renewed.
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, errors.Join(errors.New("--etcd-certfile and --etcd-keyfile do not fit"), err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}
