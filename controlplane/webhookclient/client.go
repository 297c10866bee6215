// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/storage"
)

// Options say where webhooks, and API servers behind APIServices, are, and where the server may
// connect to. The zero value connects to any address.
type Options struct {
	// Reach is where the server may connect to. nil: everywhere, but for the addresses at which
	// clouds serve metadata when the server listens beyond the loopback interface.
	Reach []netip.Prefix
	// Services says where Services are that lead to processes outside of the cluster. nil: it
	// names none, and errors do not say how one is given an address.
	Services *serviceaddress.Table
	// Resolve returns where a Service is that Services does not know. It is called for every request
	// and has to be fast. nil, or false: at its EndpointSlices or Endpoints, or at the name of an
	// ExternalName.
	Resolve func(ctx context.Context, s Service) (Backend, bool)
	// KubeConfigFiles are the files with the credentials that admission plugins show to webhooks,
	// by the name of the plugin, as AdmissionConfigurations name them. nil: none.
	KubeConfigFiles map[string]string
}

// Service is the Service that a webhook is behind.
type Service = egress.Service

// Backend is where a Service is.
type Backend = egress.Backend

// Deps are what a [Client] is made of. Store is required.
type Deps struct {
	// Store holds the Services and their endpoints.
	Store storage.Store
	// Public reports that the server listens beyond the loopback interface.
	Public bool
	// Simulates reports that the server simulates Pods: their addresses are never connected to.
	Simulates bool
}

// Target is one webhook: the clientConfig of an admission webhook, or of a conversion.
type Target struct {
	// URL of the webhook. Empty: it is behind Service.
	URL string
	// Service that the webhook is behind, and the Path on it.
	Service *Service
	Path    string
	// CABundle verifies the certificate of the webhook, as PEM. Empty: the roots of the system do.
	CABundle []byte
	// Timeout bounds a request, besides its context, and is sent as the parameter timeout.
	// 0: 30 seconds.
	Timeout time.Duration
	// Plugin names the admission plugin whose credentials are shown; see
	// [Options.KubeConfigFiles]. Empty: none are.
	Plugin string
}

// Bounds of a request.
const (
	defaultTimeout = 30 * time.Second
	// leastAnswerBytes of an answer are read of any webhook; of a large review as much as several
	// times the review.
	leastAnswerBytes = 16 << 20
	answerFactor     = 4
)

// ErrClosed is the error of a request after [Client.Close].
var ErrClosed = errors.New("the server is stopping")

var errNoAddress = errors.New("webhook configuration must have either service or URL")

// Client calls webhooks. It is safe for concurrent use, and has no goroutines but those of the
// connections that are open.
type Client struct {
	options     Options
	services    egress.Services
	credentials map[string]*credentials
	pool        pool
	metrics     metrics
	// running ends with Close, and all requests with it.
	running context.Context // the life of the client
	stop    context.CancelFunc
}

// New returns a client. It reads the files that the options name.
func New(o Options, d Deps) (*Client, error) {
	c := &Client{options: o, credentials: map[string]*credentials{}, metrics: newMetrics()}
	c.services = egress.Services{Store: d.Store, Table: o.Services, Resolve: o.Resolve, Reach: o.Reach, Public: d.Public, Simulates: d.Simulates}
	for plugin, file := range o.KubeConfigFiles {
		loaded, err := loadCredentials(file)
		if err != nil {
			return nil, fmt.Errorf("webhookclient: load the kubeConfigFile of %s: %w", plugin, err)
		}
		c.credentials[plugin] = loaded
	}
	c.running, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Services returns what connects to the Services, by the same options.
func (c *Client) Services() *egress.Services { return &c.services }

// Close ends all requests and closes all connections. Closing twice is no error.
func (c *Client) Close() {
	c.stop()
	c.pool.close()
}

// Post sends a review to a webhook and returns the body of its answer. The error of a webhook that
// does not answer is that of [http.Client], with the address of the webhook in it.
func (c *Client) Post(ctx context.Context, t Target, review []byte) (answer []byte, err error) {
	if c.running.Err() != nil {
		return nil, ErrClosed
	}
	address, err := t.address()
	if err != nil {
		return nil, err
	}
	transport, err := c.transport(ctx, t, address)
	if err != nil {
		return nil, err
	}
	timeout := t.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	address.RawQuery = "timeout=" + query(timeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(c.running, cancel)()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(review))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{
		"Accept": {"application/json, */*"}, "Content-Type": {"application/json"}, "User-Agent": {"kube-apiserver-admission"},
		// A connection that the webhook has closed meanwhile is replaced: reviews may be sent twice.
		// The header itself is not sent.
		"Idempotency-Key": {},
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		c.metrics.observe(err)
		return nil, c.failed(err)
	}
	defer response.Body.Close()
	if answer, err = read(response, max(leastAnswerBytes, answerFactor*int64(len(review)))); err != nil {
		return nil, c.failed(err)
	}
	// On a busy machine the timer may fire late: an answer after the deadline is none.
	if deadline, _ := ctx.Deadline(); !time.Now().Before(deadline) {
		return nil, c.failed(&url.Error{Op: "Post", URL: address.String(), Err: context.DeadlineExceeded})
	}
	return answer, nil
}

// failed is the error of a request; that of one which Close has ended is [ErrClosed].
func (c *Client) failed(err error) error {
	if c.running.Err() != nil {
		return ErrClosed
	}
	return err
}

// query is a timeout as the parameter of a request; whole seconds, as all of them are in
// configurations, are "10s".
func query(d time.Duration) string {
	if d%time.Second == 0 && d < time.Minute {
		return strconv.Itoa(int(d/time.Second)) + "s"
	}
	return d.String()
}

// address is the URL of a webhook, as it is in errors. That of a Service has its name.
func (t *Target) address() (*url.URL, error) {
	if t.Service != nil {
		return &url.URL{Scheme: "https", Host: t.Service.Host(), Path: path.Join("/", t.Path)}, nil
	}
	if t.URL == "" {
		return nil, errNoAddress
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("Unparsable URL: %w", err) // as kube-apiserver writes it
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path.Join("/", u.Path)}, nil
}
