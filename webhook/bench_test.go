// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/webhook"
)

// BenchmarkInProcess answers reviews of an object of 5 KB, as the control plane of
// steertest and steer demo sends them: a defaulter that changes nothing, one that sets a
// field, and a validator that allows everything.
func BenchmarkInProcess(b *testing.B) {
	scheme, err := client.NewScheme(addWidgets)
	if err != nil {
		b.Fatal(err)
	}
	w := web{webhook.New(webhook.Options{Scheme: scheme, Trace: trace.NewRecorder(trace.Options{})}), nil}
	sets := func(_ context.Context, w *widget) error { w.Spec.Size = 1; return nil }
	for path, f := range map[string]defaulter{"/nothing": func(context.Context, *widget) error { return nil }, "/sets": sets} {
		if err := webhook.AddDefaulter(w, f, webhook.Path(path)); err != nil {
			b.Fatal(err)
		}
	}
	allow := validator(func(context.Context, string, *widget, *widget) (webhook.Warnings, error) { return nil, nil })
	if err := webhook.AddValidator(w, allow, webhook.Path("/allows")); err != nil {
		b.Fatal(err)
	}
	var object widget
	object.Name = "mine"
	for range 100 {
		object.Spec.Parts = append(object.Spec.Parts, part{Name: "a part with a name of some length", Count: 4})
	}
	raw, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	review := admissionv1.AdmissionReview{Request: request(admissionv1.Create, string(raw), "")}
	review.APIVersion, review.Kind = "admission.k8s.io/v1", "AdmissionReview"
	body, err := json.Marshal(review)
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"/nothing", "/sets", "/allows"} {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "https://x"+path+"?timeout=10s", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				resp, err := w.RoundTrip(r)
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
		})
	}
}
