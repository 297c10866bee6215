// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

// roundTrip is an [http.RoundTripper].
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// converterTo returns a converter of widgets whose webhook answers a review as answer does, and
// what its metrics have counted.
func converterTo(t *testing.T, reviews []string, answer func(review map[string]any) string) (*converter, func() []string) {
	t.Helper()
	hook := roundTrip(func(r *http.Request) (*http.Response, error) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(answer(review)))}, nil
	})
	store := storage.NewMemory(storage.MemoryOptions{})
	client, err := webhookclient.New(webhookclient.Options{
		Resolve: func(context.Context, webhookclient.Service) (webhookclient.Backend, bool) {
			return webhookclient.Backend{Transport: hook}, true
		},
	}, webhookclient.Deps{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	registry := prometheus.NewRegistry()
	d := New(Options{Store: store, Webhooks: client, NewUID: func() types.UID { return "review-1" }, Measure: registry.MustRegister})
	path, port := "/convert", int32(8443)
	c := d.converterOf(define("Widget", func(crd *v1.CustomResourceDefinition) {
		crd.Spec.Conversion = &v1.CustomResourceConversion{Strategy: v1.WebhookConverter, Webhook: &v1.WebhookConversion{
			ConversionReviewVersions: reviews,
			ClientConfig:             &v1.WebhookClientConfig{Service: &v1.ServiceReference{Namespace: "default", Name: "hook", Path: &path, Port: &port}},
		}}
	}))
	return c, func() []string { return counted(t, registry) }
}

// counted renders the reviews that metrics have counted.
func counted(t *testing.T, from prometheus.Gatherer) []string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			line := family.GetName()
			for _, label := range m.GetLabel() {
				line += " " + label.GetName() + "=" + label.GetValue()
			}
			out = append(out, fmt.Sprint(line, ": ", int(m.GetCounter().GetValue())+int(m.GetHistogram().GetSampleCount())))
		}
	}
	return out
}

// widget is a widget in a version.
func widget(version, name string, more ...string) *resource.Doc {
	content := map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "default", "uid": "uid-of-" + name, "resourceVersion": "5", "labels": map[string]any{"a": "b"}},
	}
	if more != nil {
		content["text"] = strings.Join(more, " ")
	}
	return resource.NewDoc(content)
}

