// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command steer-etcd is steer up and steer snapshot with objects in etcd. Command steer runs it where
// --etcd-servers is given; it is a program of its own because the client of etcd brings gRPC. Under the
// name kube-apiserver it has the flags of that program.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/up"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/migrate"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/etcd"
)

// openTime bounds how long etcd may take to send its contents.
const openTime = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := program(os.Args[0]).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "steer: "+err.Error())
		os.Exit(1)
	}
}

// program is what this one is under a name.
func program(name string) *cobra.Command {
	if strings.TrimSuffix(filepath.Base(name), ".exe") == up.APIServerName {
		return up.NewAPIServer(open)
	}
	return command()
}

// command is the program under its own name.
func command() *cobra.Command {
	root := &cobra.Command{Use: "steer-etcd", Short: "steer up and steer snapshot with objects in etcd", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(up.New(open), up.NewSnapshot(&up.EtcdData{Save: save, Restore: restore, Read: read}))
	return root
}

// open opens the store that flags describe.
func open(ctx context.Context, e up.Etcd) (storage.Elector, error) {
	o, err := options(e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	o.Log = e.Log
	return etcd.Open(ctx, o)
}

// options returns what flags describe.
func options(e up.Etcd) (etcd.Options, error) {
	config, err := tlsConfig(e)
	return etcd.Options{
		Endpoints: e.Servers, TLS: config, Prefix: e.Prefix, RevisionFile: e.RevisionFile,
		HistoryAge: e.CompactionInterval, NoCompaction: e.CompactionInterval == 0, LeaseTime: e.LeaseTime,
	}, err
}

func save(ctx context.Context, from up.Etcd, w io.Writer) error {
	o, err := options(from)
	if err != nil {
		return err
	}
	_, err = etcd.Save(ctx, o, w)
	return err
}

func restore(ctx context.Context, to up.Etcd, view storage.View, replace bool) error {
	o, err := options(to)
	if err != nil {
		return err
	}
	err = etcd.Restore(ctx, o, view, etcd.RestoreOptions{
		Replace: replace,
		// Objects that were written under an older definition stay older than the definition.
		Apart: func(bucket string) bool { return bucket == crd.Bucket },
	})
	if errors.Is(err, etcd.ErrHoldsData) {
		return fmt.Errorf("%w; --replace removes it", err)
	}
	return err
}

// tlsConfig returns nil where no files are named.
func tlsConfig(e up.Etcd) (*tls.Config, error) {
	if e.CAFile == "" && e.CertFile == "" {
		return nil, nil // the default
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

// read calls use with the keys of a kube-apiserver.
func read(ctx context.Context, from up.Etcd, backup string, use func(migrate.Source) error) error {
	o, err := options(from)
	if err != nil {
		return err
	}
	each := func(f etcd.Foreign) error {
		return use(migrate.Source{Revision: f.Revision, Keys: func(yield func(migrate.Key, error) bool) {
			for kv, err := range f.Keys {
				if err != nil {
					yield(migrate.Key{}, err)
					return
				}
				path := strings.TrimPrefix(strings.TrimPrefix(string(kv.Key), "/"), strings.Trim(from.Prefix, "/")+"/")
				if !yield(migrate.Key{Path: path, Value: kv.Value, Created: storage.Revision(kv.CreateRevision), Modified: storage.Revision(kv.ModRevision)}, nil) {
					return
				}
			}
		}})
	}
	if backup != "" {
		return etcd.ReadBackup(backup, from.Prefix, each)
	}
	return etcd.ReadForeign(ctx, o, each)
}
