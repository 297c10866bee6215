// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceaddress leads Services to processes that run outside of the cluster: the webhooks,
// conversions and API servers behind a Service, or behind one of its ports, are called at an
// address. [Table] holds the addresses, and [Table.ServeHTTP] changes them while the control plane
// runs.
package serviceaddress

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Flag is the name of the flag of commands whose values [New] reads, without dashes.
const Flag = "service"

// Path is where a control plane serves its [Table].
const Path = "/steer/services"

// defaultPort is the port of a Service that is not named.
const defaultPort = 443

// Key names a Service, or one port of it.
type Key struct {
	Namespace, Name string
	// Port of the Service. 0: all that have no address of their own.
	Port int32
}

// String returns NAMESPACE/NAME, or NAMESPACE/NAME:PORT.
func (k Key) String() string {
	if k.Port == 0 {
		return k.Namespace + "/" + k.Name
	}
	return k.Namespace + "/" + k.Name + ":" + strconv.Itoa(int(k.Port))
}

// ParseKey reads what [Key.String] writes.
func ParseKey(text string) (k Key, err error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok {
		return k, errors.New("the namespace of the Service is missing")
	}
	name, port, has := strings.Cut(name, ":")
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return k, fmt.Errorf("%q is not a name of a namespace", namespace)
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return k, fmt.Errorf("%q is not a name of a Service", name)
	}
	k = Key{Namespace: namespace, Name: name}
	if has {
		if k.Port, err = parsePort(port); err != nil {
			return Key{}, err
		}
	}
	return k, nil
}

// CheckAddress returns an error if a text is not HOST:PORT.
func CheckAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return fmt.Errorf("%q is not an address HOST:PORT", text)
	}
	_, err = parsePort(port)
	return err
}

func parsePort(text string) (int32, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port between 1 and 65535", text)
	}
	return int32(n), nil // 16 bits
}

// Parse reads NAMESPACE/NAME[:PORT]=HOST:PORT.
func Parse(text string) (k Key, address string, err error) {
	service, address, ok := strings.Cut(text, "=")
	if !ok {
		return k, "", errors.New("the address is missing")
	}
	if k, err = ParseKey(service); err != nil {
		return k, "", err
	}
	return k, address, CheckAddress(address)
}

// Table says where Services are. A nil Table knows none. It is safe for concurrent use.
type Table struct {
	changeable bool

	mu        sync.Mutex
	addresses map[Key]string
	// changes counts those of addresses, and subscribers are called after each.
	changes     uint64
	subscribers []*func()
}

// New returns a table of values NAMESPACE/NAME[:PORT]=HOST:PORT. changeable has [Table.Handler] change it.
func New(changeable bool, values ...string) (*Table, error) {
	t := &Table{changeable: changeable, addresses: map[Key]string{}}
	for _, text := range values {
		k, address, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w: write it as in guestbook-system/webhook-service=127.0.0.1:9443", text, err)
		}
		if other, ok := t.addresses[k]; ok {
			return nil, fmt.Errorf("%s is given as %s and as %s: leave one of them out", k, other, address)
		}
		t.addresses[k] = address
	}
	return t, nil
}

// Address returns where a port of a Service is: the address of that port, or that of the Service.
// Port 0 is 443.
func (t *Table) Address(k Key) (address string, ok bool) {
	if t == nil {
		return "", false
	}
	if k.Port == 0 {
		k.Port = defaultPort
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if address, ok = t.addresses[k]; !ok {
		k.Port = 0
		address, ok = t.addresses[k]
	}
	return address, ok
}

// Advice says how a Service that leads nowhere is given an address. It is empty for a nil Table,
// whose control plane has no flags.
func (t *Table) Advice(k Key) string {
	if t == nil {
		return ""
	}
	if k.Port == defaultPort {
		k.Port = 0
	}
	if t.changeable {
		return fmt.Sprintf("what runs outside of the cluster is given an address by: steer service %s=HOST:PORT", k)
	}
	return fmt.Sprintf("what runs outside of the cluster is given an address by --%s %s=HOST:PORT", Flag, k)
}

// All returns the addresses by what [Key.String] returns.
func (t *Table) All() map[string]string {
	out := map[string]string{}
	if t == nil {
		return out
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, address := range t.addresses {
		out[k.String()] = address
	}
	return out
}

// Changes counts the changes of the table.
func (t *Table) Changes() uint64 {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changes
}

// OnChange has a function called after each change; it must not block. stop ends that.
func (t *Table) OnChange(f func()) (stop func()) {
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, &f)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.subscribers = slices.DeleteFunc(t.subscribers, func(other *func()) bool { return other == &f })
	}
}

// Change gives Services addresses, all or none of them; nil takes the address of one away.
func (t *Table) Change(addresses map[string]*string) error {
	next := map[Key]*string{}
	for text, address := range addresses {
		k, err := ParseKey(text)
		if err == nil && address != nil {
			err = CheckAddress(*address)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		next[k] = address
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := maps.Clone(t.addresses)
	for k, address := range next {
		if address == nil {
			delete(t.addresses, k)
		} else {
			t.addresses[k] = *address
		}
	}
	if maps.Equal(before, t.addresses) {
		return nil
	}
	t.changes++
	for _, f := range t.subscribers {
		(*f)()
	}
	return nil
}
