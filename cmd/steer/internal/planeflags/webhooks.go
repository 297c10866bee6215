// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planeflags holds the flags that the commands which run a control plane share: where
// its Services are, and who its users are.
package planeflags

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/admission/configuration"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

const (
	// AllowServiceChanges is the name of a flag of [Services].
	AllowServiceChanges = "allow-service-changes"
	// AdmissionControl is the name of the flag that [AddAdmissionControl] defines.
	AdmissionControl = "admission-control-config-file"
)

// AddAdmissionControl defines the flag whose value [ReadAdmissionControl] reads.
func AddAdmissionControl(f *pflag.FlagSet, file *string) {
	f.StringVar(file, AdmissionControl, "", `file with an AdmissionConfiguration, as kube-apiserver takes it: the kubeconfigs whose credentials
webhooks are shown, and what the plugin ResourceQuota refuses where no quota is about it`)
}

// ReadAdmissionControl adds what a file says to the options; no name is no file.
func ReadAdmissionControl(o *controlplane.Options, file string) error {
	if file == "" {
		return nil
	}
	read, err := configuration.Read(file)
	if err != nil {
		return fmt.Errorf("--%s: %w", AdmissionControl, err)
	}
	o.Webhooks.KubeConfigFiles, o.LimitedResources = read.KubeConfigFiles, read.LimitedResources
	return nil
}

// Services are the flags that say where Services are.
type Services struct {
	values []string
	// Changeable has the addresses changed while the control plane runs.
	Changeable bool
}

// AddFlags defines the flags. Their descriptions begin with when they apply.
func (s *Services) AddFlags(f *pflag.FlagSet, when string) {
	f.StringArrayVar(&s.values, serviceaddress.Flag, nil, when+"call what is behind a Service, or one port of it, at an address: webhooks, conversions and API servers,\n"+
		"where no Pod serves them: `NAMESPACE/NAME[:PORT]=HOST:PORT`, such as guestbook-system/guestbook-webhook-service=127.0.0.1:9443;\n"+
		"may be repeated. The certificate has to be valid for NAME.NAMESPACE.svc")
	f.BoolVar(&s.Changeable, AllowServiceChanges, false, when+"let members of system:masters change these addresses while the server runs, with steer service")
}

// Given reports whether one of the flags was.
func (s *Services) Given() bool { return len(s.values) > 0 || s.Changeable }

// Apply has a control plane call Services at the addresses that are given; others are where
// their endpoints are.
func (s *Services) Apply(o *webhookclient.Options) (err error) {
	if o.Services, err = serviceaddress.New(s.Changeable, s.values...); err != nil {
		return fmt.Errorf("--%s: %w", serviceaddress.Flag, err)
	}
	return nil
}
