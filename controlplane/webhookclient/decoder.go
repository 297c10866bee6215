// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Decoder decodes the reviews that webhooks answer with as kube-apiserver does, so that its
// errors are the same. It is safe for concurrent use.
type Decoder struct{ codec runtime.Decoder }

// NewDecoder returns a decoder of the reviews in a scheme, which have these versions.
func NewDecoder(scheme *runtime.Scheme, versions ...schema.GroupVersion) *Decoder {
	return &Decoder{codec: serializer.NewCodecFactory(scheme).LegacyCodec(versions...)}
}

// SchemeName is that of the scheme in errors of kube-apiserver.
const SchemeName = "pkg/runtime/scheme.go:111"

// Decode decodes an answer into a review of the version that the webhook was sent.
func (d *Decoder) Decode(answer []byte, into runtime.Object) error {
	if len(answer) == 0 {
		return errors.New("0-length response with status code: 200 and content type: application/json")
	}
	_, kind, err := d.codec.Decode(answer, nil, into)
	if runtime.IsNotRegisteredError(err) && kind != nil {
		return runtime.NewNotRegisteredErrForKind(SchemeName, *kind)
	}
	return err
}
