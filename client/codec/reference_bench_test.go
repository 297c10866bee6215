// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"
)

// BenchmarkReferenceWatchDecode is the same as BenchmarkWatchDecode on the
// decoders of apimachinery and client-go.
func BenchmarkReferenceWatchDecode(b *testing.B) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		b.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	event := watch.Event{Type: watch.Modified, Object: benchPod()}
	for name, c := range map[string]struct {
		mediaType string
		data      []byte
	}{"json": {runtime.ContentTypeJSON, jsonStream(b, event)}, "protobuf": {runtime.ContentTypeProtobuf, protoStream(b, event)}} {
		b.Run(name+"/typed", func(b *testing.B) {
			info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), c.mediaType)
			if !ok {
				b.Fatal("no serializer")
			}
			frames := info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(&endless{data: c.data}))
			dec := restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), codecs.UniversalDeserializer())
			b.ReportAllocs()
			b.SetBytes(int64(len(c.data)))
			for b.Loop() {
				if _, _, err := dec.Decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
