// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
)

// newPrinter returns the printer for columns. Columns from the first one on that
// does not parse are left out: stored definitions may be older than the check that
// refuses them.
func newPrinter(columns []v1.CustomResourceColumnDefinition) resource.Printer {
	out := make([]table.Column, len(columns))
	for i, c := range columns {
		out[i] = table.Column{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority, Path: c.JSONPath}
	}
	p, _ := table.NewCustom(out) // with an error comes what could be made
	return p
}