// converted is an answer with the objects of a review, in the desired version.
func converted(review map[string]any, change ...func(response map[string]any)) string {
	request := review["request"].(map[string]any)
	response := map[string]any{"uid": request["uid"], "convertedObjects": request["objects"], "result": map[string]any{"status": "Success"}}
	for _, o := range request["objects"].([]any) {
		o.(map[string]any)["apiVersion"] = request["desiredAPIVersion"]
	}
	for _, c := range change {
		c(response)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestConverterSendsWhatIsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", reviewBytes*2/3)
	bare := resource.NewDoc(map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"})
	for what, tt := range map[string]struct {
		objects []resource.Object
		want    []string // the names in each review
	}{
		"nothing":              {},
		"objects without data": {objects: []resource.Object{bare}},
		"the version":          {objects: []resource.Object{widget("v2", "a"), widget("v2", "b")}},
		"one review":           {objects: []resource.Object{widget("v1", "a"), widget("v2", "b"), bare, widget("v1", "c")}, want: []string{"a c"}},
		"large objects":        {objects: []resource.Object{widget("v1", "a"), widget("v1", "b"), widget("v1", "c", large), widget("v1", "d", large), widget("v1", "e")}, want: []string{"a b c", "d e"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var sent []string
			c, _ := converterTo(t, []string{"v1"}, func(review map[string]any) string {
				var names []string
				for _, o := range review["request"].(map[string]any)["objects"].([]any) {
					names = append(names, (&unstructured.Unstructured{Object: o.(map[string]any)}).GetName())
				}
				sent = append(sent, strings.Join(names, " "))
				return converted(review)
			})
			got, err := c.convert(t.Context(), tt.objects, "v2")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, sent); diff != "" {
				t.Errorf("reviews (-want +got):\n%s", diff)
			}
			for i, o := range got {
				want := tt.objects[i].(*resource.Doc).Copy()
				want.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"})
				if want, got := text(t, want), text(t, o); want != got {
					t.Errorf("object %d is %.300s, want %.300s", i, got, want)
				}
			}
		})
	}
}

func TestConverterReviewIsThatOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v1beta1"} {
		c, _ := converterTo(t, []string{"v7", version}, nil)
		b := batch{to: widget("v2", "").GroupVersionKind().GroupVersion()}
		b.add(0, widget("v1", "a"), []byte(`{"a":1}`))
		b.add(1, widget("v1", "b"), []byte(`{"b":2}`))
		want := `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/` + version + `","request":{"uid":"u","desiredAPIVersion":"example.com/v2","objects":[{"a":1},{"b":2}]},` +
			`"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}` + "\n"
		if diff := cmp.Diff(want, string(c.reviewOf(&b, "u"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestConverterFailuresAreReturnedAndCounted(t *testing.T) {
	t.Parallel()
	set := func(name string, value any) func(map[string]any) string {
		return func(review map[string]any) string {
			return converted(review, func(response map[string]any) { response[name] = value })
		}
	}
	object := func(change func(o, metadata map[string]any)) func(map[string]any) string {
		return func(review map[string]any) string {
			return converted(review, func(response map[string]any) {
				o := response["convertedObjects"].([]any)[0].(map[string]any)
				change(o, o["metadata"].(map[string]any))
			})
		}
	}
	const of = "conversion webhook for example.com/v1, Kind=Widget "
	for _, tt := range []struct {
		reviews []string
		answer  func(map[string]any) string
		failure conversionFailure
		want    string
	}{
		{answer: func(r map[string]any) string { return converted(r) }},
		{reviews: []string{"v1beta1", "v1"}, answer: func(r map[string]any) string { return converted(r) }},
		// Reviews of v1beta1 have no uid in the answer that counts.
		{reviews: []string{"v1beta1"}, answer: set("uid", "other")},
		{reviews: []string{"v2"}, failure: callFailure, want: "no supported conversion review versions"},
		{
			answer: func(map[string]any) string { return "[]" }, failure: callFailure,
			want: of + "failed: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
		},
		{
			answer: func(map[string]any) string {
				return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`
			}, failure: malformedResponse,
			want: of + "failed: no response provided",
		},
		{answer: set("uid", "other"), failure: malformedResponse, want: of + `failed: expected response.uid="review-1", got "other"`},
		{answer: set("result", map[string]any{"status": "Failure", "message": "no luck"}), failure: malformedResponse, want: of + "failed: no luck"},
		{reviews: []string{"v1beta1"}, answer: set("result", map[string]any{"status": "Failure"}), failure: malformedResponse, want: of + "failed: response.result.status was 'Failure', not 'Success'"},
		{answer: set("convertedObjects", []any{}), failure: partialResponse, want: of + "returned 0 objects, expected 1"},
		{answer: set("convertedObjects", []any{nil}), failure: invalidObject, want: of + "returned invalid object: it is null"},
		{
			answer: object(func(o, _ map[string]any) { o["apiVersion"] = "example.com/v3" }), failure: invalidObject,
			want: of + "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v3)",
		},
		{
			answer: object(func(o, _ map[string]any) { o["kind"] = "Other" }), failure: invalidObject,
			want: of + "returned invalid object at index 0: invalid kind (expected Widget, received Other)",
		},
		{answer: object(func(_, m map[string]any) { m["name"] = "b" }), failure: invalidObject, want: of + "returned invalid object: must have the same name: a != b"},
		{answer: object(func(_, m map[string]any) { m["namespace"] = "b" }), failure: invalidObject, want: of + "returned invalid object: must have the same namespace: default != b"},
		{answer: object(func(_, m map[string]any) { m["uid"] = "b" }), failure: invalidObject, want: of + "returned invalid object: must have the same UID: uid-of-a != b"},
		{
			answer: object(func(_, m map[string]any) { m["labels"] = map[string]any{"a": 1} }), failure: invalidObject,
			want: of + "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
		},
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			if tt.reviews == nil {
				tt.reviews = []string{"v1"}
			}
			c, count := converterTo(t, tt.reviews, tt.answer)
			_, err := c.convert(t.Context(), []resource.Object{widget("v1", "a")}, "v2")
			got, result := "", "success"
			if err != nil {
				got, result = err.Error(), "failure"
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			want := []string{
				fmt.Sprintf("apiserver_conversion_webhook_duration_seconds failure_type=%s result=%s: 1", tt.failure, result),
				fmt.Sprintf("apiserver_conversion_webhook_request_total failure_type=%s result=%s: 1", tt.failure, result),
				fmt.Sprintf("apiserver_crd_conversion_webhook_duration_seconds crd_name=widgets.example.com from_version=v1 succeeded=%v to_version=v2: 1", err == nil),
			}
			if diff := cmp.Diff(want, count()); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConverterReturnsTheErrorOfARequestThatEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := converterTo(t, []string{"v1"}, func(review map[string]any) string {
		cancel()
		return converted(review, func(response map[string]any) { response["uid"] = "other" })
	})
	if _, err := c.convert(ctx, []resource.Object{widget("v1", "a")}, "v2"); !errors.Is(err, context.Canceled) {
		t.Errorf("the conversion ends with %v", err)
	}
}

func TestConversionMayChangeLabelsAndAnnotationsAlone(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		before, given string
		want, err     string
	}{
		"other fields stay": {
			`{"name":"a","generation":1,"finalizers":["x"]}`, `{"name":"a","generation":2,"managedFields":[],"ownerReferences":[]}`,
			`{"finalizers":["x"],"generation":1,"name":"a"}`, "",
		},
		"labels and annotations change": {
			`{"labels":{"a":"b"},"annotations":{"c":"d"}}`, `{"labels":{"a":"x","e":"f"},"annotations":{"g":"h"}}`,
			`{"annotations":{"g":"h"},"labels":{"a":"x","e":"f"}}`, "",
		},
		"labels and annotations go":          {`{"labels":{"a":"b"},"annotations":{"c":"d"}}`, `{"labels":null}`, `{}`, ""},
		"texts that were there":              {`{"labels":{"a":"-"}}`, `{"labels":{"a":"-"}}`, `{"labels":{"a":"-"}}`, ""},
		"an invalid label":                   {`{"labels":{"a":"b"}}`, `{"labels":{"a":"b","-":"c"}}`, "", `metadata.labels: Invalid value: "-"`},
		"an invalid label beside one less":   {`{"labels":{"a":"-","b":"c"}}`, `{"labels":{"a":"-"}}`, "", `metadata.labels: Invalid value: "-"`},
		"an invalid annotation":              {`{}`, `{"annotations":{"-":"c"}}`, "", `metadata.annotation: Invalid value: "-"`},
		"labels that are no map":             {`{}`, `{"labels":["a"]}`, "", "invalid metadata.labels of type []interface {} in converted object"},
		"an annotation that is no string":    {`{}`, `{"annotations":{"a":true}}`, "", "metadata.annotations[a] must be a string, but is bool in converted object"},
		"metadata that are no map":           {`{}`, `"a"`, "", "invalid metadata of type string in converted object"},
		"metadata that are not in an answer": {`{}`, ``, "", "missing metadata in converted object"},
	} {
		sent, out := resource.NewDoc(map[string]any{"metadata": parsed(t, tt.before)}), &resource.Doc{}
		if tt.given != "" {
			out = resource.NewDoc(map[string]any{"metadata": parsed(t, tt.given)})
		}
		err := keepMetadata(sent, out)
		switch {
		case tt.err != "":
			if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %s", what, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s: %v", what, err)
		default:
			if diff := cmp.Diff(parsed(t, tt.want), out.Content()["metadata"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
	}
}

// text encodes an object.
func text(t *testing.T, o resource.Object) string {
	t.Helper()
	out, err := resource.EncodeObject(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
