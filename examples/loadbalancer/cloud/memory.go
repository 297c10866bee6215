// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Memory is a cloud in memory. Set its fields before its first call; the zero value is a
// cloud without delays and limits. Its methods are safe for concurrent use.
type Memory struct {
	// Latency of every call.
	Latency time.Duration
	// Lag is how far reads are behind writes.
	Lag time.Duration
	// Provisioning is the time from a creation until there is an address.
	Provisioning time.Duration
	// Quota is how many balancers there may be; 0 means any number.
	Quota int

	mu        sync.Mutex
	balancers map[string][]version // the newest last
	addresses int
	throttled time.Time
	failing   error
	calls     map[string]int
}

// version is a balancer from a time on; nil after its deletion.
type version struct {
	from     time.Time
	balancer *Balancer
}

// Throttle refuses all calls for some time.
func (m *Memory) Throttle(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.throttled = time.Now().Add(d)
}

// Fail makes all calls fail; nil ends it.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = err
}

// SetQuota changes the quota.
func (m *Memory) SetQuota(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Quota = n
}

// Calls returns how often a method was called that was not refused.
func (m *Memory) Calls(method string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[method]
}

// Balancers returns what there is now, by name.
func (m *Memory) Balancers() map[string]Balancer {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]Balancer{}
	for name := range m.balancers {
		if b := m.at(name, time.Now()); b != nil {
			out[name] = *b
		}
	}
	return out
}

// Get implements API.
func (m *Memory) Get(ctx context.Context, name string) (Balancer, error) {
	if err := m.call(ctx, "Get"); err != nil {
		return Balancer{}, err
	}
	defer m.mu.Unlock()
	if b := m.at(name, time.Now().Add(-m.Lag)); b != nil {
		return *b, nil
	}
	return Balancer{}, fmt.Errorf("%w: %s", ErrNotFound, name)
}

// Create implements API.
func (m *Memory) Create(ctx context.Context, name string, s Spec) error {
	if err := m.call(ctx, "Create"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	now := time.Now()
	if err := validate(s); err != nil {
		return err
	}
	if m.at(name, now) != nil {
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	there := 0
	for other := range m.balancers {
		if m.at(other, now) != nil {
			there++
		}
	}
	if m.Quota > 0 && there >= m.Quota {
		return fmt.Errorf("%w: %d", ErrQuota, m.Quota)
	}
	m.addresses++
	ready := Balancer{Name: name, Spec: s, Address: fmt.Sprintf("192.0.2.%d", m.addresses)}
	waiting := ready
	waiting.Address = ""
	if m.balancers == nil {
		m.balancers = map[string][]version{}
	}
	m.balancers[name] = append(m.balancers[name], version{now, &waiting}, version{now.Add(m.Provisioning), &ready})
	return nil
}

// Update implements API.
func (m *Memory) Update(ctx context.Context, name string, s Spec) error {
	if err := m.call(ctx, "Update"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := validate(s); err != nil {
		return err
	}
	now := time.Now()
	if m.at(name, now) == nil {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	// Also the version that has yet to come changes.
	all := m.balancers[name]
	current := *m.at(name, now)
	current.Spec = s
	var later []version
	for len(all) > 0 && all[len(all)-1].from.After(now) {
		next := all[len(all)-1]
		changed := *next.balancer
		changed.Spec = s
		later, all = append(later, version{next.from, &changed}), all[:len(all)-1]
	}
	m.balancers[name] = append(append(all, version{now, &current}), later...)
	return nil
}

// Delete implements API.
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := m.call(ctx, "Delete"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	now := time.Now()
	if m.at(name, now) == nil {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	all := m.balancers[name]
	for len(all) > 0 && all[len(all)-1].from.After(now) {
		all = all[:len(all)-1]
	}
	m.balancers[name] = append(all, version{now, nil})
	return nil
}

// call takes the time of a call and, unless it fails, the lock.
func (m *Memory) call(ctx context.Context, method string) error {
	select {
	case <-time.After(m.Latency):
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	if wait := time.Until(m.throttled); wait > 0 {
		m.mu.Unlock()
		return &ThrottledError{After: wait}
	}
	if m.failing != nil {
		defer m.mu.Unlock()
		return m.failing
	}
	if m.calls == nil {
		m.calls = map[string]int{}
	}
	m.calls[method]++
	return nil
}

// at returns the balancer as it was at a time.
func (m *Memory) at(name string, when time.Time) *Balancer {
	all := m.balancers[name]
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].from.After(when) {
			return all[i].balancer
		}
	}
	return nil
}

func validate(s Spec) error {
	for _, p := range s.Ports {
		if p.Protocol != "TCP" && p.Protocol != "UDP" {
			return fmt.Errorf("%w: protocol %s of port %d is not offered", ErrInvalid, p.Protocol, p.Port)
		}
	}
	return nil
}

var _ API = (*Memory)(nil)
