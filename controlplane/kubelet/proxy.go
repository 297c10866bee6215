// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/egress"
)

// Options say how kubelets are reached. The zero value reaches none.
type Options struct {
	// Reach is where the server may connect to. nil: nowhere, which refuses all requests for
	// containers.
	Reach []netip.Prefix
	// Authorities verify the certificates of kubelets. nil: they are not verified, as by
	// kube-apiserver without --kubelet-certificate-authority.
	Authorities *x509.CertPool
	// Certificate returns the client certificate that a kubelet is shown, for each connection
	// anew. It is called concurrently. nil: one that the server issues.
	Certificate func() (*tls.Certificate, error)
}

// Bounds of a connection to a kubelet.
const (
	dialTimeout = 10 * time.Second
	// answerTimeout is how long a kubelet may take until its answer begins.
	answerTimeout = 30 * time.Second
	// maxErrorBytes are read of an error of a kubelet.
	maxErrorBytes = 10 << 10
)

// Proxy passes requests on. It is safe for concurrent use.
type Proxy struct {
	options     Options
	certificate func() (*tls.Certificate, error)
	// transports of requests, by whether the certificate of the kubelet may be any.
	transports map[bool]*http.Transport
	// running ends with Close, and all connections with it.
	running context.Context // the life of the proxy
	stop    context.CancelFunc
}

// New returns a proxy that shows kubelets the certificate of the options, or else the one given.
func New(o Options, certificate func() (*tls.Certificate, error)) *Proxy {
	if o.Certificate != nil {
		certificate = o.Certificate
	}
	p := &Proxy{options: o, certificate: certificate, transports: map[bool]*http.Transport{}}
	p.running, p.stop = context.WithCancel(context.Background())
	for _, unverified := range []bool{false, true} {
		p.transports[unverified] = &http.Transport{
			DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return p.dial(ctx, network, address, unverified)
			},
			ResponseHeaderTimeout: answerTimeout, DisableCompression: true,
			DisableKeepAlives: true, // a connection ends with its request, so that none outlives Close
		}
	}
	return p
}

// Close ends all connections; requests fail with 503 from then on. Closing twice is no
// error.
func (p *Proxy) Close() { p.stop() }

// closed is the answer after Close, nil before.
func (p *Proxy) closed() error {
	if p.running.Err() == nil {
		return nil
	}
	return apierrors.NewServiceUnavailable("the server is shutting down")
}

// living returns a context that ends with the proxy as well, and fails once it is closed.
func (p *Proxy) living(ctx context.Context) (context.Context, func(), error) {
	if err := p.closed(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.running, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// Endpoint is where the kubelet of a node is, as host and port; empty if the node states none.
// Its addresses are preferred in this order: InternalIP, ExternalIP, Hostname.
func Endpoint(n *corev1.Node) string {
	port := n.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port <= 0 {
		return ""
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeHostName} {
		i := slices.IndexFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == kind && a.Address != "" })
		if i >= 0 {
			return net.JoinHostPort(n.Status.Addresses[i].Address, strconv.Itoa(int(port)))
		}
	}
	return ""
}

// dial connects to a kubelet, whose certificate may be any if it is not to be verified.
func (p *Proxy) dial(ctx context.Context, network, address string, unverified bool) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, ControlContext: egress.Control(egress.Within(p.options.Reach))}
	certificate, err := p.certificate()
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"http/1.1"},
		ServerName: host, RootCAs: p.options.Authorities, InsecureSkipVerify: unverified || p.options.Authorities == nil, // as kube-apiserver; an option verifies
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, config)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // of no use
		return nil, err
	}
	return secured, nil
}

// Target is a request to a kubelet.
type Target struct {
	// Node is the name of the node, Host the [Endpoint] of its kubelet.
	Node, Host string
	// Path on the kubelet, and its Query.
	Path  string
	Query url.Values
	// What is the subresource, such as "pods/log", of the Pod Name.
	What, Name string
	// Unverified accepts any certificate of the kubelet: its user asked for that.
	Unverified bool
}

func (t *Target) url() string {
	return (&url.URL{Scheme: "https", Host: t.Host, Path: t.Path, RawQuery: t.Query.Encode()}).String()
}

// Logs answers with the text that a kubelet has; flush sends it as it comes. An error is returned
// before anything was written.
func (p *Proxy) Logs(ctx context.Context, w http.ResponseWriter, t *Target, flush bool) error {
	ctx, done, err := p.living(ctx)
	if err != nil {
		return err
	}
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url(), http.NoBody)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	// One round trip: redirects are not followed.
	response, err := p.transports[t.Unverified].RoundTrip(request)
	if err != nil {
		return p.failed(t, err)
	}
	defer response.Body.Close()
	if err := t.check(response); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	out := io.Writer(w)
	if flush {
		out = &flushing{w, http.NewResponseController(w)}
		_ = out.(*flushing).control.Flush() // the client learns that there is an answer
	}
	_, _ = io.Copy(out, response.Body) // what is written is written: the client sees the end
	return nil
}

// flushing sends what is written at once.
type flushing struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (f *flushing) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	if err != nil {
		return n, err
	}
	return n, f.control.Flush()
}

// check returns the error of an answer that is no success.
func (t *Target) check(r *http.Response) error {
	if r.StatusCode >= 200 && r.StatusCode <= 206 {
		return nil
	}
	if r.StatusCode >= 300 && r.StatusCode < 400 {
		return t.bad("the kubelet of node " + t.Node + " answers with a redirect, and redirects are not followed")
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, maxErrorBytes)) // as much as there is
	what := strings.TrimSpace(string(text))
	switch r.StatusCode {
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(fmt.Errorf("%s", cmp.Or(what, "the kubelet says nothing more")))
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(what)
	}
	return apierrors.NewGenericServerResponse(r.StatusCode, "", corev1.Resource(t.What), t.Name, what, 0, r.StatusCode == http.StatusNotFound)
}

// failed is the answer for a kubelet that does not answer.
func (p *Proxy) failed(t *Target, err error) error {
	if err := p.closed(); err != nil {
		return err
	}
	if far := (*egress.RefusedError)(nil); errors.As(err, &far) {
		return t.bad(fmt.Sprintf("the kubelet of node %s is at %s, and this server may not connect there: allow it with steer up --kubelets, or controlplane.Options.Kubelets", t.Node, far.Address))
	}
	return t.bad(fmt.Sprintf("the kubelet of node %s at %s cannot be reached: %v", t.Node, t.Host, err))
}

// bad is the answer of one that passes requests on and fails.
func (t *Target) bad(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadGateway, Reason: metav1.StatusReasonUnknown, Message: t.What + ": " + message,
	}}
}
