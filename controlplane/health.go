// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/steer-dev/steer/apiserver"
)

// progress is how far a plane has come, for its health checks. It is safe for
// concurrent use.
type progress struct {
	// booted: what every cluster has is stored.
	booted atomic.Bool
	// announced: the address of the listener and the ways to authenticate are
	// stored. Set from the beginning where nothing listens.
	announced atomic.Bool
	// failure ended the built-in controllers.
	failure atomic.Pointer[error]
}

// checks are the health checks of the work that a plane does, by the names that
// kube-apiserver 1.36 has for it and in its order. What it has beyond that is not
// listed: kube-apiserver's own certificate, leases and peers, the repair of addresses
// and the enforcement of flow control.
func (p *Plane) checks() []apiserver.Check {
	booted := func() error {
		if !p.progress.booted.Load() {
			return errors.New("not finished")
		}
		return nil
	}
	announced := func() error {
		if !p.progress.announced.Load() {
			return errors.New("not finished")
		}
		return nil
	}
	running := func() error {
		if failure := p.progress.failure.Load(); failure != nil {
			return fmt.Errorf("the built-in controllers have stopped: %w", *failure)
		}
		return booted()
	}
	hook := func(name string, run func() error) apiserver.Check {
		return apiserver.Check{Name: "poststarthook/" + name, Run: run}
	}
	return []apiserver.Check{
		hook("start-apiserver-admission-initializer", booted),
		hook("generic-apiserver-start-informers", booted),
		hook("priority-and-fairness-config-consumer", running),
		hook("storage-object-count-tracker-hook", booted),
		hook("start-apiextensions-informers", booted),
		hook("start-apiextensions-controllers", running),
		hook("crd-informer-synced", booted),
		hook("start-system-namespaces-controller", booted),
		hook("start-cluster-authentication-info-controller", announced),
		hook("storage-readiness", p.store.Health),
		hook("start-legacy-token-tracking-controller", booted),
		hook("rbac/bootstrap-roles", booted),
		hook("scheduling/bootstrap-system-priority-classes", booted),
		hook("priority-and-fairness-config-producer", booted),
		hook("bootstrap-controller", announced),
		hook("start-kubernetes-service-cidr-controller", booted),
		hook("start-kube-aggregator-informers", booted),
		hook("apiservice-status-local-available-controller", running),
		hook("apiservice-status-remote-available-controller", running),
		hook("apiservice-registration-controller", running),
		hook("apiservice-discovery-controller", running),
		hook("kube-apiserver-autoregistration", running),
		{Name: "autoregister-completion", Run: booted},
		hook("apiservice-openapi-controller", booted),
		hook("apiservice-openapiv3-controller", booted),
	}
}
