// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Read returns a subresource for [Kind.Subresources] whose GET is answered with what read
// returns, such as a metric of an object. Out is a Go type with TypeMeta and ObjectMeta,
// whose kind has the name of the type, in the group version gv; a list has ObjectMeta, too,
// because only its empty metadata is sent. It is in discovery and OpenAPI. parameters are
// those of the query. The object of the request need not exist, also not by its name.
func Read[Out resource.Object](name string, gv schema.GroupVersion, read func(ctx context.Context, r *resource.Request, parameters url.Values) (Out, error)) resource.Subresource {
	return resource.Subresource{Name: name, Kind: kindOf[Out](gv), New: emptyOf[Out], Backend: reading[Out](read)}
}

type reading[Out resource.Object] func(ctx context.Context, r *resource.Request, parameters url.Values) (Out, error)

var _ resource.Getter = reading[resource.Object](nil)

// Get implements [resource.Getter].
func (read reading[Out]) Get(ctx context.Context, r *resource.Request) (resource.Object, error) {
	parameters, err := url.ParseQuery(r.RawQuery)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return read(ctx, r, parameters)
}
