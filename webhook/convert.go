// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// conversionReview is the ConversionReview of apiextensions.k8s.io/v1. The package of
// Kubernetes' own type brings the types of all of the group.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID              `json:"uid"`
	DesiredAPIVersion string                 `json:"desiredAPIVersion"`
	Objects           []runtime.RawExtension `json:"objects"`
}

type conversionResponse struct {
	UID types.UID `json:"uid"`
	// ConvertedObjects are in the order of the request, and as many.
	ConvertedObjects []runtime.RawExtension `json:"convertedObjects"`
	Result           metav1.Status          `json:"result"`
}

// serveConversion answers a conversion request: all of its objects, or an error that
// names the first that cannot be converted.
func (s *Server) serveConversion(w http.ResponseWriter, r *http.Request) {
	var review conversionReview
	give, err := s.conversions.read(w, r, &review)
	if err == nil {
		defer give()
		err = expect(review.TypeMeta, "apiextensions.k8s.io/v1", "ConversionReview")
	}
	if err == nil && review.Request == nil {
		err = &requestError{http.StatusBadRequest, "the ConversionReview has no request"}
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	response := &conversionResponse{UID: review.Request.UID, ConvertedObjects: []runtime.RawExtension{}}
	converted := make([]runtime.RawExtension, len(review.Request.Objects))
	for i, object := range review.Request.Objects {
		if err = r.Context().Err(); err == nil {
			converted[i].Raw, err = s.convert(object.Raw, review.Request.DesiredAPIVersion)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", nameOf(object.Raw), err)
			break
		}
	}
	response.Result = metav1.Status{Status: metav1.StatusSuccess}
	if err != nil {
		s.opts.Log.Error("objects cannot be converted: the API server answers their readers and writers with this error", "to", review.Request.DesiredAPIVersion, "error", err)
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	} else {
		response.ConvertedObjects = converted
	}
	s.answer(w, r, &conversionReview{TypeMeta: review.TypeMeta, Response: response})
}

// convert converts one object; a panic is an error.
func (s *Server) convert(object []byte, apiVersion string) (converted []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked(true, conversionPath, v)
			converted, err = nil, fmt.Errorf("the conversion to %s panicked: %v; the log of the operator has the stack", apiVersion, v)
		}
	}()
	return s.converter.Convert(object, apiVersion)
}

// nameOf names an object, as far as it can be read.
func nameOf(object []byte) string {
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &head); err != nil {
		return "an object"
	}
	name := head.Name
	if head.Namespace != "" {
		name = head.Namespace + "/" + name
	}
	return head.Kind + " " + name
}
