// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// connect passes a request to a Connecter, after admission.
func (h *Handler) connect(ctx context.Context, w *exchange.Writer, req *Request, c resource.Connecter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(req.Served.Gone, cancel)() // the resource is removed, or the server stops
	from := req.HTTP.WithContext(ctx)
	if a := req.Served.Admission; a != nil && !readsOnly(req.Sub) {
		options, err := connectOptions(req)
		if err != nil {
			return err
		}
		ar := &resource.AdmissionRequest{Request: &req.Request, Operation: resource.Connect}
		if options != nil {
			ar.Options = options
		}
		if err := a.Admit(ctx, ar); err != nil {
			return err
		}
		if err := a.Validate(ctx, ar); err != nil {
			return err
		}
		if changed, ok := ar.Options.(runtime.Object); ok && changed != options {
			query, err := queryparams.Convert(changed)
			if err != nil {
				return apierrors.NewInternalError(err)
			}
			query.Del("path")
			u := *from.URL
			u.RawQuery, from.URL = query.Encode(), &u
		}
	}
	c.Connect(ctx, &req.Request, w, from)
	return nil
}

// readsOnly reports whether a Connecter only reads, as that of the log of a Pod does.
func readsOnly(sub *resource.Subresource) bool {
	return sub != nil && slices.Equal(sub.Verbs, []string{"get"})
}

// connectOptions decodes the options of a connection, nil if there are none.
func connectOptions(req *Request) (runtime.Object, error) {
	if req.Sub == nil || req.Sub.Options == nil {
		return nil, nil // there are none
	}
	options := req.Sub.Options()
	query := url.Values{}
	for name, values := range req.Query() {
		query[name] = values
	}
	query.Set("path", "/"+req.Info.Rest)
	if err := decodeParameters(query, reflect.ValueOf(options).Elem()); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	options.GetObjectKind().SetGroupVersionKind(req.Sub.Kind)
	return options, nil
}

// decodeParameters sets the fields of a struct from parameters of the same JSON names.
func decodeParameters(query url.Values, into reflect.Value) error {
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		values, given := query[name]
		if name == "" || !given || len(values) == 0 {
			continue
		}
		switch f := into.Field(i).Addr().Interface().(type) {
		case *string:
			*f = values[0]
		case *bool:
			*f = values[0] != "0" && !strings.EqualFold(values[0], "false")
		case *[]string:
			*f = values
		case *[]int32:
			for _, v := range values {
				n, err := strconv.ParseInt(v, 10, 32)
				if err != nil {
					return fmt.Errorf("parameter %s: %w", name, err)
				}
				*f = append(*f, int32(n))
			}
		}
	}
	return nil
}
