// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// awaitWebhooks is how long the operator may take to serve its webhooks.
const awaitWebhooks = 10 * time.Second

// localWebhooks carries the requests of the control plane to the webhooks of the
// operator, which is a child of this process.
type localWebhooks struct {
	address string // on this machine
	over    http.RoundTripper
}

// newLocalWebhooks chooses the address.
func newLocalWebhooks() (*localWebhooks, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// The certificate is one that the operator has made for itself.
	over := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	return &localWebhooks{l.Addr().String(), over}, l.Close()
}

// resolve leads every Service of a webhook to the operator.
func (w *localWebhooks) resolve(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
	return webhookclient.Backend{Transport: w}, true
}

// RoundTrip implements http.RoundTripper.
func (w *localWebhooks) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "https", w.address
	return w.over.RoundTrip(r)
}

// port is the value of the operator's flag.
func (w *localWebhooks) port() string {
	_, port, _ := net.SplitHostPort(w.address)
	return port
}

// await waits until the operator serves its webhooks.
func (w *localWebhooks) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awaitWebhooks)
	defer cancel()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", w.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the operator does not serve the webhooks of config/webhook: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// configureWebhooks brings the generated webhook configurations to the control plane,
// and takes away those that are not generated any more.
func configureWebhooks(ctx context.Context, c client.Client, objects []manifest.Object) error {
	if err := manifest.Apply(ctx, c, "", objects); err != nil {
		return err
	}
	var failed []error
	for kind, name := range map[string]string{
		"MutatingWebhookConfiguration":   "mutating-webhook-configuration",
		"ValidatingWebhookConfiguration": "validating-webhook-configuration",
	} {
		stale := client.NewUnstructured(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		stale.SetName(name)
		for _, o := range objects {
			if o.GetKind() == kind && o.GetName() == name {
				stale = nil
			}
		}
		if stale != nil {
			failed = append(failed, client.IgnoreNotFound(c.Delete(ctx, stale)))
		}
	}
	return errors.Join(failed...)
}
