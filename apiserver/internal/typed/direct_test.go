// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/internal/jsontext"
)

func TestOnePassReadsWhatTheLibraryReads(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		`{}`,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"1","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"},"annotations":{},` +
			`"managedFields":[{"manager":"m","operation":"Update","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:x":{}}}}]},` +
			`"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"100m","memory":"1Gi"}},"ports":[{"containerPort":80,"protocol":"TCP"}],` +
			`"livenessProbe":{"httpGet":{"path":"/","port":"http"},"periodSeconds":3}}],"terminationGracePeriodSeconds":30,"nodeSelector":null},` +
			`"status":{"conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}],"phase":"Running"}}`,
		`{"metadata":{"name":"\u00e9\n"},"spec":{"containers":[],"volumes":[{"name":"v","emptyDir":{}}],"Containers":[{"name":"x"}]}}`,
		`{"metadata":{"generation":9007199254740993},"spec":{"containers":null},"unknown":{"a":[1,2,{}]}}`,
	} {
		var want, got corev1.Pod
		wantErr := kjson.UnmarshalCaseSensitivePreserveInts([]byte(document), &want)
		if err := Decode([]byte(document), &got); err != nil || wantErr != nil {
			t.Errorf("%s: %v, %v", document, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-library +one pass):\n%s", document, diff)
		}
	}
}

// FuzzDecodeFast: input that is accepted decodes as the library decodes it, without
// strict errors; canonical text, as patches leave it, also as maps are converted.
func FuzzDecodeFast(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Pod","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"100m","memory":1}},"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"http"}}}]}}`,
		`{"metadata":{"name":"a","name":"b"}}`, `{"metadata":{"labels":{"a":"1","a":"2"}}}`, `{"Metadata":{}}`, `{"spec":{"unknown":1}}`, `{"spec":{"containers":null,"nodeSelector":{"a":null}}}`,
		`{"metadata":{"managedFields":[{"fieldsV1":{"a":1,"a":2}}]}}`, `{"metadata":{"creationTimestamp":null}}`, `{"metadata":{"creationTimestamp":"yesterday"}}`, `{"metadata":{"name":"\ud800"}}`, "{\"metadata\":{\"name\":\"\xff\"}}",
		`{"spec":{"priority":1.0}}`, `{"spec":{"priority":1e2}}`, `{"spec":{"priority":"1"}}`, `{"spec":{"priority":4294967296}}`, `{"spec":{"hostNetwork":1}}`, `{} {}`, `[]`, `null`, ` {"spec" : { } } `, `{"spec":{"containers":[null]}}`, `{"spec":{"containers":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var got, want corev1.Pod
		if !DecodeFast(value, &got) {
			return
		}
		strict, err := kjson.UnmarshalStrict(value, &want)
		if err != nil || len(strict) > 0 {
			t.Fatalf("takes %q, the library says %v, %v", value, err, strict)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-library +ours):\n%s", value, diff)
		}
		canonical, ok := jsontext.Canonicalize(bytes.TrimSpace(value))
		got = corev1.Pod{}
		if !ok || !DecodeFast([]byte(canonical), &got) {
			return
		}
		var content map[string]any
		var converted corev1.Pod
		if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &content); err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, &converted, true); err != nil {
			t.Fatalf("takes %q, the conversion says %v", value, err)
		}
		if !equality.Semantic.DeepEqual(converted, got) {
			t.Errorf("%q (-conversion +ours):\n%s", value, cmp.Diff(converted, got))
		}
	})
}

func BenchmarkDecodePod(b *testing.B) {
	value, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	for name, decode := range map[string]func(*corev1.Pod) bool{
		"one pass": func(p *corev1.Pod) bool { return DecodeFast(value, p) },
		"library":  func(p *corev1.Pod) bool { _, err := kjson.UnmarshalStrict(value, p); return err == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !decode(&corev1.Pod{}) {
					b.Fatal("not decoded")
				}
			}
		})
	}
}
