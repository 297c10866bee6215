// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// The server as its clients inside a cluster find it.
const (
	namespace, name = "default", "kubernetes"
	usualPort       = "6443"
	networking      = "networking.k8s.io/v1"
)

func serviceKey() storage.Key {
	return storage.Key{Bucket: "services", Name: namespace + "/" + name}
}

func endpointsKey() storage.Key {
	return storage.Key{Bucket: "endpoints", Name: namespace + "/" + name}
}

func rangeKey() storage.Key {
	return storage.Key{Bucket: "networking.k8s.io/servicecidrs", Name: name}
}

func sliceKey() storage.Key {
	return storage.Key{Bucket: "discovery.k8s.io/endpointslices", Name: namespace + "/" + name}
}

// Service is the Service of a server.
type Service struct {
	// Ranges are where Services have their addresses from, one or one of each family; this
	// Service has the first address of the first.
	Ranges []netip.Prefix
	// Listen is the address that the server is to listen on, as host:port; its port
	// is the one that the Service leads to until it listens.
	Listen string
}

func (s Service) address() netip.Addr { return s.Ranges[0].Addr().Next() }

// cidrs are the ranges, as the API has them.
func (s Service) cidrs() []string {
	var out []string
	for _, p := range s.Ranges {
		out = append(out, p.String())
	}
	return out
}

// port is the one that the Service leads to.
func (s Service) port(at *net.TCPAddr) string {
	if at != nil {
		return strconv.Itoa(at.Port)
	}
	if _, port, err := net.SplitHostPort(s.Listen); err == nil && port != "0" {
		return port
	}
	return usualPort
}

func (s Service) creation(at *net.TCPAddr) step.Creation {
	address := s.address().String()
	return step.Creation{
		Key: serviceKey(), APIVersion: "v1", Kind: "Service", Namespace: namespace, Name: name,
		Labels: `{"component":"apiserver","provider":"kubernetes"}`,
		Fields: `{"f:metadata":{"f:labels":{".":{},"f:component":{},"f:provider":{}}},"f:spec":{"f:clusterIP":{},"f:internalTrafficPolicy":{},` +
			`"f:ipFamilyPolicy":{},"f:ports":{".":{},"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},` +
			`"f:targetPort":{}}},"f:sessionAffinity":{},"f:type":{}}}`,
		Content: `"spec":{"ports":[{"name":"https","protocol":"TCP","port":443,"targetPort":` + s.port(at) + `}],"clusterIP":"` + address +
			`","clusterIPs":["` + address + `"],"type":"ClusterIP","sessionAffinity":"None","ipFamilies":["` + familyOf(s.address()) +
			`"],"ipFamilyPolicy":"SingleStack","internalTrafficPolicy":"Cluster"},"status":{"loadBalancer":{}}`,
	}
}

// first are the range of addresses, the address of the Service, and the Service.
func (s *Server) first(view storage.View, now time.Time) []step.Creation {
	out := []step.Creation{s.ranges(now)}
	if address := s.held(view); address.IsValid() {
		out = append(out, step.Creation{
			Key:        storage.Key{Bucket: "networking.k8s.io/ipaddresses", Name: address.String()},
			APIVersion: networking, Kind: "IPAddress", Name: address.String(),
			Labels: `{"ipaddress.kubernetes.io/ip-family":"` + familyOf(address) + `","ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}`,
			Fields: `{"f:metadata":{"f:labels":{".":{},"f:ipaddress.kubernetes.io/ip-family":{},"f:ipaddress.kubernetes.io/managed-by":{}}},` +
				`"f:spec":{"f:parentRef":{".":{},"f:name":{},"f:namespace":{},"f:resource":{}}}}`,
			Content: `"spec":{"parentRef":{"resource":"services","namespace":"default","name":"kubernetes"}}`,
		})
	}
	return append(out, s.Service.creation(s.listening.Load()))
}

