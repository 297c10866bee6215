// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloud is the API of a cloud that sells load balancers, and one in memory that
// behaves as clouds do: calls take time, reads are behind writes, accounts have a quota,
// callers are throttled, and other people change things.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What calls fail with, beside errors that are worth a retry.
var (
	// ErrNotFound is the error of a balancer that is not there, or not visible yet.
	ErrNotFound = errors.New("load balancer not found")
	// ErrExists is the error of a creation under a name that is taken.
	ErrExists = errors.New("load balancer exists")
	// ErrQuota is the error of a creation beyond what the account may have.
	ErrQuota = errors.New("the quota of load balancers is used up")
	// ErrInvalid is the error of a request that can never succeed.
	ErrInvalid = errors.New("invalid load balancer")
)

// ThrottledError is the error of a caller that is too fast.
type ThrottledError struct {
	// After is how long to wait.
	After time.Duration
}

func (e *ThrottledError) Error() string { return fmt.Sprintf("throttled for %v", e.After) }

// Port is one that a balancer listens on.
type Port struct {
	Protocol string
	// Port that clients reach; NodePort to which the nodes listen.
	Port, NodePort int32
}

// Spec says what a balancer does.
type Spec struct {
	Ports []Port
	// Nodes are the addresses to which it sends.
	Nodes []string
}

// Equal compares in the order given.
func (s Spec) Equal(other Spec) bool {
	return slices.Equal(s.Ports, other.Ports) && slices.Equal(s.Nodes, other.Nodes)
}

// Balancer is a load balancer.
type Balancer struct {
	Name string
	Spec Spec
	// Address at which clients reach it; empty until there is one.
	Address string
}

// API is what a controller needs of a cloud. The caller chooses names, so that a
// creation whose answer was lost is found again.
type API interface {
	// Get returns a balancer as it was some time ago, or ErrNotFound.
	Get(ctx context.Context, name string) (Balancer, error)
	// Create makes a balancer, or returns ErrExists, ErrQuota or ErrInvalid.
	Create(ctx context.Context, name string, s Spec) error
	// Update changes a balancer, or returns ErrNotFound or ErrInvalid.
	Update(ctx context.Context, name string, s Spec) error
	// Delete removes a balancer, or returns ErrNotFound.
	Delete(ctx context.Context, name string) error
}
