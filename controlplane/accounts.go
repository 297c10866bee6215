// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/serviceaccount"
)

// accounts are the parts of a plane that are about ServiceAccounts.
type accounts struct {
	tokens      *serviceaccount.Tokens
	admission   serviceaccount.Admission
	keepers     []*serviceaccount.Keeper // that are not left out
	controllers []step.Controller        // the keepers among them
	send        step.Sender
	// keySet is the URL of the keys that verify tokens.
	keySet func() string
}

func newAccounts(p *Plane) *accounts {
	o := &p.options
	issuers := o.Authentication.Issuers
	if len(issuers) == 0 {
		issuers = []string{usualIssuer}
	}
	a := &accounts{
		send: p.send,
		tokens: serviceaccount.NewTokens(serviceaccount.Options{
			Store: p.store, Issuers: issuers, Audiences: o.Authentication.Audiences,
			MaxLife: o.Authentication.MaxTokenLife, ExactLife: o.Authentication.ExactTokenLife, NewID: o.Entropy.UID, Send: p.send,
			Keys: func() (*serviceaccount.Keys, error) {
				keys, err := p.keys()
				if err != nil {
					return nil, err
				}
				return &keys.Accounts, nil
			},
		}),
		keySet: func() string {
			return cmp.Or(o.Authentication.KeySetURL, strings.TrimSuffix(cmp.Or(p.URL(), issuers[0]), "/")+serviceaccount.KeySetPath)
		},
	}
	roots := func() ([]byte, error) {
		keys, err := p.keys()
		if err != nil {
			return nil, err
		}
		return keys.CertificatePEM(), nil
	}
	for _, k := range []*serviceaccount.Keeper{serviceaccount.NewDefaultAccounts(), serviceaccount.NewRootCAs(roots)} {
		if o.has(k.Name()) {
			a.keepers = append(a.keepers, k)
			a.controllers = append(a.controllers, k)
		}
	}
	a.controllers = append(a.controllers, o.controllers(serviceaccount.NewTokenSecrets(a.tokens, roots))...)
	a.admission = serviceaccount.Admission{Store: p.store, Suffix: o.Entropy.Suffix, Known: &serviceaccount.Known{}}
	if slices.ContainsFunc(a.keepers, func(k *serviceaccount.Keeper) bool { return k.Name() == "serviceaccount-controller" }) {
		a.admission.Patience = serviceaccount.Settling
	}
	return a
}

// resources returns the resources with what is about ServiceAccounts added.
func (a *accounts) resources(all []*resource.Resource) []*resource.Resource {
	return serviceaccount.Provide(a.tokens.Resources(all), a.send, a.keepers...)
}

// publish serves the documents by which others verify tokens.
func (a *accounts) publish(server *apiserver.Server) {
	for path, document := range map[string]http.Handler{
		serviceaccount.ConfigurationPath: a.tokens.Configuration(a.keySet),
		serviceaccount.KeySetPath:        a.tokens.KeySet(),
	} {
		server.Handle(path, document)
		server.Handle(path+"/", document)
	}
}
