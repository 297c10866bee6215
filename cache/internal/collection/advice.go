// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

import (
	"errors"
	"fmt"
	"io"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/steer-dev/steer/cache/internal/reflector"
	"github.com/steer-dev/steer/client/wire"
)

// Advise adds to the error of a watch what to do about it. where names what is watched, rule
// returns the rule of RBAC that it needs.
func Advise(where string, err error, rule func() string) error {
	if err == nil {
		return nil
	}
	advice := ""
	switch {
	case meta.IsNoMatchError(err):
		return err // it says what to do
	case apierrors.IsForbidden(err):
		advice = "grant it: " + rule()
	case wire.Advice(err) != "":
		advice = wire.Advice(err)
	case apierrors.IsTooManyRequests(err):
		advice = "the API server is shedding load; the watch is retried with a back-off"
	case apierrors.IsGone(err), apierrors.IsResourceExpired(err):
		advice = "the history was too short to resume; everything is listed again"
	case apierrors.IsNotFound(err):
		advice = "the server does not serve the resource right now; discovery is asked again"
	case errors.Is(err, reflector.ErrIdle):
		advice = "it is opened anew where it stopped"
	case apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		advice = "the API server is in trouble; the watch is retried with a back-off"
	case isNetwork(err):
		advice = "the API server cannot be reached: start it, or correct the address in the kubeconfig; the watch is retried with a back-off"
	}
	if advice == "" {
		return fmt.Errorf("watch %s: %w", where, err)
	}
	return fmt.Errorf("watch %s: %w (%s)", where, err, advice)
}

func isNetwork(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
