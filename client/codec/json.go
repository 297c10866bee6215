// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/internal/kubejson"
)

// dialect are the options of the decoder of one pass; lean leaves managedFields out.
func dialect(lean bool) json.Options {
	if !lean {
		return kubejson.Options()
	}
	return json.JoinOptions(kubejson.Options(), json.WithUnmarshalers(
		json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ *[]metav1.ManagedFieldsEntry) error {
			return dec.SkipValue()
		})))
}

// newDecoder reads the tokens of the dialect.
func newDecoder(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// UnmarshalJSON decodes data in Kubernetes' dialect of JSON into a pointer to any Go
// type: names are case-sensitive, and whole numbers in untyped places become int64.
func UnmarshalJSON(data []byte, into any) error { return unmarshalJSON(data, into) }

// unmarshalJSON decodes the whole of data.
func unmarshalJSON(data []byte, into any) error {
	if m, ok := into.(*map[string]any); ok {
		return unmarshalMap(data, m)
	}
	return kubejson.Unmarshal(data, into)
}

func unmarshalMap(data []byte, into *map[string]any) error {
	u := untyped{dec: newDecoder(bytes.NewReader(data))}
	m, err := u.object()
	if err != nil {
		return err
	}
	if err := u.end(); err != nil {
		return err
	}
	*into = m
	return nil
}
