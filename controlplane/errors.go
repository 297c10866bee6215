// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "errors"

// Failures that a caller can act on.
var (
	// ErrStopped: the plane has been stopped; make a new one.
	ErrStopped = errors.New("controlplane: stopped")
	// ErrControllersRun: the built-in controllers run by themselves; set
	// Options.ManualControllers to step them.
	ErrControllersRun = errors.New("controlplane: the built-in controllers run by themselves: set Options.ManualControllers to step them")
	// ErrNoListener: what was asked for needs a network address; set
	// Options.Listen and call Start first.
	ErrNoListener = errors.New("controlplane: no network listener: set Options.Listen and call Start first")
	// ErrUnprotected: users without credentials may read or write objects. Listen
	// on a loopback address, take the roles of system:anonymous and
	// system:unauthenticated away, or set Authentication.NoAnonymous.
	ErrUnprotected = errors.New("controlplane: refusing to listen beyond this machine while users without credentials have access: use a loopback address such as 127.0.0.1:6443, or remove the bindings of system:anonymous and system:unauthenticated")
	// ErrNotForkable: only planes in memory or with their own data directory can
	// be copied.
	ErrNotForkable = errors.New("controlplane: this store cannot be forked")
	// ErrTestKeys: the keys are the published ones for deterministic tests.
	ErrTestKeys = errors.New("controlplane: refusing to serve with the test keys, which are public: remove them and let new ones be made")
)
