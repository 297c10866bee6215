// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/webhook/certificate"
)

// Authority settings: a certificate authority of the operator's own, for clusters
// without cert-manager. It is kept in a Secret, which all replicas share, and given to
// the API server as the caBundle of the operator's webhook configurations, converted
// CustomResourceDefinitions and APIServices, by server-side apply of that field alone. It
// is replaced, with overlap, before it expires.
//
// The operator needs the roles
//
//	+kubebuilder:rbac:groups="",resources=secrets,verbs=create
//	+kubebuilder:rbac:groups="",resources=secrets,resourceNames=NAME-webhook-ca,verbs=get;update
//	+kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=mutating-webhook-configuration;NAME-mutating-webhook-configuration;validating-webhook-configuration;NAME-validating-webhook-configuration,verbs=get;patch
//	+kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=...,verbs=get;patch
//	+kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=...,verbs=get;patch
type Authority struct {
	// Namespace of the Secret and of the Services that lead to the webhooks. Default
	// in a manager: the one that the process runs in. Empty makes a self-signed
	// certificate, which no API server trusts by itself.
	Namespace string
	// Secret is its name. Default in a manager: the operator's name and "-webhook-ca".
	Secret string
	// Configurations are the names of the operator's MutatingWebhookConfigurations and
	// ValidatingWebhookConfigurations. Their webhooks whose Service is in Namespace and
	// whose path is served here are given the caBundle, unless cert-manager does it.
	// Default: those of controller-gen, "mutating-webhook-configuration" and
	// "validating-webhook-configuration"; in a manager these, and these behind the
	// operator's name and "-".
	Configurations []string
	// APIServices are the names of the APIServices that the operator serves, such as
	// "v1.metrics.example.com". Those whose Service is in Namespace are given the caBundle;
	// their server takes the certificate from [Server.Certificate]. Default: none.
	APIServices []string
}

const (
	// keepInterval is how often the Secret and the caBundles are looked at.
	keepInterval = 15 * time.Second
	// keepRetry is the time after a failure, until the first success.
	keepRetry = time.Second
	// keepTimeout bounds one look.
	keepTimeout = 30 * time.Second
	// clocksDiffer is by how much the clocks of this process and of the API server may
	// differ without a word. Certificates are backdated by more.
	clocksDiffer = 5 * time.Minute
)

// errRepeat begins a look again: another replica was faster.
var errRepeat = errors.New("another replica was faster")

// keeper keeps the authority: the Secret, the certificate that the server shows, and the
// caBundles. It looks at them in intervals.
type keeper struct {
	Authority
	client client.Client
	log    *slog.Logger
	// targets returns the objects with a caBundle of the operator.
	targets func(ctx context.Context) ([]target, error)

	authority certificate.Authority
	held      bool // authority has been read or made
	announced bool // the bundle was injected as it is
	told      map[string]string

	issued    chan struct{} // closed once there is a certificate
	listening chan struct{} // closed once the server listens: API servers are given the bundle then
	ready     chan struct{} // closed once they have been given it, as far as that is possible

	mu      sync.Mutex
	shown   *tls.Certificate
	trouble error // of the last look
}

func newKeeper(s *Server) *keeper {
	return &keeper{
		Authority: s.opts.Authority, client: s.opts.Client, log: s.opts.Log, targets: s.targetsOf,
		told: map[string]string{}, issued: make(chan struct{}), listening: make(chan struct{}), ready: make(chan struct{}),
	}
}

// check reports nil once API servers have a certificate that they can trust.
func (k *keeper) check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.ready:
		return nil
	default:
	}
	if k.trouble != nil {
		return fmt.Errorf("the webhooks have no certificate yet: %w", k.trouble)
	}
	return errors.New("the API server has not been given the CA of the webhooks yet")
}

// get is the GetCertificate of a TLS configuration.
func (k *keeper) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shown, nil
}

