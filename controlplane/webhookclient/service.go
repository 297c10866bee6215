// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/storage"
)

// servicePort is the port of a Service that a webhook does not name.
const servicePort = 443

func (s Service) port() int32 {
	if s.Port == 0 {
		return servicePort
	}
	return s.Port
}

// serverName is what the certificate of a Service is verified for.
func (s Service) serverName() string { return s.Name + "." + s.Namespace + ".svc" }

func (s Service) host() string { return join(s.serverName(), s.port()) }

func join(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// resolve returns the addresses of a Service that [Options.Resolve] does not know, in the order
// in which they are to be tried. It is called for new connections only.
func (c *Client) resolve(ctx context.Context, s Service) ([]string, error) {
	view, err := c.deps.Store.View(ctx, 0)
	if err != nil {
		return nil, fmt.Errorf("read service %q: %w", s.Name, err)
	}
	service := &corev1.Service{}
	if found, err := load(view, storage.Key{Bucket: "services", Name: s.Namespace + "/" + s.Name}, service); err != nil || !found {
		if err == nil {
			err = apierrors.NewNotFound(corev1.Resource("service"), s.Name)
		}
		return nil, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{join(service.Spec.ExternalName, s.port())}, nil
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == s.port() })
	if at < 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", s.port(), s.Name))
	}
	addresses, err := endpoints(view, service, service.Spec.Ports[at].Name)
	if err == nil && len(addresses) == 0 {
		err = apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", s.Name))
	}
	return addresses, err
}

// endpoints returns the addresses of the endpoints of a Service that are ready, in random order,
// those of its first family of addresses first: of its EndpointSlices, or of its Endpoints if it
// has none.
func endpoints(view storage.View, service *corev1.Service, port string) ([]string, error) {
	var first, others []string
	sliced := false
	for rec := range view.Ascend("discovery.k8s.io/endpointslices", service.Namespace+"/", "") {
		slice := &discoveryv1.EndpointSlice{}
		if err := json.Unmarshal(rec.Value, slice); err != nil {
			return nil, fmt.Errorf("read %s: %w", rec.Key, err)
		}
		if slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		sliced = true
		into := &others
		if f := service.Spec.IPFamilies; len(f) == 0 || string(slice.AddressType) == string(f[0]) {
			into = &first
		}
		*into = append(*into, sliceAddresses(slice, port)...)
	}
	if !sliced {
		e := &corev1.Endpoints{} //nolint:staticcheck // what exists where nothing mirrors them
		if _, err := load(view, storage.Key{Bucket: "endpoints", Name: service.Namespace + "/" + service.Name}, e); err != nil {
			return nil, err
		}
		first = endpointsAddresses(e, port)
	}
	for _, list := range [][]string{first, others} {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return append(first, others...), nil
}

// sliceAddresses are the ready endpoints of a slice that has the port.
func sliceAddresses(slice *discoveryv1.EndpointSlice, port string) []string {
	var out []string
	for _, p := range slice.Ports {
		if p.Name == nil || *p.Name != port || p.Port == nil {
			continue
		}
		for _, e := range slice.Endpoints {
			if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
				out = append(out, join(e.Addresses[0], *p.Port))
			}
		}
	}
	return out
}

func endpointsAddresses(e *corev1.Endpoints, port string) []string { //nolint:staticcheck // see endpoints
	var out []string
	for _, subset := range e.Subsets {
		for _, p := range subset.Ports {
			for _, a := range subset.Addresses {
				if p.Name == port {
					out = append(out, join(a.IP, p.Port))
				}
			}
		}
	}
	return out
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
