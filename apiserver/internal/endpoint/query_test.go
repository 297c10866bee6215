// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestNoQueryIsDecodedAsAnEmptyOne(t *testing.T) {
	t.Parallel()
	for _, options := range []func() runtime.Object{
		func() runtime.Object { return &metav1.CreateOptions{} },
		func() runtime.Object { return &metav1.UpdateOptions{} },
		func() runtime.Object { return &metav1.PatchOptions{} },
		func() runtime.Object { return &metav1.DeleteOptions{} },
		func() runtime.Object { return &metav1.GetOptions{} },
		func() runtime.Object { return &metav1.TableOptions{} },
		func() runtime.Object { return &internalversion.ListOptions{} },
	} {
		want, got := options(), options()
		if err := listscheme.ParameterCodec.DecodeParameters(url.Values{}, metav1.SchemeGroupVersion, want); err != nil {
			t.Fatalf("%T: %v", want, err)
		}
		if err := decodeQuery(&Request{HTTP: &http.Request{URL: &url.URL{}}}, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-decoded +got):\n%s", want, diff)
		}
	}
}

func TestOptionsOfNoQueryAreValid(t *testing.T) {
	t.Parallel()
	if errs := metavalidation.ValidateCreateOptions(&metav1.CreateOptions{}); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := metavalidation.ValidateUpdateOptions(&metav1.UpdateOptions{}); len(errs) > 0 {
		t.Error(errs)
	}
}
