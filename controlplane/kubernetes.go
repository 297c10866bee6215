// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// The API server as its clients inside a cluster find it.
const (
	kubernetesName = "kubernetes"
	usualPort      = "6443"
)

// firstService returns the creations of the Service of the API server itself,
// which has the first address of the range, of that address and of the range, as
// far as they are not there.
func (p *Plane) firstService(view storage.View, ips netip.Prefix, now time.Time) []storage.Write {
	const networking = "networking.k8s.io/v1"
	manager, at := userAgent(step.APIServer), strconv.Quote(now.UTC().Format(time.RFC3339))
	first, family := ips.Addr().Next().String(), familyOf(ips.Addr())
	_, port, err := net.SplitHostPort(p.options.Listen)
	if err != nil || port == "0" {
		port = usualPort // until it listens
	}
	var writes []storage.Write
	for _, c := range []step.Creation{{
		Key:        storage.Key{Bucket: "networking.k8s.io/servicecidrs", Name: kubernetesName},
		APIVersion: networking, Kind: "ServiceCIDR", Name: kubernetesName,
		Fields: `{"f:spec":{"f:cidrs":{}}}`,
		Entries: `,{"manager":"kubernetes-service-cidr-controller","operation":"Apply","apiVersion":"` + networking + `","time":` + at +
			`,"fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},` +
			`"f:message":{},"f:status":{},"f:type":{}}}}},"subresource":"status"}`,
		Content: `"spec":{"cidrs":["` + ips.String() + `"]},"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":` + at +
			`,"reason":"","message":"Kubernetes default Service CIDR is ready"}]}`,
	}, {
		Key:        storage.Key{Bucket: "networking.k8s.io/ipaddresses", Name: first},
		APIVersion: networking, Kind: "IPAddress", Name: first,
		Labels: `{"ipaddress.kubernetes.io/ip-family":"` + family + `","ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}`,
		Fields: `{"f:metadata":{"f:labels":{".":{},"f:ipaddress.kubernetes.io/ip-family":{},"f:ipaddress.kubernetes.io/managed-by":{}}},` +
			`"f:spec":{"f:parentRef":{".":{},"f:name":{},"f:namespace":{},"f:resource":{}}}}`,
		Content: `"spec":{"parentRef":{"resource":"services","namespace":"default","name":"kubernetes"}}`,
	}, {
		Key:        storage.Key{Bucket: "services", Name: "default/" + kubernetesName},
		APIVersion: "v1", Kind: "Service", Namespace: "default", Name: kubernetesName,
		Labels: `{"component":"apiserver","provider":"kubernetes"}`,
		Fields: `{"f:metadata":{"f:labels":{".":{},"f:component":{},"f:provider":{}}},"f:spec":{"f:clusterIP":{},"f:internalTrafficPolicy":{},` +
			`"f:ipFamilyPolicy":{},"f:ports":{".":{},"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},` +
			`"f:targetPort":{}}},"f:sessionAffinity":{},"f:type":{}}}`,
		Content: `"spec":{"ports":[{"name":"https","protocol":"TCP","port":443,"targetPort":` + port + `}],"clusterIP":"` + first +
			`","clusterIPs":["` + first + `"],"type":"ClusterIP","sessionAffinity":"None","ipFamilies":["` + family +
			`"],"ipFamilyPolicy":"SingleStack","internalTrafficPolicy":"Cluster"},"status":{"loadBalancer":{}}`,
	}} {
		if view.Get(c.Key) == nil {
			c.UID, c.At, c.Manager = p.options.Entropy.UID(), now, manager
			writes = append(writes, c.Write())
		}
	}
	return writes
}

// publishEndpoints tells where the Service of the API server leads: to the
// address that the plane listens on. That may be one of this machine alone, which
// validation refuses to others; so it is written past the server.
func (p *Plane) publishEndpoints(ctx context.Context, listening *net.TCPAddr) error {
	view, err := p.store.View(ctx, 0)
	if err != nil {
		return fmt.Errorf("controlplane: read the endpoints of the server: %w", err)
	}
	ip, port := reachable(listening), strconv.Itoa(listening.Port)
	family := familyOf(ip)
	for _, c := range []step.Creation{{
		Key:        storage.Key{Bucket: "endpoints", Name: "default/" + kubernetesName},
		APIVersion: "v1", Kind: "Endpoints",
		Labels:  `{"endpointslice.kubernetes.io/skip-mirror":"true"}`,
		Fields:  `{"f:metadata":{"f:labels":{".":{},"f:endpointslice.kubernetes.io/skip-mirror":{}}},"f:subsets":{}}`,
		Content: `"subsets":[{"addresses":[{"ip":"` + ip.String() + `"}],"ports":[{"name":"https","port":` + port + `,"protocol":"TCP"}]}]`,
	}, {
		Key:        storage.Key{Bucket: "discovery.k8s.io/endpointslices", Name: "default/" + kubernetesName},
		APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Generation: 1,
		Labels: `{"kubernetes.io/service-name":"kubernetes"}`,
		Fields: `{"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/service-name":{}}},"f:ports":{}}`,
		Content: `"addressType":"` + family + `","endpoints":[{"addresses":["` + ip.String() +
			`"],"conditions":{"ready":true}}],"ports":[{"name":"https","protocol":"TCP","port":` + port + `}]`,
	}} {
		c.Namespace, c.Name, c.UID, c.At, c.Manager = "default", kubernetesName, p.options.Entropy.UID(), time.Now(), userAgent(step.APIServer)
		if err := p.replace(ctx, view.Get(c.Key), c); err != nil {
			return err
		}
	}
	service := view.Get(storage.Key{Bucket: "services", Name: "default/" + kubernetesName})
	if service == nil || bytes.Contains(service.Value, []byte(`"targetPort":`+port+`}`)) {
		return nil
	}
	return p.send(ctx, step.Request{
		User: step.APIServer, Method: "PATCH", Path: "/api/v1/namespaces/default/services/" + kubernetesName, ContentType: "application/json-patch+json",
		Body: []byte(`[{"op":"replace","path":"/spec/ports/0/targetPort","value":` + port + `}]`),
	})
}

// replace stores an object in the place of one that says something else. What an
// earlier server left is deleted: it spoke of another address.
func (p *Plane) replace(ctx context.Context, old *storage.Record, c step.Creation) error {
	switch {
	case old == nil:
	case bytes.Contains(old.Value, []byte(c.Content)):
		return nil
	default:
		if _, err := p.store.Commit(ctx, storage.Write{Key: c.Key, Expect: old.Modified}); err != nil {
			return fmt.Errorf("controlplane: replace %s: %w", c.Key, err)
		}
	}
	if _, err := p.store.Commit(ctx, c.Write()); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("controlplane: create %s: %w", c.Key, err)
	}
	return nil
}

// familyOf names the family of an address as the API does.
func familyOf(ip netip.Addr) string {
	if ip.Is6() {
		return "IPv6"
	}
	return "IPv4"
}

// reachable returns the address by which a listener is reached: its own, or that
// of an interface if it listens on all of them.
func reachable(listening *net.TCPAddr) netip.Addr {
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
