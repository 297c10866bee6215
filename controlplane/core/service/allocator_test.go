// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/service/ranges"
	"github.com/steer-dev/steer/storage"
)

func admit(a *ServiceAllocator, s, old *corev1.Service, dryRun bool) error {
	defaultService(s)
	r := &resource.AdmissionRequest{Request: &resource.Request{DryRun: dryRun}, Operation: resource.Create, Object: s}
	if old != nil {
		r.Operation, r.Old = resource.Update, old
	}
	return a.Admit(context.Background(), r)
}

func oneID() types.UID { return "1" }

func service(name string, t corev1.ServiceType) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: t, Ports: []corev1.ServicePort{{Port: 80}}}}
	s.Namespace, s.Name = "default", name
	return s
}

func TestAllocatorGivesDistinctAddresses(t *testing.T) {
	t.Parallel()
	a := NewServiceAllocator(storage.NewMemory(storage.MemoryOptions{}), []netip.Prefix{netip.MustParsePrefix("10.0.0.0/29")}, oneID)
	first, second := service("a", corev1.ServiceTypeClusterIP), service("b", corev1.ServiceTypeNodePort)
	for _, s := range []*corev1.Service{first, second} {
		if err := admit(a, s, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"10.0.0.2", "10.0.0.3"}, []string{first.Spec.ClusterIP, second.Spec.ClusterIP}); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if first.Spec.Ports[0].NodePort != 0 || second.Spec.Ports[0].NodePort != 30086 {
		t.Errorf("node ports %d and %d, want none and the first above the static range", first.Spec.Ports[0].NodePort, second.Spec.Ports[0].NodePort)
	}

	taken := service("c", corev1.ServiceTypeClusterIP)
	taken.Spec.ClusterIP = "10.0.0.2"
	if err := admit(a, taken, nil, false); err == nil || !strings.Contains(err.Error(), "provided IP is already allocated") {
		t.Errorf("error %v, want one about the address in use", err)
	}
	outside := service("d", corev1.ServiceTypeClusterIP)
	outside.Spec.ClusterIP = "192.0.2.1"
	if err := admit(a, outside, nil, false); err == nil || !strings.Contains(err.Error(), "does not match the current range") {
		t.Errorf("error %v, want one about the range", err)
	}

	// An update keeps what it does not mention, a deletion frees it.
	again := service("b", corev1.ServiceTypeNodePort)
	if err := admit(a, again, second, false); err != nil {
		t.Fatal(err)
	}
	if again.Spec.ClusterIP != second.Spec.ClusterIP || again.Spec.Ports[0].NodePort != second.Spec.Ports[0].NodePort {
		t.Errorf("after the update %s and %d", again.Spec.ClusterIP, again.Spec.Ports[0].NodePort)
	}
	if err := a.committed(context.Background(), resource.Change{Object: first, Deleted: true}); err != nil {
		t.Fatal(err)
	}
	if err := admit(a, taken, nil, false); err != nil {
		t.Errorf("error %v, want none after the deletion", err)
	}
}

func TestAllocatorKeepsNothingForDryRuns(t *testing.T) {
	t.Parallel()
	a := NewServiceAllocator(storage.NewMemory(storage.MemoryOptions{}), nil, oneID)
	for range 2 {
		s := service("a", corev1.ServiceTypeClusterIP)
		if err := admit(a, s, nil, true); err != nil || s.Spec.ClusterIP != "10.0.0.0" { // which no Service can have
			t.Errorf("address %q: %v", s.Spec.ClusterIP, err)
		}
	}
	s := service("a", corev1.ServiceTypeClusterIP)
	if err := admit(a, s, nil, false); err != nil || s.Spec.ClusterIP != "10.0.0.17" {
		t.Errorf("the first address is %q: %v", s.Spec.ClusterIP, err)
	}
}

func TestAllocatorGivesHeadlessAndExternalServicesNoAddress(t *testing.T) {
	t.Parallel()
	a := NewServiceAllocator(storage.NewMemory(storage.MemoryOptions{}), nil, oneID)
	headless := service("a", corev1.ServiceTypeClusterIP)
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	external := service("b", corev1.ServiceTypeExternalName)
	for _, s := range []*corev1.Service{headless, external} {
		if err := admit(a, s, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"None"}, headless.Spec.ClusterIPs); diff != "" || external.Spec.ClusterIP != "" || external.Spec.IPFamilies != nil {
		t.Errorf("headless %v, external %q", headless.Spec.ClusterIPs, external.Spec.ClusterIP)
	}
}

