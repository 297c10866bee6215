// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/storage"
)

// put stores objects by their buckets and names.
func put(t *testing.T, objects map[string]any) storage.Store {
	t.Helper()
	store := storage.NewMemory(storage.MemoryOptions{})
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, object := range objects {
		bucket, name, _ := strings.Cut(name, " ")
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: bucket, Name: name}, Value: text, Expect: storage.Absent}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func hook() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hook"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "web", Port: 443}}},
	}
}

// slice has endpoints of the Service hook at the port 9443.
func slice(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(9443))}},
	}
}

func node(labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
}

// TestServicesNeverDialSimulatedPods has a dialer of its own: a real one would reach a network
// that is not ours.
func TestServicesNeverDialSimulatedPods(t *testing.T) {
	t.Parallel()
	pod := func(name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name}
	}
	objects := map[string]any{
		"services default/hook": hook(),
		"nodes steer-node":      node(nil),
		"nodes labelled":        node(map[string]string{SimulatedLabel: "true"}),
		"nodes real":            node(map[string]string{SimulatedLabel: "false"}),
		"pods default/p":        &corev1.Pod{Spec: corev1.PodSpec{NodeName: "labelled"}},
		"pods default/q":        &corev1.Pod{Spec: corev1.PodSpec{NodeName: "real"}},
	}
	byNode := discoveryv1.Endpoint{Addresses: []string{"10.244.0.2"}, NodeName: new("steer-node"), TargetRef: pod("gone")}
	byLabel := discoveryv1.Endpoint{Addresses: []string{"10.245.0.3"}, NodeName: new("labelled")}
	ofHost := discoveryv1.Endpoint{Addresses: []string{"172.18.0.2"}, TargetRef: pod("p")}
	real1 := discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}, NodeName: new("real"), TargetRef: pod("q")}
	real2 := discoveryv1.Endpoint{Addresses: []string{"192.0.2.2"}}
	plain := func(addresses ...corev1.EndpointAddress) *corev1.Endpoints { // what exists where nothing mirrors them
		return &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // as above
			Addresses: addresses, Ports: []corev1.EndpointPort{{Name: "web", Port: 9443}},
		}}}
	}
	for name, test := range map[string]struct {
		bucket    string
		endpoints any
		want      string // the address that is dialled
	}{
		"by the name of the node":  {"discovery.k8s.io/endpointslices default/hook-1", slice(byNode), ""},
		"by the label of the node": {"discovery.k8s.io/endpointslices default/hook-1", slice(byLabel, byNode), ""},
		"by the Pod":               {"discovery.k8s.io/endpointslices default/hook-1", slice(ofHost), ""},
		"beside another":           {"discovery.k8s.io/endpointslices default/hook-1", slice(byNode, real1, ofHost), "192.0.2.1:9443"},
		"of no Pod":                {"discovery.k8s.io/endpointslices default/hook-1", slice(real2), "192.0.2.2:9443"},
		"of Endpoints":             {"endpoints default/hook", plain(corev1.EndpointAddress{IP: "10.244.0.2", NodeName: new("steer-node")}), ""},
		"of other Endpoints":       {"endpoints default/hook", plain(corev1.EndpointAddress{IP: "192.0.2.3"}), "192.0.2.3:9443"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := map[string]any{test.bucket: test.endpoints}
			for name, object := range objects {
				all[name] = object
			}
			var dialled []string
			table, err := serviceaddress.New(false)
			if err != nil {
				t.Fatal(err)
			}
			s := &Services{Store: put(t, all), Table: table, dial: func(_ context.Context, _, address string) (net.Conn, error) {
				dialled = append(dialled, address)
				return nil, net.ErrClosed
			}}
			_, err = s.Dial(t.Context(), "tcp", Service{Namespace: "default", Name: "hook"})
			if got := strings.Join(dialled, " "); got != test.want {
				t.Errorf("dialled %q, want %q", got, test.want)
			}
			var simulated *SimulatedError
			if errors.As(err, &simulated) != (test.want == "") {
				t.Errorf("error: %v", err)
			}
			if simulated != nil && !strings.Contains(err.Error(), "--service default/hook=HOST:PORT") {
				t.Errorf("the error does not say what to do: %v", err)
			}
		})
	}
}

// TestDialersRefuseTheNetworkOfSimulatedPods asks what a dialer asks before it connects.
func TestDialersRefuseTheNetworkOfSimulatedPods(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		simulates bool
		address   string
		refused   bool
	}{
		{true, "10.244.0.2:443", true},
		{true, "10.244.255.255:443", true},
		{true, "[::ffff:10.244.0.2]:443", true},
		{true, "10.243.0.2:443", false},
		{true, "127.0.0.1:443", false},
		{false, "10.244.0.2:443", false},
	} {
		control := (&Services{Simulates: test.simulates}).Dialer().ControlContext
		err := control(t.Context(), "tcp", test.address, nil)
		if simulated := new(SimulatedError); errors.As(err, &simulated) != test.refused || (err != nil) != test.refused {
			t.Errorf("%s, Pods simulated: %t: %v", test.address, test.simulates, err)
		}
	}
}
