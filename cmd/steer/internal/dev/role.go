// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/scaffold/deploy"
)

// roleFile has the roles that are generated of +kubebuilder:rbac markers.
const roleFile = "config/rbac/role.yaml"

// account is the service account that the operator has when it is deployed.
type account struct{ namespace, name string }

// authorize gives the operator the rights that it has when it is deployed: those of the
// generated roles, as its service account. Without roles it is an administrator.
func (t *own) authorize(ctx context.Context) error {
	objects, changed, err := t.manifests(roleFile)
	if err != nil || !changed {
		return err
	}
	settings, err := deploy.ReadSettings(t.Dir, t.project)
	if err != nil {
		return err
	}
	as := account{settings.Namespace, t.project.Name + "-controller-manager"}
	if len(objects) == 0 {
		as = account{}
		fmt.Fprintf(t.Errs, "steer: there is no %s: the operator runs as an administrator until there is a +kubebuilder:rbac marker\n", roleFile)
	}
	err = manifest.Apply(ctx, t.client, "", as.bind(objects))
	if err == nil {
		err = writeKubeconfig(t.kubeconfig, t.operators, as)
	}
	if err != nil {
		delete(t.applied, roleFile)
	}
	return err
}

// bind adds the bindings of roles to the account, and the namespaces that they are in.
func (a account) bind(roles []manifest.Object) []manifest.Object {
	var namespaces, objects []manifest.Object
	for _, role := range roles {
		kind, namespace := role.GetKind(), role.GetNamespace()
		if !strings.HasSuffix(kind, "Role") {
			continue
		}
		binding := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind + "Binding",
			"metadata": map[string]any{"name": role.GetName()},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role.GetName()},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": a.name, "namespace": a.namespace}},
		}}
		if kind == "Role" {
			if namespace == "" {
				namespace = "default"
			}
			role.SetNamespace(namespace)
			binding.SetNamespace(namespace)
			namespaces = append(namespaces, manifest.Object{File: role.File, Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
			}}})
		}
		objects = append(objects, role, manifest.Object{Unstructured: binding, File: role.File})
	}
	return append(namespaces, objects...)
}

// writeKubeconfig writes the kubeconfig of an account, which the user of the given one
// impersonates. That of no account is the given one.
func writeKubeconfig(from, to string, as account) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	if as == (account{}) {
		return clientcmd.WriteToFile(*config, to)
	}
	return cluster.Impersonate(*config, to, as.namespace, as.name)
}