func TestAllocatorReservesTheBeginningOfARange(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"10.0.0.0/27": {"10.0.0.17", "10.0.0.30", "10.0.0.2", "10.0.0.16"}, // the last of those above, then those below but the API server's
		"10.0.0.0/28": {"10.0.0.2", "10.0.0.14"},                           // all
	} {
		a := NewServiceAllocator(storage.NewMemory(storage.MemoryOptions{}), []netip.Prefix{netip.MustParsePrefix(text)}, oneID)
		var got []string
		for i := 0; ; i++ {
			s := service(fmt.Sprint(i), corev1.ServiceTypeClusterIP)
			if err := admit(a, s, nil, false); err != nil {
				break
			}
			got = append(got, s.Spec.ClusterIP)
		}
		if diff := cmp.Diff(want, ends(got)); diff != "" {
			t.Errorf("%s: the ends of what is given away one by one (-want +got):\n%s", text, diff)
		}
	}
	for bits, want := range map[int]string{8: "10.0.1.1", 12: "10.0.1.1", 16: "10.0.1.1", 20: "10.0.1.1", 22: "10.0.0.65", 24: "10.0.0.17", 29: "10.0.0.1"} {
		if got := chosenFrom(netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), bits)); got.String() != want {
			t.Errorf("of /%d the server chooses from %s on, want %s", bits, got, want)
		}
	}
}

// ends are the first and last of each row of addresses that follow one another.
func ends(ips []string) []string {
	var out []string
	for i, ip := range ips {
		at := netip.MustParseAddr(ip)
		if i == 0 || at.Prev().String() != ips[i-1] {
			out = append(out, ip)
		}
		if i == len(ips)-1 || at.Next().String() != ips[i+1] {
			out = append(out, ip)
		}
	}
	return out
}

func TestAllocatorRefusesWhenTheRangeIsFull(t *testing.T) {
	t.Parallel()
	a := NewServiceAllocator(storage.NewMemory(storage.MemoryOptions{}), []netip.Prefix{netip.MustParsePrefix("10.0.0.0/30")}, oneID)
	if err := admit(a, service("a", corev1.ServiceTypeClusterIP), nil, false); err != nil {
		t.Fatal(err)
	}
	if err := admit(a, service("b", corev1.ServiceTypeClusterIP), nil, false); err == nil || !strings.Contains(err.Error(), "range is full") {
		t.Errorf("error %v, want a full range", err)
	}
}

func TestServicesWithGeneratedNamesDoNotShareAddresses(t *testing.T) {
	t.Parallel()
	a := NewServiceAllocator(storage.NewMemory(storage.MemoryOptions{}), nil, oneID)
	first, second := service("", corev1.ServiceTypeNodePort), service("", corev1.ServiceTypeNodePort)
	for _, s := range []*corev1.Service{first, second} {
		if err := admit(a, s, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	if first.Spec.ClusterIP == second.Spec.ClusterIP || first.Spec.Ports[0].NodePort == second.Spec.Ports[0].NodePort {
		t.Errorf("both have %s and %d", first.Spec.ClusterIP, first.Spec.Ports[0].NodePort)
	}
}

// slowStore is a store whose state is read once release is closed.
type slowStore struct {
	AllocatorStore
	release chan struct{}
}

func (s slowStore) Latest() storage.View {
	view := s.AllocatorStore.Latest()
	<-s.release
	return view
}

// TestAllocatorHoldsNoLockWhileTheStoreIsRead: what is committed meanwhile is noted.
func TestAllocatorHoldsNoLockWhileTheStoreIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := storage.NewMemory(storage.MemoryOptions{})
		address := &networkingv1.IPAddress{TypeMeta: metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress"}}
		address.Name = "10.0.0.5"
		value, err := json.Marshal(address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: ranges.AddressBucket, Name: "10.0.0.5"}, Value: value}); err != nil {
			t.Fatal(err)
		}
		slow := slowStore{store, make(chan struct{})}
		a := NewServiceAllocator(slow, nil, oneID)
		s := service("a", corev1.ServiceTypeClusterIP)
		s.Spec.ClusterIP = "10.0.0.5"
		admitted := make(chan error, 1)
		go func() { admitted <- admit(a, s, nil, false) }()
		synctest.Wait()
		if !a.mu.TryLock() {
			t.Fatal("the lock is held")
		}
		a.mu.Unlock()
		// The state that is being read has the IPAddress; now it is deleted.
		if _, err := store.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: ranges.AddressBucket, Name: "10.0.0.5"}, Expect: storage.AnyRevision}); err != nil {
			t.Fatal(err)
		}
		if err := a.addressesCommitted(t.Context(), resource.Change{Object: address, Deleted: true}); err != nil {
			t.Fatal(err)
		}
		close(slow.release)
		if err := <-admitted; err != nil {
			t.Errorf("the address of the deleted IPAddress is not free: %v", err)
		}
	})
}
