// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package collection_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/collection"
	"github.com/steer-dev/steer/cache/internal/reflector"
)

func TestAdviceSaysWhatToDoAboutAnError(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, tt := range []struct {
		err    error
		advice string
	}{
		{apierrors.NewForbidden(pods, "", errors.New("no")), " (grant it: THE RULE)"},
		{apierrors.NewUnauthorized("no"), " (the credentials are not accepted: check the token or certificate of the kubeconfig or service account; it may have been revoked or have expired)"},
		{apierrors.NewTooManyRequests("later", 1), " (the API server is shedding load; the watch is retried with a back-off)"},
		{apierrors.NewGenericServerResponse(http.StatusGone, "list", pods, "", "old", 0, false), " (the history was too short to resume; everything is listed again)"},
		{apierrors.NewResourceExpired("old"), " (the history was too short to resume; everything is listed again)"},
		{apierrors.NewNotFound(pods, ""), " (the server does not serve the resource right now; discovery is asked again)"},
		{fmt.Errorf("watch: %w", reflector.ErrIdle), " (it is opened anew where it stopped)"},
		{apierrors.NewServiceUnavailable("no"), " (the API server is in trouble; the watch is retried with a back-off)"},
		{apierrors.NewInternalError(errors.New("no")), " (the API server is in trouble; the watch is retried with a back-off)"},
		{apierrors.NewTimeoutError("no", 1), " (the API server is in trouble; the watch is retried with a back-off)"},
		{apierrors.NewServerTimeout(pods, "list", 1), " (the API server is in trouble; the watch is retried with a back-off)"},
		{refused, " (the API server cannot be reached: start it, or correct the address in the kubeconfig; the watch is retried with a back-off)"},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), " (the API server cannot be reached: start it, or correct the address in the kubeconfig; the watch is retried with a back-off)"},
		{errors.New("something else"), ""},
	} {
		got := collection.Advise("pods in default", tt.err, func() string { return "THE RULE" })
		if want := "watch pods in default: " + tt.err.Error() + tt.advice; got.Error() != want || !errors.Is(got, tt.err) {
			t.Errorf("%v\nwant %s", got, want)
		}
	}
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Gear"}, SearchedVersions: []string{"v1"}}
	for _, err := range []error{nil, noMatch} {
		if got := collection.Advise("gears", err, nil); got != err { //nolint:errorlint // as it is
			t.Errorf("%v has become %v", err, got)
		}
	}
}
