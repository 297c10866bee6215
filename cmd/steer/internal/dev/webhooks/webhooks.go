// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks leads the webhooks of a control plane to the operator that steer dev runs.
package webhooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// Patience is how long the operator may take to serve its webhooks.
const Patience = 10 * time.Second

// Local carries the requests of the control plane to the webhooks of the
// operator, which is a child of this process.
type Local struct {
	address string // on this machine
	over    http.RoundTripper
}

// New calls webhooks at an address of this machine. Any certificate is
// accepted there: that of steer dev, one that the operator has made for itself, or one of
// its files.
func New(address string) *Local {
	return &Local{address, &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
}

// FreeAddress is one that nothing listens at.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Resolve leads every Service of a webhook to the operator.
func (w *Local) Resolve(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
	return webhookclient.Backend{Transport: w}, !s.APIService
}

// RoundTrip implements http.RoundTripper.
func (w *Local) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "https", w.address
	return w.over.RoundTrip(r)
}

// Port is the value of the operator's flag.
func (w *Local) Port() string {
	_, port, _ := net.SplitHostPort(w.address)
	return port
}

// Await waits until the operator serves its webhooks, or ctx ends.
func (w *Local) Await(ctx context.Context) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	for {
		conn, err := dialer.DialContext(ctx, "tcp", w.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the operator does not serve webhooks: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Divide returns the manifests to apply before the operator runs, and those to apply once
// it serves its webhooks: the configurations of these, and what follows them.
func (w *Local) Divide(given *serviceaddress.Table, objects []manifest.Object) (now, later []manifest.Object) {
	for i, object := range objects {
		for _, s := range manifestServices(object) {
			if _, elsewhere := given.Address(s); !elsewhere {
				return objects[:i], objects[i:]
			}
		}
	}
	return objects, nil
}

// manifestServices are the Services in a webhook configuration.
func manifestServices(object manifest.Object) (out []serviceaddress.Key) {
	hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, hook := range hooks {
		hook, _ := hook.(map[string]any)
		namespace, found, _ := unstructured.NestedString(hook, "clientConfig", "service", "namespace")
		name, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "name")
		if found {
			port, _, _ := unstructured.NestedInt64(hook, "clientConfig", "service", "port")
			out = append(out, serviceaddress.Key{Namespace: namespace, Name: name, Port: int32(port)}) // a port
		}
	}
	return out
}

// ApplyOnceServed applies manifests once the operator serves its webhooks. It says so, and
// says if ctx ends before.
func (w *Local) ApplyOnceServed(ctx context.Context, c client.Client, objects []manifest.Object, errs io.Writer) error {
	if len(objects) == 0 {
		return nil
	}
	if served := w.Await(ctx) == nil; !served {
		fmt.Fprintf(errs, "steer: the command has not served webhooks at %s, and the objects from %s %s on were not applied; --webhook-port names another port\n",
			w.address, objects[0].GetKind(), objects[0].GetName())
		return nil
	}
	if err := manifest.Apply(ctx, c, "", objects); err != nil {
		fmt.Fprintf(errs, "steer: %v\n", err)
		return err
	}
	fmt.Fprintf(errs, "steer: the webhooks at %s are called\n", w.address)
	return nil
}

// WriteCertificate writes the certificate of a webhook server to a folder, which it makes, under
// the names of a mounted Secret.
func WriteCertificate(dir string) error {
	authority, err := certificate.NewAuthority(time.Now())
	if err != nil {
		return err
	}
	issued, err := authority.Issue(time.Now(), "localhost", "127.0.0.1", "::1")
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(issued.PrivateKey)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "ca.crt"), authority.Bundle(), 0o600),
		os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issued.Certificate[0]}), 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
	)
}

// Configure brings the generated webhook configurations to the control plane,
// and takes away those that are not generated any more.
func Configure(ctx context.Context, c client.Client, objects []manifest.Object) error {
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

// BePatient gives webhooks the longest time that Kubernetes allows.
func BePatient(objects []manifest.Object) {
	const longest = 30 // seconds
	for _, object := range objects {
		hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
		for _, hook := range hooks {
			if hook, ok := hook.(map[string]any); ok {
				hook["timeoutSeconds"] = int64(longest)
			}
		}
		if len(hooks) > 0 {
			object.Object["webhooks"] = hooks
		}
	}
}
