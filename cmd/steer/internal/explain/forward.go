// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/spdystream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	// debugPort is the one that an operator serves its records at, unless a place has another.
	debugPort = "6060"
	// maxStatus bounds an error of the API server, in bytes.
	maxStatus = 64 << 10
)

// pods reaches operators by port-forward, as kubectl does.
type pods struct {
	config    *rest.Config
	namespace string // of places that name none
}

// podPlace is [NAMESPACE/]pod/NAME[:PORT], or deploy in place of pod.
type podPlace struct{ namespace, kind, name, port string }

// isPod reports whether a place is one of Pods.
func isPod(place string) bool {
	_, ok := parsePod(place)
	return ok
}

func parsePod(place string) (podPlace, bool) {
	parts := strings.Split(place, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 3 || parts[2] == "" || !slices.Contains([]string{"pod", "deploy", "deployment"}, parts[1]) {
		return podPlace{}, false
	}
	name, port, ok := strings.Cut(parts[2], ":")
	if !ok {
		port = debugPort
	}
	return podPlace{parts[0], parts[1], name, port}, true
}

// each calls add with the operators of a place, each over a connection of its own.
func (p *pods) each(ctx context.Context, place string, add func(*operator) error) error {
	at, _ := parsePod(place)
	at.namespace = cmp.Or(at.namespace, p.namespace)
	if n, err := strconv.ParseUint(at.port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("records: %s: %q is no port", place, at.port)
	}
	plain := rest.CopyConfig(p.config)
	plain.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrade
	transport, err := rest.TransportFor(plain)
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	names := []string{at.name}
	if at.kind != "pod" {
		if names, err = p.of(ctx, transport, at); err != nil {
			return fmt.Errorf("records: %s: %w", place, err)
		}
	}
	for _, name := range names {
		at.name = name
		o, err := p.connect(ctx, transport, at)
		if err != nil {
			return fmt.Errorf("records: %s: %w", at, err)
		}
		if err := add(o); err != nil {
			return err
		}
	}
	return nil
}

// String names a Pod in errors.
func (at podPlace) String() string {
	return fmt.Sprintf("port %s of pod %s/%s", at.port, at.namespace, at.name)
}

// of are the names of the running Pods of a Deployment.
func (p *pods) of(ctx context.Context, transport http.RoundTripper, at podPlace) (names []string, err error) {
	var d struct {
		Spec struct{ Selector *metav1.LabelSelector }
	}
	if err := p.get(ctx, transport, "/apis/apps/v1/namespaces/"+url.PathEscape(at.namespace)+"/deployments/"+url.PathEscape(at.name), "get deployments", &d); err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Phase string }
		}
	}
	query := url.Values{"labelSelector": {metav1.FormatLabelSelector(d.Spec.Selector)}}
	if err := p.get(ctx, transport, "/api/v1/namespaces/"+url.PathEscape(at.namespace)+"/pods?"+query.Encode(), "list pods", &list); err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if pod.Status.Phase == "Running" {
			names = append(names, pod.Metadata.Name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("none of its Pods runs")
	}
	return names, nil
}

func (p *pods) get(ctx context.Context, transport http.RoundTripper, path, right string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.config.Host, "/")+path, nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return refused(answer, right)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into)
}

// connect makes a connection to one Pod through the API server.
func (p *pods) connect(ctx context.Context, transport http.RoundTripper, at podPlace) (*operator, error) {
	path := "/api/v1/namespaces/" + url.PathEscape(at.namespace) + "/pods/" + url.PathEscape(at.name) + "/portforward"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(p.config.Host, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	for key, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "portforward.k8s.io"} {
		request.Header.Set(key, value)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	raw, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer answer.Body.Close()
		return nil, refused(answer, "create pods/portforward")
	}
	spdy, err := spdystream.NewConnection(upgraded{raw}, false)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	go spdy.Serve(spdystream.NoOpStreamHandler) // until it is closed
	f := &forward{spdy: spdy, raw: raw, port: at.port, failed: make(chan string, 1)}
	return &operator{
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: f.dial}},
		url:    "http://localhost" + reconciles, name: at.String(), close: f.close, why: f.why,
	}, nil
}

// forward is a connection over which connections to a port are made. They are made one
// after the other.
type forward struct {
	spdy   *spdystream.Connection
	raw    io.Closer
	port   string
	dialed int
	failed chan string // what the API server says of the last one
}

func (f *forward) close() {
	_ = f.spdy.Close() // the API server may have closed it
	_ = f.raw.Close()
}

// dial makes a connection to the port. The whole forward ends with the context.
func (f *forward) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	id := strconv.Itoa(f.dialed)
	f.dialed++
	stop := context.AfterFunc(ctx, func() { _ = f.raw.Close() })
	defer stop()
	open := func(kind string) (*spdystream.Stream, error) {
		stream, err := f.spdy.CreateStream(http.Header{"Streamtype": {kind}, "Port": {f.port}, "Requestid": {id}}, nil, false)
		if err == nil {
			err = stream.WaitTimeout(patience)
		}
		return stream, err
	}
	failure, err := open("error")
	if err != nil {
		return nil, err
	}
	data, err := open("data")
	if err != nil {
		return nil, err
	}
	go func() { // ends with the connection
		text, _ := io.ReadAll(io.LimitReader(failure, maxStatus))
		if len(text) > 0 {
			select {
			case f.failed <- string(text):
			default: // the first one says enough
			}
		}
	}()
	return upgraded{data}, nil
}

// why completes the error of a request with what the API server says of the connection.
func (f *forward) why(ctx context.Context, err error) error {
	select {
	case text := <-f.failed:
		return fmt.Errorf("%s: the operator serves its records with --pprof-bind-address=127.0.0.1:%s", strings.TrimSpace(text), f.port)
	case <-time.After(time.Second): // the server does not say why
	case <-ctx.Done():
	}
	return err
}

// refused is the error of an answer, with the right that is missing.
func refused(answer *http.Response, right string) error {
	var status metav1.Status
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxStatus)) // the code says enough
	_ = json.Unmarshal(text, &status)
	message := status.Message
	if message == "" {
		message = answer.Status
	}
	if answer.StatusCode == http.StatusForbidden {
		message += ": a rule that allows to " + right + " is missing"
	}
	return errors.New(message)
}

// upgraded is a connection that has no addresses and no deadlines.
type upgraded struct{ io.ReadWriteCloser }

func (upgraded) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (upgraded) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (upgraded) SetDeadline(time.Time) error      { return nil }
func (upgraded) SetReadDeadline(time.Time) error  { return nil }
func (upgraded) SetWriteDeadline(time.Time) error { return nil }
