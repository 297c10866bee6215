// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"cmp"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/storage"
)

// How the nodes are known whose Pods are simulated: one by its name, the others by a label with
// the value "true".
const (
	SimulatedNode  = "steer-node"
	SimulatedLabel = "steer.dev/simulated"
)

// Simulated reports whether the Pods of a node are simulated: nothing listens at their addresses,
// and on the network of the machine they are those of strangers.
func Simulated(node string, labels map[string]string) bool {
	return node == SimulatedNode || labels[SimulatedLabel] == "true"
}

// SimulatedPods is the network of the addresses that simulated Pods are given.
func SimulatedPods() netip.Prefix { return netip.MustParsePrefix("10.244.0.0/16") }

// SimulatedError is the error of a connection to simulated Pods, which is never made.
type SimulatedError struct {
	// Service whose endpoints are simulated Pods; empty for an Address that was given without one.
	Service Service
	Address string
	// Advice says how the Service is given an address. Empty: by an option of Go programs.
	Advice string
}

func (e *SimulatedError) Error() string {
	if e.Service.Name == "" {
		return fmt.Sprintf("%s is an address of simulated Pods, which run nothing: run the server on this machine, and name the address at which it listens", e.Address)
	}
	advice := cmp.Or(e.Advice, "Services of webhookclient.Options has its address")
	return fmt.Sprintf("the endpoints of the service %s/%s are simulated Pods, which run nothing: run the server on this machine; %s", e.Service.Namespace, e.Service.Name, advice)
}

// nodes answers which nodes are simulated, by what is stored. It reads each node once.
type nodes struct {
	view  storage.View
	known map[string]bool
}

func (n *nodes) simulated(name string) (bool, error) {
	if simulated, ok := n.known[name]; ok || name == "" {
		return simulated, nil
	}
	node := &corev1.Node{}
	if _, err := load(n.view, storage.Key{Bucket: "nodes", Name: name}, node); err != nil {
		return false, err
	}
	n.known[name] = Simulated(name, node.Labels)
	return n.known[name], nil
}

// endpoint reports whether an endpoint is a simulated Pod: one on a node that is simulated, which
// the endpoint names, or the Pod that it refers to.
func (n *nodes) endpoint(namespace string, on *string, of *corev1.ObjectReference) (bool, error) {
	if on != nil {
		return n.simulated(*on)
	}
	if of == nil || of.Kind != "Pod" {
		return false, nil
	}
	if of.Namespace != "" {
		namespace = of.Namespace
	}
	pod := &corev1.Pod{}
	if _, err := load(n.view, storage.Key{Bucket: "pods", Name: namespace + "/" + of.Name}, pod); err != nil {
		return false, err
	}
	return n.simulated(pod.Spec.NodeName)
}
