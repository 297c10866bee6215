// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"crypto/tls"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/component/componenttest"
	"github.com/steer-dev/steer/controlplane/core"
	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/crd/cleanup"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

func TestAPIServiceAnswersAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	componenttest.Conversations{
		Parts: func(d *component.Deps) component.List {
			webhooks, err := webhookclient.New(webhookclient.Options{}, webhookclient.Deps{Store: d.Store})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(webhooks.Close)
			d.Webhooks = webhooks
			a := apiservice.New(*d, apiservice.Identity{Certificate: func() (*tls.Certificate, error) { return &tls.Certificate{}, nil }})
			definitions := crd.New(crd.Options{
				Server: d.Server, Store: d.Store, Transport: d.Server.RoundTripper(componenttest.Admin()), Schemas: custom.NewSchemas(),
				Webhooks: webhooks, NewUID: d.Entropy.UID, Measure: func(...prometheus.Collector) {},
				Upkeep: d.Upkeep, Log: d.Logger(),
			})
			return append(component.List{
				{Name: "kinds", Resources: core.Resources()},
				a.Component(*d), definitions.Component(d.Progress), component.ServerController(cleanup.New(d.Catalog, step.LifeOf)),
			}, controllers(d, a)...)
		},
		Of:     []string{"apiservices.apiregistration.k8s.io"},
		Names:  []string{"kinds-apiservices"},
		Except: map[string]string{"kinds-apiservices/fresh": "the groups of other packages are in the list"},
	}.Run(t)
}
