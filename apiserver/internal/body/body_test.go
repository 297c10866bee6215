// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package body_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/body"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/testserver"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
)

// widgets and configMaps return decoders of an untyped and a typed kind.
func widgets(fieldValidation string) *body.Decoder {
	r := testserver.Widgets()
	return &body.Decoder{Kind: r.GroupVersionKind("v1"), Version: &r.Versions[0], FieldValidation: fieldValidation, EquivalentVersions: []string{"v1beta1"}}
}

func configMaps(fieldValidation string) *body.Decoder {
	r := testserver.ConfigMaps()
	return &body.Decoder{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Version: &r.Versions[0], FieldValidation: fieldValidation}
}

func TestDecoderReportsUnknownAndDuplicateFields(t *testing.T) {
	t.Parallel()
	const (
		widget    = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"colour":"red","colour":"blue"},"extra":1}`
		configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v","k":"w"},"extra":1}`
	)
	for name, c := range map[string]struct {
		decoder func(string) *body.Decoder
		data    string
		want    []string
	}{
		"untyped": {widgets, widget, []string{`duplicate field "spec.colour"`, `unknown field "extra"`}},
		"typed":   {configMaps, configMap, []string{`duplicate field "data.k"`, `unknown field "extra"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, level := range []string{metav1.FieldValidationIgnore, metav1.FieldValidationWarn} {
				r := &resource.Request{Warnings: &resource.Warnings{}}
				obj, err := c.decoder(level).Decode(r, negotiation.JSON, []byte(c.data))
				if err != nil || obj.GetName() != "a" {
					t.Errorf("%s: %v, %v", level, obj, err)
				}
				want := c.want
				if level == metav1.FieldValidationIgnore {
					want = nil
				}
				if got := slices.Sorted(slices.Values(r.Warnings.Texts())); !slices.Equal(got, want) {
					t.Errorf("%s: warnings %q, want %q", level, got, want)
				}
			}
			_, err := c.decoder(metav1.FieldValidationStrict).Decode(&resource.Request{}, negotiation.JSON, []byte(c.data))
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), c.want[0]) || !strings.Contains(err.Error(), c.want[1]) {
				t.Errorf("Strict: %v", err)
			}
		})
	}
}

func TestDecoderAcceptsItsKindInEveryMediaType(t *testing.T) {
	t.Parallel()
	raw, err := (&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		d     *body.Decoder
		media negotiation.Media
		data  string
	}{
		"JSON":               {widgets(""), negotiation.JSON, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`},
		"YAML":               {widgets(""), negotiation.YAML, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"},
		"equivalent version": {widgets(""), negotiation.JSON, `{"apiVersion":"example.com/v1beta1","kind":"Widget","metadata":{"name":"a"}}`},
		"protobuf":           {configMaps(""), negotiation.Protobuf, string(wire.Envelope("v1", "ConfigMap", raw))},
	} {
		obj, err := c.d.Decode(&resource.Request{}, c.media, []byte(c.data))
		if err != nil || obj.GetName() != "a" || obj.GetObjectKind().GroupVersionKind() != c.d.Kind {
			t.Errorf("%s: %v, %v", name, obj, err)
		}
	}
}

func TestDecoderRefusesOtherBodies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    *body.Decoder
		data string
		want string
	}{
		"malformed":     {widgets(""), `{"kind":`, "couldn't get version/kind"},
		"list":          {widgets(""), `[]`, "cannot unmarshal array"},
		"no kind":       {widgets(""), `{"apiVersion":"example.com/v1"}`, "Object 'Kind' is missing"},
		"other kind":    {configMaps(""), `{"apiVersion":"v1","kind":"Gadget"}`, `no kind "Gadget" is registered`},
		"other version": {widgets(""), `{"apiVersion":"example.com/v2","kind":"Widget"}`, "does not match the expected API version (example.com/v1)"},
	} {
		if obj, err := c.d.Decode(&resource.Request{}, negotiation.JSON, []byte(c.data)); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, obj, err)
		}
	}
}

func TestReadBoundsTheBody(t *testing.T) {
	t.Parallel()
	request := func(from io.Reader, length int64) *http.Request {
		return &http.Request{Body: io.NopCloser(from), ContentLength: length}
	}
	for name, c := range map[string]struct {
		r     *http.Request
		limit int64
		size  int
		check func(error) bool
	}{
		"within":              {request(strings.NewReader("12345"), 5), 5, 5, nil},
		"without a limit":     {request(strings.NewReader(strings.Repeat("x", 9000)), -1), 0, 9000, nil},
		"of unknown length":   {request(iotest.OneByteReader(strings.NewReader("12345")), -1), 5, 5, nil},
		"beyond":              {request(strings.NewReader("123456"), 6), 5, 0, apierrors.IsRequestEntityTooLargeError},
		"beyond, undeclared":  {request(strings.NewReader("123456"), -1), 5, 0, apierrors.IsRequestEntityTooLargeError},
		"beyond the server's": {request(iotest.ErrReader(&http.MaxBytesError{Limit: 3}), 4), 5, 0, apierrors.IsRequestEntityTooLargeError},
		"late":                {request(iotest.ErrReader(os.ErrDeadlineExceeded), 4), 5, 0, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"broken":              {request(iotest.ErrReader(io.ErrUnexpectedEOF), 4), 5, 0, apierrors.IsBadRequest},
	} {
		data, err := body.Read(c.r, c.limit)
		if c.check != nil {
			if !c.check(err) {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		} else if err != nil || len(data) != c.size {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
}

func TestDeleteOptionsAreDecodedFromEveryMediaType(t *testing.T) {
	t.Parallel()
	raw, err := (&metav1.DeleteOptions{GracePeriodSeconds: new(int64(7))}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for contentType, data := range map[string]string{
		"":                                    `{"gracePeriodSeconds":7}`,
		"application/json":                    `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":7}`,
		"application/yaml":                    "gracePeriodSeconds: 7",
		"application/vnd.kubernetes.protobuf": string(wire.Envelope("v1", "DeleteOptions", raw)),
	} {
		o := &metav1.DeleteOptions{}
		if err := body.DeleteOptions(contentType, []byte(data), o); err != nil || o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 7 {
			t.Errorf("%q: %v, %v", contentType, o, err)
		}
	}
	for contentType, data := range map[string]string{
		"application/json":                    `{"apiVersion":"v1","kind":"Pod"}`,
		"application/yaml":                    "a: [",
		"application/vnd.kubernetes.protobuf": "{}",
	} {
		if err := body.DeleteOptions(contentType, []byte(data), &metav1.DeleteOptions{}); !apierrors.IsBadRequest(err) {
			t.Errorf("%q: %v", contentType, err)
		}
	}
	if err := body.DeleteOptions("text/plain", nil, &metav1.DeleteOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("text: %v", err)
	}
}
