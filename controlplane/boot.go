// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"

	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/kubernetesservice"
)

// What a plane does for itself when it listens, as its log says it; see [part.Upkeep].
const (
	announcing  = "write the endpoints of the Service kubernetes, and how users are known"
	redirecting = "have the Service kubernetes name the port of this server"
)

// boot makes what every cluster has; later is [part.Booting.Later].
func (p *Plane) boot(ctx context.Context, later bool) error {
	b := component.Booting{List: p.list, Store: p.store, Send: p.send, Upkeep: p.upkeep, AtOnce: p.options.DataDir != "", Later: later}
	return b.Boot(ctx)
}

// announce stores where the listener is, and how users show who they are.
func (p *Plane) announce(ctx context.Context) error {
	at := p.advertised()
	keys, err := p.keys()
	if err != nil {
		return err
	}
	p.upkeep.Try(ctx, announcing, func(ctx context.Context) error {
		trust := kubernetesservice.NewTrust(keys.clients(), keys.FrontProxy.Certificate, frontProxyName, p.options.Authentication.FrontProxy)
		return errors.Join(p.self.Announce(ctx, at), p.self.Publish(ctx, trust))
	})
	return nil
}
