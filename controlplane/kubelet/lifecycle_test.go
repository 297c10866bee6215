// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controlplane/kubelet"
	"github.com/steer-dev/steer/internal/lifecycletest"
)

func TestProxyKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	errUnavailable := errors.New("503")
	node := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "a line") }))
	t.Cleanup(node.Close)
	target := &kubelet.Target{Node: "node", Host: node.Listener.Addr().String(), Path: "/containerLogs/default/web/main", What: "pods/log", Name: "web"}
	lifecycletest.RunClosed(t, func(*testing.T) lifecycletest.Closed {
		p := kubelet.New(kubelet.Options{Reach: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
			func() (*tls.Certificate, error) { return &node.TLS.Certificates[0], nil })
		return lifecycletest.Closed{
			Close: func() error { p.Close(); return nil },
			Use: func(ctx context.Context) error {
				err := p.Logs(ctx, httptest.NewRecorder(), target, false)
				if apierrors.IsServiceUnavailable(err) {
					return errUnavailable
				}
				return err
			},
			ErrClosed: errUnavailable,
		}
	})
}
