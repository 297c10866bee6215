// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/shared"
)

// database implements [Store].
type database struct{ *shared.Database }

func (database) AddFlags(f *pflag.FlagSet) {
	f.StringSlice("etcd-servers", nil, "")
	f.String("etcd-prefix", "", "")
}

func (d database) Open(context.Context, *slog.Logger) (storage.Elector, error) {
	return d.OpenServer(storage.MemoryOptions{}), nil
}

// TestServersOfAnEtcdShareKeysAndTakeOver starts two as their command lines would, and ends the first.
// The Service leads to those that serve.
func TestServersOfAnEtcdShareKeysAndTakeOver(t *testing.T) {
	t.Parallel()
	db, dir := database{shared.New(1)}, t.TempDir()
	start := func(advertise string) (stop func()) {
		t.Helper()
		s := apiserverFlags{
			objects: db, certDir: dir, port: 1, address: net.IPv4(127, 0, 0, 1), advertise: net.ParseIP(advertise),
			may: authorizationFlags{modes: []string{"RBAC"}}, who: authenticationFlags{anonymous: true},
		}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.peer.AddFlags(f)
		if err := f.Parse([]string{"--peer-advertise-ip=127.0.0.1"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		options, err := s.options(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		options.Listen = "127.0.0.1:0"
		go func() { ended <- s.serveFrom(ctx, db, options) }()
		return func() {
			t.Helper()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	watching := db.OpenServer(storage.MemoryOptions{})
	defer watching.Close()
	awaitEndpoints := func(want ...string) {
		t.Helper()
		cursor, err := watching.Watch(storage.Range{Bucket: "endpoints"}, watching.Latest().Revision())
		if err != nil {
			t.Fatal(err)
		}
		defer cursor.Close()
		var got []string
		for !slices.Equal(got, want) {
			if rec := watching.Latest().Get(storage.Key{Bucket: "endpoints", Name: "default/kubernetes"}); rec != nil {
				var o corev1.Endpoints //nolint:staticcheck // clients read it
				if err := json.Unmarshal(rec.Value, &o); err != nil {
					t.Fatal(err)
				}
				got = nil
				for _, subset := range o.Subsets {
					for _, a := range subset.Addresses {
						got = append(got, a.IP)
					}
				}
				if slices.Equal(got, want) {
					return
				}
			}
			if _, err := cursor.Next(t.Context()); err != nil {
				t.Fatalf("the Service leads to %q, want %q: %v", got, want, err)
			}
		}
	}
	stopFirst := start("192.0.2.9")
	awaitEndpoints("192.0.2.9")
	stopSecond := start("192.0.2.1")
	awaitEndpoints("192.0.2.1", "192.0.2.9")
	stopFirst()
	awaitEndpoints("192.0.2.1")
	stopSecond()
}

func TestAnAPIServerOnAnEtcdHasItsFlagsAndWantsAFolderOfKeys(t *testing.T) {
	t.Parallel()
	cmd := NewAPIServer(database{shared.New(1)})
	for name, idle := range map[string]bool{"etcd-servers": false, "etcd-prefix": false, "event-ttl": true} {
		if _, is := cmd.Flags().Lookup(name).Value.(*idleValue); is != idle {
			t.Errorf("--%s has no effect: %t, want %t", name, is, idle)
		}
	}
	cmd.SetArgs([]string{"--secure-port=1"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--cert-dir is missing") {
		t.Errorf("without --cert-dir: %v", err)
	}
}
