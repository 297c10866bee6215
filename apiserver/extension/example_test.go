// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
)

// The main of a custom API server. With a Go type in place of Unstructured a kind has
// rules in Go, see package custom.
func Example() {
	extension.Main(extension.Server{
		Name: "notes",
		Kinds: func(context.Context) ([]extension.Kind, error) {
			return []extension.Kind{custom.Kind[*unstructured.Unstructured]{Definition: []byte(definition)}}, nil
		},
	})
}
