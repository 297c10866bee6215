// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// DeleteOptions decodes the body of a DELETE.
func DeleteOptions(contentType string, data []byte, o *metav1.DeleteOptions) error {
	media, err := negotiation.Input(contentType, negotiation.Offer{Protobuf: true})
	if err != nil {
		return err
	}
	switch media {
	case negotiation.Protobuf:
		rest, ok := wire.Enveloped(data)
		if !ok {
			return apierrors.NewBadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
		}
		envelope := &runtime.Unknown{}
		if err := envelope.Unmarshal(rest); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if err := o.Unmarshal(envelope.Raw); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	case negotiation.YAML:
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("couldn't get version/kind; json parse error: %v", err))
	}
	if meta.Kind != "" && meta.Kind != "DeleteOptions" {
		return apierrors.NewBadRequest(runtime.NewNotRegisteredErrForKind(schemeName, meta.GroupVersionKind()).Error())
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, o); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}
