// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/service/ranges"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// byHand is who holds an address that an IPAddress keeps from all Services.
const byHand = "an IPAddress"

// addressesCommitted follows what is written of IPAddresses by others.
func (a *ServiceAllocator) addressesCommitted(_ context.Context, change resource.Change) error {
	obj, ok := change.Object.(*networkingv1.IPAddress)
	if !ok {
		return nil
	}
	a.note(func() {
		if !change.Deleted {
			a.takeAddress(obj)
		} else if ip, err := netip.ParseAddr(obj.Name); err == nil && a.used[ip].key == byHand {
			delete(a.used, ip)
		}
	})
	return nil
}

// takeAddress keeps the address of an object from all Services, unless it is there
// because a Service has it.
func (a *ServiceAllocator) takeAddress(obj *networkingv1.IPAddress) {
	ip, err := netip.ParseAddr(obj.Name)
	if err == nil && a.used[ip].key == "" && obj.Labels[networkingv1.LabelManagedBy] != ranges.Manager {
		a.used[ip] = holder{key: byHand}
	}
}

// publish sees to it that there are the IPAddresses of a Service as it is now, and
// not those that it had alone before. They are written past the server, as no client
// has asked for them.
func (a *ServiceAllocator) publish(ctx context.Context, now, before *corev1.Service) error {
	view := a.store.Latest()
	has := map[string]bool{}
	for _, ip := range addressesOf(now) {
		has[ip.String()] = true
		c := a.addressObject(ip, now)
		rec := view.Get(c.Key)
		if rec != nil && bytes.Contains(rec.Value, []byte(c.Content)) {
			continue
		}
		if rec != nil { // of a Service that has gone without it
			if err := a.commit(ctx, storage.Write{Key: rec.Key, Expect: rec.Modified}); err != nil {
				return err
			}
		}
		if err := a.commit(ctx, c.Write()); err != nil {
			return err
		}
	}
	for _, ip := range addressesOf(before) {
		if has[ip.String()] {
			continue
		}
		if rec := view.Get(storage.Key{Bucket: ranges.AddressBucket, Name: ip.String()}); rec != nil {
			if err := a.commit(ctx, storage.Write{Key: rec.Key, Expect: rec.Modified}); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpublish deletes the IPAddress of a Service that is gone, by its key; one of another
// Service is kept.
func (a *ServiceAllocator) unpublish(ctx context.Context, ip netip.Addr, key string) error {
	view := a.store.Latest()
	namespace, name := step.SplitName(key)
	rec := view.Get(storage.Key{Bucket: ranges.AddressBucket, Name: ip.String()})
	if rec == nil || !bytes.Contains(rec.Value, []byte(parentOf(namespace, name))) {
		return nil
	}
	return a.commit(ctx, storage.Write{Key: rec.Key, Expect: rec.Modified})
}

// parentOf is the spec of the IPAddress of a Service, in JSON.
func parentOf(namespace, name string) string {
	return `"spec":{"parentRef":{"resource":"services","namespace":"` + namespace + `","name":"` + name + `"}}`
}

// commit writes unless another write was first.
func (a *ServiceAllocator) commit(ctx context.Context, w storage.Write) error {
	if _, err := a.store.Commit(ctx, w); err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("write address %s: %w", w.Key.Name, err)
	}
	return nil
}

// addressObject is the IPAddress of a Service.
func (a *ServiceAllocator) addressObject(ip netip.Addr, s *corev1.Service) step.Creation {
	family := corev1.IPv4Protocol
	if ip.Is6() {
		family = corev1.IPv6Protocol
	}
	return step.Creation{
		Key: storage.Key{Bucket: ranges.AddressBucket, Name: ip.String()}, APIVersion: "networking.k8s.io/v1", Kind: "IPAddress", Name: ip.String(), UID: a.newID(), At: time.Now(),
		Labels:  `{"` + networkingv1.LabelIPAddressFamily + `":"` + string(family) + `","` + networkingv1.LabelManagedBy + `":"` + ranges.Manager + `"}`,
		Manager: "kube-apiserver",
		Fields: `{"f:metadata":{"f:labels":{".":{},"f:ipaddress.kubernetes.io/ip-family":{},"f:ipaddress.kubernetes.io/managed-by":{}}},` +
			`"f:spec":{"f:parentRef":{".":{},"f:name":{},"f:namespace":{},"f:resource":{}}}}`,
		Content: parentOf(s.Namespace, s.Name),
	}
}

// addressesOf are those of a Service; none of nil.
func addressesOf(s *corev1.Service) []netip.Addr {
	if s == nil {
		return nil
	}
	var out []netip.Addr
	for _, text := range s.Spec.ClusterIPs {
		if ip, err := netip.ParseAddr(text); err == nil {
			out = append(out, ip)
		}
	}
	return out
}
