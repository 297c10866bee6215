// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/manager"
)

// keepInOperator is how many records the page of an operator keeps.
const keepInOperator = 10_000

// Add makes an operator serve its page while it runs, on every replica: what its own flight
// recorder has.
func Add(m *manager.Manager, o Options) error {
	if o.Address == "" {
		return errors.New("dashboard: Options.Address is required, such as 127.0.0.1:8082")
	}
	o.Title, o.Keep = cmp.Or(o.Title, "Operator"), cmp.Or(o.Keep, keepInOperator)
	if o.Source == nil {
		o.Source = Live(m.Recorder(), m.Queued)
	}
	page := New(o)
	if loopback(o.Address) {
		return m.Add(manager.OnEveryReplica(manager.RunnableFunc(func(ctx context.Context) error {
			local, err := page.Listen(o.Address)
			if err != nil {
				return err
			}
			m.Log().Info("Serving", "server", "page", "url", local.URL())
			return local.Run(ctx)
		})))
	}
	source, err := certificate.Open(manager.TLS{}, certificate.Options{Server: "page", Log: m.Log()})
	if err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	server := &http.Server{Handler: ownSite(m.Guard(page)), TLSConfig: manager.TLS{}.Config(source.Get)}
	return m.Add(manager.OnEveryReplica(manager.RunnableFunc(func(ctx context.Context) error {
		listener, err := net.Listen("tcp", o.Address)
		if err != nil {
			return fmt.Errorf("dashboard: %w; choose another address for the page", err)
		}
		m.Log().Info("Serving", "server", "page", "address", listener.Addr().String())
		return serve(ctx, listener, server)
	})))
}

// ownSite refuses requests that a page of another site makes.
func ownSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := foreign(r, "https://"); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
