// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

const protobufType = "application/vnd.kubernetes.protobuf"

var errStreamFormat = errors.New("the stream has no known format")

// limit bounds the size of one answer, in bytes.
const limit = 64 << 20

// reply is one decoded answer.
type reply struct {
	code   int
	header http.Header
	// raw is the body as text; for a stream, the undecoded part.
	raw string
	// value is the decoded body; nil for plain text.
	value any
	// events are the decoded events of a stream; ended reports that the server closed
	// it.
	stream bool
	events []any
	ended  bool
}

// captured returns the value in which capture paths and conditions are evaluated.
func (r *reply) captured() any {
	if r.stream {
		return r.events
	}
	return r.value
}

func readReply(response *http.Response) (*reply, error) {
	data, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return nil, err
	}
	if response.Header.Get("Content-Encoding") == "gzip" {
		if data, err = gunzip(data); err != nil {
			return nil, err
		}
	}
	r := &reply{code: response.StatusCode, header: response.Header, raw: string(data)}
	switch kind := response.Header.Get("Content-Type"); {
	case len(data) == 0:
	case strings.HasPrefix(kind, "text/plain") && data[0] == '{': // the OpenAPI index has this media type for its JSON
		if err := json.Unmarshal(data, &r.value); err != nil {
			r.value = nil // plain text
		}
	case strings.HasPrefix(kind, protobufType):
		if r.value, err = decodeProtobuf(data); err != nil {
			return nil, err
		}
	case strings.HasPrefix(kind, "application/json"):
		if err := json.Unmarshal(data, &r.value); err != nil {
			return nil, fmt.Errorf("decode the answer: %w", err)
		}
	case strings.Contains(kind, "yaml"):
		if err := yaml.Unmarshal(data, &r.value); err != nil {
			return nil, fmt.Errorf("decode the answer: %w", err)
		}
	}
	return r, nil
}

func gunzip(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(reader, limit))
}

// readStream reads events until there are enough, the server closes, or the context of
// the request ends. alive is called after every event.
func readStream(response *http.Response, enough int, alive func()) (*reply, error) {
	r := &reply{code: response.StatusCode, header: response.Header, stream: true}
	next, err := frames(response)
	if err != nil {
		return nil, err
	}
	for enough == 0 || len(r.events) < enough {
		event, err := next()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			r.ended = true
			return r, nil
		case errors.Is(err, context.Canceled):
			return r, nil
		case err != nil:
			return nil, err
		}
		alive()
		r.events = append(r.events, event)
	}
	return r, nil
}

func frames(response *http.Response) (func() (any, error), error) {
	kind := response.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, protobufType):
		return func() (any, error) { return readProtobufEvent(response.Body) }, nil
	case strings.HasPrefix(kind, "application/json"):
		decoder := json.NewDecoder(response.Body)
		return func() (any, error) {
			var event any
			err := decoder.Decode(&event)
			return event, err
		}, nil
	}
	return nil, fmt.Errorf("%w: Content-Type %q", errStreamFormat, kind)
}

func readProtobufEvent(stream io.Reader) (any, error) {
	var size [4]byte
	if _, err := io.ReadFull(stream, size[:]); err != nil {
		return nil, err
	}
	data := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(stream, data); err != nil {
		return nil, err
	}
	var unknown runtime.Unknown
	magic := []byte("k8s\x00")
	raw := data
	if bytes.HasPrefix(data, magic) {
		if err := unknown.Unmarshal(data[len(magic):]); err != nil {
			return nil, err
		}
		raw = unknown.Raw
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(raw); err != nil {
		return nil, err
	}
	object, err := decodeProtobuf(event.Object.Raw)
	return map[string]any{"type": event.Type, "object": object}, err
}

// protobufScheme has the kinds that conversations may request as protobuf.
func protobufScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme, batchv1.AddToScheme, appsv1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two kinds of k8s.io/api with one name: cannot happen
		}
	}
	scheme.AddKnownTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	return scheme
}

func encodeProtobuf(text []byte) ([]byte, error) {
	scheme := protobufScheme()
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(text, &meta); err != nil {
		return nil, err
	}
	object, err := scheme.New(meta.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, object); err != nil {
		return nil, err
	}
	return runtime.Encode(protobuf.NewSerializer(scheme, scheme), object)
}

func decodeProtobuf(data []byte) (any, error) {
	scheme := protobufScheme()
	object, kind, err := protobuf.NewSerializer(scheme, scheme).Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode protobuf: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var value any
	err = json.Unmarshal(text, &value)
	return value, err
}
