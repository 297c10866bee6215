// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/cmd/steer/internal/envtest"
	"github.com/steer-dev/steer/storage"
)

// APIServerName is the name under which a program is that of [NewAPIServer].
const APIServerName = "kube-apiserver"

// NewAPIServer returns a program with the flags of kube-apiserver whose objects are in etcd, which it
// opens with open. Several of them share an etcd as servers of steer up do.
func NewAPIServer(open OpenEtcd) *cobra.Command {
	return envtest.NewAPIServer(&shared{open: open})
}

// shared implements [envtest.Store].
type shared struct {
	etcd Etcd
	open OpenEtcd
}

// AddFlags implements [envtest.Store].
func (s *shared) AddFlags(f *pflag.FlagSet) {
	s.etcd.addFlags(f)
	f.Lookup("etcd-servers").Usage = "keep the objects in etcd, at these URLs"
	f.Lookup("etcd-prefix").Usage = "prefix of the keys in etcd, which are not those of another program"
	f.Lookup("etcd-prefix").DefValue = kubernetesPrefix
	s.etcd.Prefix = kubernetesPrefix
	s.etcd.addCompaction(f)
}

// Open implements [envtest.Store].
func (s *shared) Open(ctx context.Context, log *slog.Logger) (storage.Elector, error) {
	if len(s.etcd.Servers) == 0 {
		return nil, errors.New("--etcd-servers is missing: name the URLs of an etcd")
	}
	if err := s.etcd.validate(false); err != nil {
		return nil, err
	}
	s.etcd.Log = log
	return s.open(ctx, s.etcd)
}