// held is the address of the Service: the one that it has, from the ranges of an earlier start
// perhaps, or is to have. The zero value: it has none.
func (s *Server) held(view storage.View) netip.Addr {
	rec := view.Get(serviceKey())
	if rec == nil {
		return s.Service.address()
	}
	var is struct {
		Spec struct {
			ClusterIP string `json:"clusterIP"`
		} `json:"spec"`
	}
	if json.Unmarshal(rec.Value, &is) != nil {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(is.Spec.ClusterIP) // the zero value if it is none
	return address
}

// ranges is the ServiceCIDR of the server: as this server makes it, or as it is once
// the controller of ServiceCIDRs has seen it, which is what every start would wait for.
func (s *Server) ranges(now time.Time) step.Creation {
	at := strconv.Quote(now.UTC().Format(time.RFC3339))
	entry := func(manager, operation, fields, rest string) string {
		return `,{"manager":"` + manager + `","operation":"` + operation + `","apiVersion":"` + networking + `","time":` + at +
			`,"fieldsType":"FieldsV1","fieldsV1":` + fields + rest + `}`
	}
	applied := func(manager, fields string) string {
		return entry(manager, "Apply", `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},`+fields+`"f:status":{},"f:type":{}}}}}`, `,"subresource":"status"`)
	}
	c := step.Creation{
		Key: rangeKey(), APIVersion: networking, Kind: "ServiceCIDR", Name: name, Fields: `{"f:spec":{"f:cidrs":{}}}`,
	}
	message := "Kubernetes default Service CIDR is ready"
	if f := s.RangeFinalizer; f == "" {
		c.Entries = applied("kubernetes-service-cidr-controller", `"f:lastTransitionTime":{},"f:message":{},`)
	} else {
		message = "Kubernetes Service CIDR is ready"
		c.Finalizers = `["` + f + `"]`
		c.Entries = applied("kubernetes-service-cidr-controller", "") +
			applied("service-cidr-controller", `"f:lastTransitionTime":{},"f:message":{},"f:reason":{},`) +
			entry("kube-controller-manager", "Update", `{"f:metadata":{"f:finalizers":{".":{},"v:\"`+f+`\"":{}}}}`, "")
	}
	c.Content = `"spec":{"cidrs":["` + strings.Join(s.Service.cidrs(), `","`) + `"]},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":` + at +
		`,"reason":"","message":"` + message + `"}]}`
	return c
}

// missing returns the creations of what first returns, as far as it is not there.
func (s *Server) missing(view storage.View, now time.Time) []storage.Write {
	var writes []storage.Write
	for _, c := range s.first(view, now) {
		if view.Get(c.Key) == nil {
			c.UID, c.At, c.Manager = s.NewUID(), now, manager
			writes = append(writes, c.Write())
		}
	}
	return writes
}

// Announce has the endpoints of the Service lead to the address that the server listens on,
// from now on.
func (s *Server) Announce(ctx context.Context, listening *net.TCPAddr) error {
	s.listening.Store(listening)
	return s.mend(ctx)
}

// Redirect has the Service itself name the port of the address that was announced. It is a
// request like those of users: webhooks and policies may refuse it.
func (s *Server) Redirect(ctx context.Context) error {
	listening := s.listening.Load()
	if listening == nil {
		return nil
	}
	port := strconv.Itoa(listening.Port)
	service := s.Store.Latest().Get(serviceKey())
	if service == nil || bytes.Contains(service.Value, []byte(`"targetPort":`+port+`}`)) {
		return nil
	}
	return s.Send(ctx, step.Request{
		User: step.APIServer, Method: "PATCH", Path: "/api/v1/namespaces/default/services/" + name, ContentType: "application/json-patch+json",
		Body: []byte(`[{"op":"replace","path":"/spec/ports/0/targetPort","value":` + port + `}]`),
	})
}

// endpoints are the Endpoints and the EndpointSlice that lead to an address, or to those of
// several servers.
func endpoints(at *net.TCPAddr, servers []netip.AddrPort) []step.Creation {
	ip, port := Reachable(at), strconv.Itoa(at.Port)
	own := netip.AddrPortFrom(ip, uint16(at.Port)) // a port
	if len(servers) == 0 {
		servers = []netip.AddrPort{own}
	}
	return []step.Creation{{
		Key:        endpointsKey(),
		APIVersion: "v1", Kind: "Endpoints", Namespace: namespace, Name: name,
		Labels:  `{"endpointslice.kubernetes.io/skip-mirror":"true"}`,
		Fields:  `{"f:metadata":{"f:labels":{".":{},"f:endpointslice.kubernetes.io/skip-mirror":{}}},"f:subsets":{}}`,
		Content: `"subsets":[` + subsets(servers) + `]`,
	}, {
		Key:        sliceKey(),
		APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: namespace, Name: name, Generation: 1,
		Labels:  `{"kubernetes.io/service-name":"kubernetes"}`,
		Fields:  `{"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/service-name":{}}},"f:ports":{}}`,
		Content: `"addressType":"` + familyOf(ip) + `","endpoints":[` + sliceEndpoints(servers, own) + `],"ports":[{"name":"https","protocol":"TCP","port":` + port + `}]`,
	}}
}

// identityOf reads what of a stored object stays when its content is replaced.
func identityOf(rec *storage.Record) (metav1.ObjectMeta, error) {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(rec.Value, &o); err != nil {
		return o.ObjectMeta, fmt.Errorf("kubernetesservice: read %s: %w", rec.Key, err)
	}
	return o.ObjectMeta, nil
}

// familyOf names the family of an address as the API does.
func familyOf(ip netip.Addr) string {
	if ip.Is6() {
		return "IPv6"
	}
	return "IPv4"
}

// Advertised returns where a listener is for others: at an address that is given, whose port
// may be 0 for that of the listener, or where it is.
func Advertised(listening *net.TCPAddr, as netip.AddrPort) *net.TCPAddr {
	if !as.IsValid() {
		return listening
	}
	port := listening.Port
	if as.Port() != 0 {
		port = int(as.Port())
	}
	return &net.TCPAddr{IP: as.Addr().AsSlice(), Port: port}
}

// AddressOf returns the address and the port by which a listener is reached.
func AddressOf(listening *net.TCPAddr) netip.AddrPort {
	return netip.AddrPortFrom(Reachable(listening), uint16(listening.Port)) // a port
}

// Reachable returns the address by which a listener is reached: its own, or that
// of an interface if it listens on all of them.
func Reachable(listening *net.TCPAddr) netip.Addr {
	ip, _ := netip.AddrFromSlice(listening.IP)
	if ip = ip.Unmap(); !ip.IsUnspecified() {
		return ip
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		interfaces = nil
	}
	for _, a := range interfaces {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() && prefix.Addr().Is4() {
			return prefix.Addr()
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
