// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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
	namespace string
}

// isPod reports whether a place is pod/NAME or deploy/NAME, with :PORT or without.
func isPod(place string) bool {
	kind, name, ok := strings.Cut(place, "/")
	return ok && name != "" && (kind == "pod" || kind == "deploy" || kind == "deployment")
}

// records passes on what the operators of a place answer.
func (p *pods) records(ctx context.Context, place string, read func(io.Reader, string) error) error {
	kind, name, _ := strings.Cut(place, "/")
	name, port, ok := strings.Cut(name, ":")
	if !ok {
		port = debugPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("records: %s: %q is no port", place, port)
	}
	plain := rest.CopyConfig(p.config)
	plain.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrade
	transport, err := rest.TransportFor(plain)
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	names := []string{name}
	if kind != "pod" {
		if names, err = p.of(ctx, transport, name); err != nil {
			return fmt.Errorf("records: %s: %w", place, err)
		}
	}
	for _, name := range names {
		if err := p.one(ctx, transport, name, port, read); err != nil {
			return fmt.Errorf("records: port %s of pod %s/%s: %w", port, p.namespace, name, err)
		}
	}
	return nil
}

// of are the names of the running Pods of a Deployment.
func (p *pods) of(ctx context.Context, transport http.RoundTripper, deployment string) (names []string, err error) {
	var d struct {
		Spec struct{ Selector *metav1.LabelSelector }
	}
	if err := p.get(ctx, transport, "/apis/apps/v1/namespaces/"+p.namespace+"/deployments/"+url.PathEscape(deployment), "get deployments", &d); err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct{ Phase string }
		}
	}
	query := url.Values{"labelSelector": {metav1.FormatLabelSelector(d.Spec.Selector)}}
	if err := p.get(ctx, transport, "/api/v1/namespaces/"+p.namespace+"/pods?"+query.Encode(), "list pods", &list); err != nil {
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

// one reads the records of one Pod over a connection through the API server.
func (p *pods) one(ctx context.Context, transport http.RoundTripper, name, port string, read func(io.Reader, string) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(p.config.Host, "/")+"/api/v1/namespaces/"+p.namespace+"/pods/"+url.PathEscape(name)+"/portforward", nil)
	if err != nil {
		return err
	}
	for key, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "portforward.k8s.io"} {
		request.Header.Set(key, value)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	raw, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer answer.Body.Close()
		return refused(answer, "create pods/portforward")
	}
	spdy, err := spdystream.NewConnection(upgraded{raw}, false)
	if err != nil {
		return errors.Join(err, raw.Close())
	}
	defer func() { _ = spdy.Close() }() // the API server may have closed it
	go spdy.Serve(spdystream.NoOpStreamHandler)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	open := func(kind string) (*spdystream.Stream, error) {
		stream, err := spdy.CreateStream(http.Header{"Streamtype": {kind}, "Port": {port}, "Requestid": {"0"}}, nil, false)
		if err == nil {
			err = stream.WaitTimeout(patience)
		}
		return stream, err
	}
	failure, err := open("error")
	if err != nil {
		return err
	}
	data, err := open("data")
	if err != nil {
		return err
	}
	failed := make(chan string, 1)
	go func() { // ends with the connection
		text, _ := io.ReadAll(io.LimitReader(failure, maxStatus))
		failed <- string(text)
	}()
	err = ask(ctx, data, read, name)
	if err == nil {
		return nil
	}
	select {
	case text := <-failed:
		if text != "" {
			err = fmt.Errorf("%s: the operator serves its records with --pprof-bind-address=127.0.0.1:%s", strings.TrimSpace(text), port)
		}
	case <-time.After(time.Second): // the server does not say why
	case <-ctx.Done():
	}
	return err
}

// ask reads the records over a connection to the operator.
func ask(ctx context.Context, data io.ReadWriteCloser, read func(io.Reader, string) error, name string) error {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return upgraded{data}, nil },
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/debug/reconciles", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/debug/reconciles: %s: is it the port of --pprof-bind-address?", answer.Status)
	}
	return read(answer.Body, "pod "+name)
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
