// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/controlplane/webhookclient"
)

func TestDecoderReadsReviewsAndRefusesWithTheWordsOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, admissionv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	d := webhookclient.NewDecoder(scheme, admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion)
	var review admissionv1.AdmissionReview
	const answer = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true,"warnings":["w"]},"unknown":1}`
	if err := d.Decode([]byte(answer), &review); err != nil || review.Response == nil || review.Response.UID != "u" || len(review.Response.Warnings) != 1 {
		t.Errorf("got %+v, %v", review, err)
	}
	if review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" {
		t.Errorf("the type of the answer is lost: %s %s", review.APIVersion, review.Kind)
	}
	for text, want := range map[string]string{
		"":      "0-length response with status code: 200 and content type: application/json",
		"what?": "couldn't get version/kind; json parse error",
		`{"apiVersion":"admission.k8s.io/v1","kind":"Review"}`:                                       `no kind "Review" is registered for version "admission.k8s.io/v1" in scheme "` + webhookclient.SchemeName + `"`,
		`{"apiVersion":"v1","kind":"Pod"}`:                                                           `no kind "Pod" is registered for version "v1"`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":"yes"}}`: "cannot unmarshal string",
	} {
		if err := d.Decode([]byte(text), &admissionv1.AdmissionReview{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
