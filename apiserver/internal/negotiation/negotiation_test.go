// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
)

func TestChoosesTheAnswer(t *testing.T) {
	t.Parallel()
	custom := negotiation.Offer{Shapes: true}
	builtin := negotiation.Offer{Shapes: true, Protobuf: true}
	stream := negotiation.Offer{Shapes: true, Stream: true}
	for name, c := range map[string]struct {
		accept string
		offer  negotiation.Offer
		want   negotiation.Choice
		fails  string
	}{
		"nothing asked":     {"", custom, negotiation.Choice{}, ""},
		"the last of a few": {strings.Repeat("a/b,", 1000) + "application/yaml", custom, negotiation.Choice{Media: negotiation.YAML}, ""},
		"the last of many":  {strings.Repeat("a/b,", 2000) + "application/yaml", custom, negotiation.Choice{}, "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		"anything":          {"*/*", custom, negotiation.Choice{}, ""},
		"yaml":              {"application/yaml", custom, negotiation.Choice{Media: negotiation.YAML}, ""},
		"protobuf of custom resources falls back": {
			"application/vnd.kubernetes.protobuf,application/json", custom, negotiation.Choice{}, ""},
		"protobuf of built-ins": {
			"application/vnd.kubernetes.protobuf,application/json", builtin, negotiation.Choice{Media: negotiation.Protobuf}, ""},
		"protobuf metadata of custom resources": {
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", custom,
			negotiation.Choice{Media: negotiation.Protobuf, Shape: negotiation.MetadataList, MetaVersion: "v1"}, ""},
		"tables as kubectl asks": {
			"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", custom,
			negotiation.Choice{Shape: negotiation.Table, MetaVersion: "v1"}, ""},
		"unknown": {"text/csv", custom, negotiation.Choice{},
			"only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		"yaml stream": {"application/yaml", stream, negotiation.Choice{},
			"only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{Header: http.Header{}}
			if c.accept != "" {
				r.Header.Set("Accept", c.accept)
			}
			got, err := negotiation.Output(r, c.offer)
			if (err != nil) != (c.fails != "") || err != nil && err.Error() != c.fails {
				t.Fatalf("error %v, want %q", err, c.fails)
			}
			if err != nil && apierrors.ReasonForError(err) != "NotAcceptable" {
				t.Errorf("reason %s", apierrors.ReasonForError(err))
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRefusesUnknownBodies(t *testing.T) {
	t.Parallel()
	if media, err := negotiation.Input("application/yaml; charset=utf-8", negotiation.Offer{}); err != nil || media != negotiation.YAML {
		t.Errorf("yaml: %v, %v", media, err)
	}
	_, err := negotiation.Input("application/vnd.kubernetes.protobuf", negotiation.Offer{})
	if !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("protobuf of a custom resource: %v", err)
	}
}
