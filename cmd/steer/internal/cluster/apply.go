// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/scaffold/project"
)

// ApplyExtras applies the manifests of a project's own, those without a namespace to one that
// is made for them. Of kinds that the server does not have a line is printed.
func ApplyExtras(ctx context.Context, c client.Client, namespace string, objects []manifest.Object, out io.Writer) error {
	made := client.NewUnstructured(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	made.SetName(namespace)
	if err := c.Apply(ctx, made); err != nil {
		return err
	}
	left, err := manifest.ApplyServed(ctx, c, namespace, objects)
	for _, o := range left {
		fmt.Fprintf(out, "steer: %s: %s %s is left out: the control plane has no kind %s; put its definition into %s\n", project.ExtrasDir, o.GetKind(), o.GetName(), o.GroupVersionKind().GroupKind(), project.ExternalCRDDir)
	}
	return err
}