// run keeps the authority until ctx ends.
func (k *keeper) run(ctx context.Context) {
	for {
		err := k.look(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := keepInterval
		switch {
		case err == nil:
			delete(k.told, "authority")
			closeOnce(k.ready)
		case errors.Is(err, errRepeat):
			wait = keepRetry
		default:
			k.tell("authority", err, adviceForSecret(k.Secret, err))
			if k.shown == nil {
				wait = keepRetry
			}
		}
		k.mu.Lock()
		k.trouble = err
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// closeOnce closes a channel that only its caller closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

func adviceForSecret(name string, err error) string {
	if apierrors.IsForbidden(err) {
		return "the service account needs create on secrets, and get and update on secrets with the resource name " + name + "; or give the operator certificate files (--webhook-cert-path)"
	}
	return cmp.Or(wire.Advice(err), "it is tried again; until then the certificate stays")
}

// look looks at everything once.
func (k *keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if err := k.keepSecret(ctx); err != nil {
		return err
	}
	now := time.Now()
	if k.authority.Began().After(now) {
		k.tell("clock", fmt.Errorf("the CA of the webhooks is valid from %s, which is in the future", k.authority.Began().UTC().Format(time.RFC3339)), "set the clock of this node")
	}
	if k.authority.Renews(k.shown, now) {
		k.compareClocks(ctx)
		issued, err := k.authority.Issue(now, "*."+k.Namespace+".svc", "localhost", "127.0.0.1", "::1")
		if err != nil {
			return fmt.Errorf("issue a certificate: %w", err)
		}
		k.mu.Lock()
		k.shown = issued
		k.mu.Unlock()
		closeOnce(k.issued)
	}
	select {
	case <-k.listening:
		return k.inject(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// compareClocks compares the clock of this process with that of the API server, which
// stands in objects that it creates. The creation is a dry run.
func (k *keeper) compareClocks(ctx context.Context) {
	probe := newSecret()
	probe.SetNamespace(k.Namespace)
	probe.SetName(k.Secret + "-clock")
	began := time.Now()
	if err := k.client.Create(ctx, probe, client.DryRunAll); err != nil {
		return // what the operator may not do, or cannot reach, is told where it matters
	}
	ahead := began.Sub(probe.GetCreationTimestamp().Time).Round(time.Second)
	if ahead.Abs() <= clocksDiffer {
		delete(k.told, "clocks")
		return
	}
	than := "ahead of"
	if ahead < 0 {
		than = "behind"
	}
	k.tell("clocks", fmt.Errorf("the clock of this process is %s %s that of the API server", ahead.Abs(), than),
		"set the clocks of both nodes (NTP): a certificate is not valid where the clock is more than an hour behind the one that it was made by")
}

func newSecret() *unstructured.Unstructured {
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	return secret
}

// keepSecret reads the authority and takes its next step. What a replica holds survives
// a Secret that was deleted or damaged.
func (k *keeper) keepSecret(ctx context.Context) error {
	secret := newSecret()
	err := k.client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Secret}, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read the CA of the webhooks: %w", err)
	}
	stored, damage := certificate.ParseAuthority(dataOf(secret))
	if damage == nil {
		k.announced = k.announced && k.held && bytes.Equal(stored.Bundle(), k.authority.Bundle())
		k.authority, k.held = stored, true
	}
	if damage != nil && !missing && len(dataOf(secret)) > 0 {
		k.tell("secret", fmt.Errorf("the Secret %s/%s is damaged: %w", k.Namespace, k.Secret, damage), "it is replaced; nothing is to be done")
	}
	if !k.held {
		if k.authority, err = certificate.NewAuthority(time.Now()); err != nil {
			return err
		}
	}
	next, changed, err := k.authority.Step(time.Now(), k.announced)
	if err != nil {
		return fmt.Errorf("replace the CA of the webhooks: %w", err)
	}
	if damage == nil && !changed {
		return nil
	}
	if err := k.writeSecret(ctx, secret, missing, next); err != nil {
		return err
	}
	k.log.Info("The CA of the webhooks is kept in a Secret", "secret", k.Namespace+"/"+k.Secret, "expires", next.Expires().UTC().Format(time.RFC3339))
	k.authority, k.held, k.announced = next, true, false
	return nil
}

func (k *keeper) writeSecret(ctx context.Context, secret *unstructured.Unstructured, missing bool, a certificate.Authority) error {
	data, err := a.Data()
	if err != nil {
		return err
	}
	fields := map[string]any{}
	for name, value := range data {
		fields[name] = base64.StdEncoding.EncodeToString(value)
	}
	secret.Object["data"] = fields
	if missing {
		secret.SetNamespace(k.Namespace)
		secret.SetName(k.Secret)
		secret.Object["type"] = "Opaque"
		err = k.client.Create(ctx, secret)
	} else {
		err = k.client.Update(ctx, secret) // with the resourceVersion that was read
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return errRepeat
	}
	if err != nil {
		return fmt.Errorf("keep the CA of the webhooks: %w", err)
	}
	return nil
}

func dataOf(secret *unstructured.Unstructured) map[string][]byte {
	fields, _, err := unstructured.NestedStringMap(secret.Object, "data")
	if err != nil {
		return nil
	}
	out := map[string][]byte{}
	for name, value := range fields {
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			out[name] = decoded
		}
	}
	return out
}

// inject gives the bundle to the API server. What cannot be given is logged, and tried
// again; it does not hold back the server.
func (k *keeper) inject(ctx context.Context) error {
	targets, err := k.targets(ctx)
	if err != nil {
		k.tell("targets", err, "the webhooks of these kinds are called once their definitions are there")
	} else {
		delete(k.told, "targets")
	}
	bundle := base64.StdEncoding.EncodeToString(k.authority.Bundle())
	complete := err == nil
	for _, t := range targets {
		if err := t.inject(ctx, k.client, bundle); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			complete = false
			if apierrors.IsConflict(err) && !ownedByAnother(err) {
				continue // it was deleted or replaced meanwhile
			}
			k.tell(t.String(), fmt.Errorf("give %s the caBundle of the webhooks: %w", t, err), adviceFor(t, err))
			continue
		}
		delete(k.told, t.String())
	}
	k.announced = complete
	return ctx.Err()
}

func adviceFor(t target, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the service account needs get and patch on %s with the resource name %s", t.resource, t.name)
	case ownedByAnother(err):
		return "another manager owns the field caBundle: remove it from the manifest that is applied, or give the operator certificate files (--webhook-cert-path)"
	}
	return cmp.Or(wire.Advice(err), "it is tried again")
}

// tell says once what is wrong and what to do.
func (k *keeper) tell(about string, err error, advice string) {
	if message := err.Error(); k.told[about] != message {
		k.told[about] = message
		k.log.Error("The certificate of the webhooks", "error", err, "advice", advice)
	}
}
