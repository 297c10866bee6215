// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

// Store is where a kube-apiserver has its objects that outlive it, and that others share.
type Store interface {
	// AddFlags adds those of kube-apiserver that say where it is.
	AddFlags(*pflag.FlagSet)
	// Open opens what the flags say. The caller closes it.
	Open(context.Context, *slog.Logger) (storage.Elector, error)
}

// stopWithin is how long the requests of a server may take when it ends.
const stopWithin = 5 * time.Second

// serveFrom serves what is in a store until ctx ends. Then it leaves the store to other servers, one
// of which takes over at once.
func (s *apiserverFlags) serveFrom(ctx context.Context, objects Store, options controlplane.Options) (err error) {
	store, err := objects.Open(ctx, options.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	options.Store = store
	plane, err := controlplane.New(options)
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		err = errors.Join(err, plane.Stop(stop))
	}()
	if err := plane.Start(ctx); err != nil {
		return cannotListen(err, options.Listen, "--secure-port or --bind-address")
	}
	<-ctx.Done()
	return nil
}

// without leaves the flags of a store out of a list of those that have no effect.
func without(idle string, of Store) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	of.AddFlags(own)
	var out strings.Builder
	for line := range strings.Lines(idle) {
		if own.Lookup(strings.TrimSuffix(strings.TrimSpace(line), "*")) == nil {
			out.WriteString(line)
		}
	}
	return out.String()
}
