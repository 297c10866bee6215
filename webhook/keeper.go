// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
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

// keeping is the cluster of a server's [certificate.Keeper]: it keeps the authority in the
// Secret, and gives API servers the caBundles.
type keeping struct {
	Authority
	keeper *certificate.Keeper
	client client.Client
	// targets returns the objects with a caBundle of the operator.
	targets func(ctx context.Context) ([]target, error)
	// secret is what Read has returned last.
	secret *unstructured.Unstructured
	// compare is that of the server; differ notes what it has told.
	compare func(...*unstructured.Unstructured) (unserved, unconfigured []string)
	differ  []string
	log     *slog.Logger
}

func newKeeper(s *Server) *certificate.Keeper {
	k := &keeping{Authority: s.opts.Authority, client: s.opts.Client, targets: s.targetsOf, compare: s.Compare, log: s.opts.Log}
	k.keeper = certificate.NewKeeper(certificate.KeeperOptions{
		Cluster: k, Server: "webhooks", Place: "the Secret " + k.Namespace + "/" + k.Secret, Log: s.opts.Log,
		Names:  []string{"*." + k.Namespace + ".svc", "localhost", "127.0.0.1", "::1"},
		Advice: func(err error) string { return adviceForSecret(k.Secret, err) },
	})
	return k.keeper
}

func adviceForSecret(name string, err error) string {
	if apierrors.IsForbidden(err) {
		return "the service account needs create on secrets, and get and update on secrets with the resource name " + name + "; or give the operator certificate files (--webhook-cert-path)"
	}
	return cmp.Or(wire.Advice(err), "it is tried again; until then the certificate stays")
}

// Now implements [certificate.Cluster]: the time stands in objects that the API server
// creates. The creation is a dry run.
func (k *keeping) Now(ctx context.Context) time.Time {
	probe := newSecret()
	probe.SetNamespace(k.Namespace)
	probe.SetName(k.Secret + "-clock")
	if err := k.client.Create(ctx, probe, client.DryRunAll); err != nil {
		return time.Time{} // what the operator may not do, or cannot reach, is told where it matters
	}
	return probe.GetCreationTimestamp().Time
}

func newSecret() *unstructured.Unstructured {
	secret := &unstructured.Unstructured{}
	secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	return secret
}

// Read implements [certificate.Cluster].
func (k *keeping) Read(ctx context.Context) (map[string][]byte, error) {
	k.secret = newSecret()
	err := k.client.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Secret}, k.secret)
	if apierrors.IsNotFound(err) {
		return nil, nil // there is none
	}
	return dataOf(k.secret), err
}

// Write implements [certificate.Cluster].
func (k *keeping) Write(ctx context.Context, data map[string][]byte) error {
	fields := map[string]any{}
	for name, value := range data {
		fields[name] = base64.StdEncoding.EncodeToString(value)
	}
	k.secret.Object["data"] = fields
	var err error
	if k.secret.GetResourceVersion() == "" {
		k.secret.SetNamespace(k.Namespace)
		k.secret.SetName(k.Secret)
		k.secret.Object["type"] = "Opaque"
		err = k.client.Create(ctx, k.secret)
	} else {
		err = k.client.Update(ctx, k.secret) // with the resourceVersion that was read
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return certificate.ErrOutdated
	}
	return err
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

// Trust implements [certificate.Cluster]. What cannot be given is logged, and tried again;
// it does not hold back the server.
func (k *keeping) Trust(ctx context.Context, bundle []byte) (complete bool) {
	targets, err := k.targets(ctx)
	if err != nil {
		k.keeper.Tell("targets", err, "the webhooks of these kinds are called once their definitions are there")
	} else {
		k.keeper.Told("targets")
	}
	text := base64.StdEncoding.EncodeToString(bundle)
	complete = err == nil
	var configured []*unstructured.Unstructured
	for _, t := range targets {
		obj, err := t.inject(ctx, k.client, text)
		if obj != nil {
			configured = append(configured, obj)
		}
		if err != nil {
			complete = false
			if ctx.Err() != nil {
				return false
			}
			if apierrors.IsConflict(err) && !ownedByAnother(err) {
				continue // it was deleted or replaced meanwhile
			}
			k.keeper.Tell(t.String(), fmt.Errorf("give %s the caBundle of the webhooks: %w", t, err), adviceFor(t, err))
			continue
		}
		k.keeper.Told(t.String())
	}
	if complete && len(configured) > 0 { // before, their manifests are still to be applied
		unserved, unconfigured := k.compare(configured...)
		k.tellDifferences(append(unserved, unconfigured...))
	}
	return complete
}

// tellDifferences logs once what only the configurations or only the operator have.
func (k *keeping) tellDifferences(now []string) {
	for _, difference := range now {
		if !slices.Contains(k.differ, difference) {
			k.log.Error("The webhooks differ from their configurations", "difference", difference)
		}
	}
	k.differ = now
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
