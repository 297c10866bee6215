// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/delegated"
	"github.com/steer-dev/steer/apiserver/internal/cluster"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/certificate"
)

// registration is the [certificate.Cluster] of a server behind a cluster: the authority is
// in a Secret, and the cluster trusts it by the APIServices.
type registration struct {
	*program
	keeper *certificate.Keeper
	client *cluster.Client
	secret corev1.Secret // as Read has returned it last
}

// behind returns the home of a server that belongs to a cluster.
func (p *program) behind(ctx context.Context) (*home, error) {
	delegation, err := delegated.New(delegated.Options{Config: p.options.Cluster, Log: p.log})
	if err != nil {
		return nil, err
	}
	if err := delegation.Load(ctx); err != nil {
		return nil, err
	}
	client, err := cluster.New(p.options.Cluster)
	if err != nil {
		return nil, fmt.Errorf("extension: %w", err)
	}
	h := &home{
		authenticator: delegation, authorizer: delegation.Authorizer(), checks: delegation.Checks(),
		admission: resource.Admissions{&namespaces{client: client}}, run: delegation.Run,
	}
	if p.options.TLS.Dir != "" {
		return h, nil
	}
	r := &registration{program: p, client: client}
	r.keeper = certificate.NewKeeper(certificate.KeeperOptions{
		Cluster: r, Server: "API server", Place: "the Secret " + p.options.Service.Namespace + "/" + r.secretName(), Names: p.certificateNames(), Log: p.log,
		Advice: func(err error) string {
			if cluster.Answered(err, http.StatusForbidden) {
				return "the server needs create on secrets, and get and update on secrets with the resource name " + r.secretName() + "; or give it certificate files (--cert-path)"
			}
			return "it is tried again"
		},
	})
	h.keeper = r.keeper
	h.run = func(ctx context.Context) {
		ended := make(chan struct{})
		go func() { defer close(ended); delegation.Run(ctx) }()
		r.keeper.Run(ctx)
		<-ended
	}
	return h, nil
}

func (r *registration) secretName() string { return r.Name + "-ca" }

func (r *registration) secretsPath() string {
	return "/api/v1/namespaces/" + r.options.Service.Namespace + "/secrets"
}

// Read implements [certificate.Cluster].
func (r *registration) Read(ctx context.Context) (map[string][]byte, error) {
	r.secret = corev1.Secret{}
	err := r.client.Get(ctx, r.secretsPath()+"/"+r.secretName(), &r.secret)
	if cluster.Answered(err, http.StatusNotFound) {
		return nil, nil // there is none
	}
	return r.secret.Data, err
}

// Write implements [certificate.Cluster].
func (r *registration) Write(ctx context.Context, data map[string][]byte) error {
	next := r.secret.DeepCopy()
	next.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	next.Name, next.Namespace, next.Data = r.secretName(), r.options.Service.Namespace, data
	var err error
	if next.ResourceVersion == "" {
		err = r.client.Post(ctx, r.secretsPath(), next, &r.secret)
	} else {
		err = r.client.Put(ctx, r.secretsPath()+"/"+r.secretName(), next, &r.secret)
	}
	if cluster.Answered(err, http.StatusConflict) {
		return certificate.ErrOutdated
	}
	return err
}

// Now implements [certificate.Cluster]: the time stands in objects that the API server
// creates. The creation is a dry run.
func (r *registration) Now(ctx context.Context) time.Time {
	probe := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: r.secretName() + "-clock", Namespace: r.options.Service.Namespace},
	}
	if err := r.client.DryRun(ctx, r.secretsPath(), probe, probe); err != nil {
		return time.Time{} // what the server may not do, or cannot reach, is told where it matters
	}
	return probe.CreationTimestamp.Time
}

// Trust implements [certificate.Cluster]: it applies the APIServices.
func (r *registration) Trust(ctx context.Context, bundle []byte) (complete bool) {
	complete = true
	var answer metav1.PartialObjectMetadata
	for _, obj := range r.objects(bundle) {
		if err := r.client.Apply(ctx, obj.path, r.Name, obj.object, &answer); err != nil {
			complete = false
			advice := "it is tried again"
			if cluster.Answered(err, http.StatusForbidden) {
				advice = "the server needs create and patch on " + obj.resource
			}
			r.keeper.Tell(obj.path, fmt.Errorf("apply %s: %w", obj.path, err), advice)
			continue
		}
		r.keeper.Told(obj.path)
	}
	return complete
}

// applied is an object that the server applies.
type applied struct {
	path, resource string
	object         map[string]any
}

// objects are the objects that lead the cluster to the server.
func (r *registration) objects(bundle []byte) (out []applied) {
	s := r.options.Service
	port := s.Port
	if port == 0 {
		if port = 443; s.ExternalName != "" {
			port = r.port()
		}
	}
	if s.ExternalName != "" {
		out = append(out, applied{"/api/v1/namespaces/" + s.Namespace + "/services/" + s.Name, "services", map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": s.Name, "namespace": s.Namespace},
			"spec": map[string]any{"type": "ExternalName", "externalName": s.ExternalName, "ports": []any{map[string]any{"name": "https", "port": port}}},
		}})
	}
	seen := map[string]bool{}
	for _, served := range r.resources {
		for i, v := range served.Versions {
			name := v.Name + "." + served.Group
			if v.NotServed || served.Group == "" || seen[name] {
				continue
			}
			seen[name] = true
			out = append(out, applied{"/apis/apiregistration.k8s.io/v1/apiservices/" + name, "apiservices.apiregistration.k8s.io", map[string]any{
				"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name},
				"spec": map[string]any{
					"group": served.Group, "version": v.Name, "groupPriorityMinimum": groupPriority, "versionPriority": max(versionPriority-i, 1),
					"service": map[string]any{"namespace": s.Namespace, "name": s.Name, "port": port}, "caBundle": bundle,
				},
			}})
		}
	}
	return out
}

// The priorities of APIServices: groups as those of CustomResourceDefinitions, versions in
// the order of the definition.
const (
	groupPriority   = 1000
	versionPriority = 100
)
