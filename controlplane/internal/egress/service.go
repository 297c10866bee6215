// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/storage"
)

// Service is a Service that a webhook or an API server is behind.
type Service struct {
	Namespace, Name string
	// Port of the Service. 0: 443.
	Port int32
	// APIService reports that an APIService leads to it, rather than a webhook or a
	// conversion.
	APIService bool
}

// Backend is where a Service is.
type Backend struct {
	// Address is the host and port to connect to. The certificate is verified for the name of the
	// Service, as always.
	Address string
	// Transport, if set, carries the requests: without a socket and without a certificate.
	Transport http.RoundTripper
}

// servicePort is the port of a Service that is not named.
const servicePort = 443

func (s Service) port() int32 {
	if s.Port == 0 {
		return servicePort
	}
	return s.Port
}

func (s Service) key() serviceaddress.Key {
	return serviceaddress.Key{Namespace: s.Namespace, Name: s.Name, Port: s.port()}
}

// ServerName is what the certificate of a Service is verified for.
func (s Service) ServerName() string { return s.Name + "." + s.Namespace + ".svc" }

// Host is the host and port of a Service in URLs.
func (s Service) Host() string { return join(s.ServerName(), s.port()) }

// Services connects to what is behind Services. It is safe for concurrent use.
type Services struct {
	// Store holds the Services and their endpoints.
	Store storage.Store
	// Table says where Services are, before Resolve is asked. nil: it knows none.
	Table *serviceaddress.Table
	// Resolve returns where a Service is; nil, or false: at its endpoints.
	Resolve func(ctx context.Context, s Service) (Backend, bool)
	// Reach is where the server may connect to. nil: everywhere, but for [Metadata] addresses if
	// the server is Public.
	Reach []netip.Prefix
	// Public reports that the server listens beyond the loopback interface.
	Public bool
	// Simulates reports that Pods are simulated: the addresses of [SimulatedPods] are theirs. The
	// endpoints that are simulated Pods are known without it.
	Simulates bool

	// dial connects; nil: that of [Services.Dialer]. It is for tests.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Given returns where Table or Resolve says that a Service is.
func (s *Services) Given(ctx context.Context, to Service) (Backend, bool) {
	if address, ok := s.Table.Address(to.key()); ok {
		return Backend{Address: address}, true
	}
	if s.Resolve == nil {
		return Backend{}, false
	}
	return s.Resolve(ctx, to)
}

// dialTimeout bounds how long a connection may take to be made.
const dialTimeout = 10 * time.Second

// Dialer returns a dialer that connects only where the server may, and never to simulated Pods.
func (s *Services) Dialer() *net.Dialer {
	within := Control(s.allowed)
	return &net.Dialer{Timeout: dialTimeout, ControlContext: func(ctx context.Context, network, resolved string, c syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(resolved); err == nil && s.Simulates && SimulatedPods().Contains(at.Addr().Unmap()) {
			return &SimulatedError{Address: resolved}
		}
		return within(ctx, network, resolved, c)
	}}
}

// allowed reports whether the server may connect to an address.
func (s *Services) allowed(a netip.Addr) bool {
	if s.Reach != nil {
		return Within(s.Reach)(a)
	}
	return !s.Public || !Metadata(a)
}

// Dial connects to the first endpoint of a Service that accepts the connection. Resolve is not
// asked.
func (s *Services) Dial(ctx context.Context, network string, to Service) (net.Conn, error) {
	addresses, err := s.Addresses(to)
	if err != nil {
		return nil, err
	}
	dial := s.dial
	if dial == nil {
		dial = s.Dialer().DialContext
	}
	for _, address := range addresses {
		var conn net.Conn
		if conn, err = dial(ctx, network, address); err == nil {
			return conn, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("no endpoints available for service %q", to.Name)
	}
	return nil, err
}

func join(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// Addresses returns the addresses of a Service, by what is stored, in the order in which they are
// to be tried, without those of simulated Pods; if all are, the error is a [SimulatedError]. An
// error says how a Service is given an address, if there is a Table. New connections alone need them.
func (s *Services) Addresses(to Service) ([]string, error) {
	addresses, err := s.addresses(to)
	if err != nil {
		err = s.advise(to, err)
	}
	return addresses, err
}

// advise adds to the error of a Service that leads nowhere how it is given an address.
func (s *Services) advise(to Service, err error) error {
	if simulated := (*SimulatedError)(nil); errors.As(err, &simulated) {
		return err // it says so
	}
	if advice := s.Advice(to); advice != "" {
		return fmt.Errorf("%w (%s)", err, advice)
	}
	return err
}

// Advice says how a Service is given an address. Empty: there is no Table.
func (s *Services) Advice(to Service) string { return s.Table.Advice(to.key()) }

func (s *Services) addresses(to Service) ([]string, error) {
	view := s.Store.Latest()
	service := &corev1.Service{}
	if found, err := load(view, storage.Key{Bucket: "services", Name: to.Namespace + "/" + to.Name}, service); err != nil || !found {
		if err == nil {
			err = apierrors.NewNotFound(corev1.Resource("service"), to.Name)
		}
		return nil, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{join(service.Spec.ExternalName, to.port())}, nil
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == to.port() })
	if at < 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", to.port(), to.Name))
	}
	endpoints, _, err := Endpoints(view, service, service.Spec.Ports[at].Name)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, e := range endpoints {
		if !e.Simulated {
			addresses = append(addresses, e.Address)
		}
	}
	switch {
	case len(addresses) > 0:
		return addresses, nil
	case len(endpoints) > 0:
		return nil, &SimulatedError{Service: to, Advice: s.Advice(to)}
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", to.Name))
}

// Buckets of the endpoints of Services.
const (
	EndpointsBucket = "endpoints"
	SliceBucket     = "discovery.k8s.io/endpointslices"
)

// Endpoint is the host and port of an endpoint.
type Endpoint struct {
	Address string
	// Simulated reports that it is a simulated Pod: nothing listens there.
	Simulated bool
}

// Endpoints returns the endpoints of a Service that are ready at a port, in random
// order, those of its first family of addresses first: of its EndpointSlices, or of its Endpoints
// if it has none, as where nothing mirrors them. known reports that it has one of both.
func Endpoints(view storage.View, service *corev1.Service, port string) (endpoints []Endpoint, known bool, err error) {
	var first, others []Endpoint
	on := &nodes{view: view, known: map[string]bool{}}
	for rec := range view.Ascend(SliceBucket, service.Namespace+"/", "") {
		slice := &discoveryv1.EndpointSlice{}
		if err := json.Unmarshal(rec.Value, slice); err != nil {
			return nil, false, fmt.Errorf("read %s: %w", rec.Key, err)
		}
		if slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		known = true
		into := &others
		if f := service.Spec.IPFamilies; len(f) == 0 || string(slice.AddressType) == string(f[0]) {
			into = &first
		}
		ready, err := readyOf(slice, port, on)
		if err != nil {
			return nil, false, err
		}
		*into = append(*into, ready...)
	}
	if !known {
		e := &corev1.Endpoints{} // what exists where nothing mirrors them
		if known, err = load(view, storage.Key{Bucket: EndpointsBucket, Name: service.Namespace + "/" + service.Name}, e); err != nil {
			return nil, false, err
		}
		if first, err = addressesOf(e, port, on); err != nil {
			return nil, false, err
		}
	}
	for _, list := range [][]Endpoint{first, others} {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return append(first, others...), known, nil
}

// readyOf are the ready endpoints of a slice that has the port.
func readyOf(slice *discoveryv1.EndpointSlice, port string, on *nodes) (out []Endpoint, err error) {
	for _, p := range slice.Ports {
		if p.Name == nil || *p.Name != port || p.Port == nil {
			continue
		}
		for _, e := range slice.Endpoints {
			if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
				simulated, err := on.endpoint(slice.Namespace, e.NodeName, e.TargetRef)
				if err != nil {
					return nil, err
				}
				out = append(out, Endpoint{join(e.Addresses[0], *p.Port), simulated})
			}
		}
	}
	return out, nil
}

// addressesOf are the same for Endpoints.
func addressesOf(e *corev1.Endpoints, port string, on *nodes) (out []Endpoint, err error) {
	for _, subset := range e.Subsets {
		for _, p := range subset.Ports {
			for _, a := range subset.Addresses {
				if p.Name != port {
					continue
				}
				simulated, err := on.endpoint(e.Namespace, a.NodeName, a.TargetRef)
				if err != nil {
					return nil, err
				}
				out = append(out, Endpoint{join(a.IP, p.Port), simulated})
			}
		}
	}
	return out, nil
}

// load reads an object of the store; found is false if there is none.
func load(view storage.View, key storage.Key, into any) (found bool, err error) {
	rec := view.Get(key)
	if rec == nil {
		return false, nil
	}
	if err := json.Unmarshal(rec.Value, into); err != nil {
		return false, fmt.Errorf("read %s: %w", key, err)
	}
	return true, nil
}
