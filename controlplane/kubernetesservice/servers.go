// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Identity Leases are those of kube-apiserver. This server adds where it is, in an
// annotation: the leader has the Service lead to all servers whose Leases are renewed.
// [Leases] keeps all others from writing it, and from renewing in the name of a server.
const (
	leaseBucket = "coordination.k8s.io/leases"
	leasePrefix = "kube-system/apiserver-"
	leasesPath  = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	addressKey  = "steer.dev/address"
	// identityLabel tells them from other Leases.
	identityLabel, identityOfServers = "apiserver.kubernetes.io/identity", "kube-apiserver"
	// renewEvery is how often a server renews its Lease, and missedAfter when the Service no
	// longer leads to one that does not.
	renewEvery, missedAfter = 10 * time.Second, 25 * time.Second
	// renewAlone is how often the only server of a store does, which nothing follows: often
	// enough for what its Lease says, without waking a machine at rest.
	renewAlone = leaseDuration / 4
	// leaseDuration is what the Lease says. One that was not renewed for so long is deleted.
	leaseDuration = time.Hour
	// leaveWithin bounds the request that deletes the Lease of a server that ends.
	leaveWithin = 2 * time.Second
)

// Identity is that of one of several servers.
type Identity struct {
	// Host and Holder name the machine, and this start of the server.
	Host, Holder string
	// Address is where clients in the cluster reach it.
	Address netip.AddrPort
}

// name is that of the Lease: kube-apiserver's for the host.
func (i Identity) name() string {
	var text []byte
	for _, part := range []string{i.Host, identityOfServers} {
		text = append(binary.BigEndian.AppendUint16(text, uint16(len(part))), part...) // names of hosts are short
	}
	return leaseName(text)
}

// ownName is that of the Lease where another server of the machine has the first name.
func (i Identity) ownName() string { return leaseName([]byte(i.Host + " " + i.Address.String())) }

func leaseName(of []byte) string {
	hash := sha256.Sum256(of)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16]))
}

// Registration keeps the Lease of a server.
type Registration struct {
	server   *Server
	identity Identity
	log      *slog.Logger
	alone    bool            // no other server shares the store
	left     context.Context // the life of the Lease
	leave    context.CancelFunc
	renewing sync.Mutex // held while the Lease is written; guards name
	name     string     // of the Lease; empty: it has none yet
}

// Register returns the registration of a server that is not written yet.
func (s *Server) Register(i Identity, log *slog.Logger) *Registration {
	r := &Registration{server: s, identity: i, log: log}
	r.left, r.leave = context.WithCancel(context.Background())
	return r
}

// RegisterAlone is [Server.Register] for the only server of a store: the Leases of earlier starts
// at other addresses go with the first renewal, and its own stays when it leaves.
func (s *Server) RegisterAlone(i Identity, log *slog.Logger) *Registration {
	r := s.Register(i, log)
	r.alone = true
	return r
}

// Run renews the Lease until ctx ends or [Registration.Leave] is called.
func (r *Registration) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.left, cancel)()
	for ctx.Err() == nil {
		r.renewing.Lock()
		err := r.renew(ctx)
		if err == nil && r.alone {
			err = r.server.retire(ctx, r.name)
		}
		r.renewing.Unlock()
		next := renewEvery
		switch {
		case err == nil && r.alone:
			next = renewAlone
		case err != nil && ctx.Err() == nil:
			r.log.Error("the identity lease of this server is not renewed", "err", err)
		}
		wait(ctx, next)
	}
}

// renew writes the Lease once. Its name is the usual one, unless another server has that: one of the
// same machine. Of several that begin at the same time one can create it.
func (r *Registration) renew(ctx context.Context) error {
	usual, own := r.identity.name(), r.identity.ownName()
	if r.name != own && r.mayHave(usual) {
		err := r.server.renew(ctx, usual, r.identity)
		if err == nil {
			r.name = usual
		}
		if r.name == usual || r.alone {
			return err
		}
	}
	err := r.server.renew(ctx, own, r.identity)
	if err == nil {
		r.name = own
	}
	return err
}

// mayHave reports whether no other server has the Lease of a name.
func (r *Registration) mayHave(name string) bool {
	rec := r.server.Store.Get(storage.Key{Bucket: leaseBucket, Name: "kube-system/" + name})
	if rec == nil || r.alone {
		return true
	}
	address := identityLease(rec).address
	return !address.IsValid() || address == r.identity.Address
}

// Leave deletes the Lease, so that the Service leads to other servers. It waits a moment at
// most: the Lease of a server that does not renew it means the same. Where there are no others
// it stays, as that of a kube-apiserver.
func (r *Registration) Leave(ctx context.Context) {
	r.leave()
	if r.alone {
		return
	}
	r.renewing.Lock()
	defer r.renewing.Unlock()
	if r.name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	if err := r.server.delete(ctx, r.name); err != nil {
		r.log.Error("the identity lease of this server is not deleted", "err", err)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// renew writes a Lease of a server once.
func (s *Server) renew(ctx context.Context, name string, i Identity) error {
	type object = map[string]any
	lease := object{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": object{
			"name": name, "namespace": "kube-system",
			"labels":      object{identityLabel: identityOfServers, "kubernetes.io/hostname": i.Host},
			"annotations": object{addressKey: i.Address.String()},
		},
		"spec": object{
			"holderIdentity": name + "_" + i.Holder, "leaseDurationSeconds": int(leaseDuration.Seconds()),
			"renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
		},
	}
	body, err := json.Marshal(lease)
	if err != nil {
		return fmt.Errorf("kubernetesservice: encode the lease: %w", err)
	}
	r := step.Request{User: step.APIServer, Method: http.MethodPost, Path: leasesPath, ContentType: step.JSON, Body: body}
	if s.Store.Get(storage.Key{Bucket: leaseBucket, Name: "kube-system/" + name}) != nil {
		r.Method, r.Path, r.ContentType = http.MethodPatch, leasesPath+"/"+name, "application/merge-patch+json"
	}
	return s.Send(ctx, r)
}

// retire deletes the Leases of all other servers like this one, and those of others that have expired.
func (s *Server) retire(ctx context.Context, own string) error {
	var errs []error
	for rec := range s.Store.Latest().Ascend(leaseBucket, leasePrefix, "") {
		lease := identityLease(rec)
		if _, name := step.SplitName(rec.Key.Name); name != own && (lease.address.IsValid() || lease.expired(time.Now())) {
			errs = append(errs, s.delete(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// delete deletes the Lease of a server.
func (s *Server) delete(ctx context.Context, name string) error {
	return s.Send(ctx, step.Request{User: step.APIServer, Method: http.MethodDelete, Path: leasesPath + "/" + name})
}

// Follow has the Service lead to the servers whose Leases are renewed, until ctx ends. The
// leader calls it. Times are those at which renewals came, by the clock of this server.
func (s *Server) Follow(ctx context.Context, log *slog.Logger) {
	renewed := map[string]renewal{}
	for ctx.Err() == nil {
		cursor, err := s.Store.Watch(storage.Range{Bucket: leaseBucket, Prefix: leasePrefix}, s.Store.Latest().Revision())
		if err != nil {
			if errors.Is(err, storage.ErrClosed) {
				return
			}
			continue // the newest revision is compacted by now
		}
		for err == nil {
			if failure := s.look(ctx, renewed, time.Now()); failure != nil && ctx.Err() == nil {
				log.Error("the endpoints of the servers are not written", "err", failure)
			}
			within, cancel := context.WithTimeout(ctx, renewEvery)
			_, err = cursor.Next(within)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				err = nil // Leases may have been missed
			}
		}
		cursor.Close()
	}
}

// Adopt has the Service lead to all servers that have Leases, from the next change of its
// endpoints on: a new leader does not know yet which are renewed.
func (s *Server) Adopt() {
	var servers []netip.AddrPort
	for rec := range s.Store.Latest().Ascend(leaseBucket, leasePrefix, "") {
		if address := identityLease(rec).address; address.IsValid() {
			servers = append(servers, address)
		}
	}
	servers = s.withOwn(servers)
	s.serving.Store(&servers)
}

// renewal is when what a server wrote last into its Lease was first seen.
type renewal struct {
	identified
	at time.Time
}

// look brings the endpoints in line with the Leases, and deletes those of servers that are
// long gone: also of a kube-apiserver whose data were taken over.
func (s *Server) look(ctx context.Context, renewed map[string]renewal, now time.Time) error {
	var servers []netip.AddrPort
	var gone []string
	there := map[string]bool{}
	for rec := range s.Store.Latest().Ascend(leaseBucket, leasePrefix, "") {
		lease := identityLease(rec)
		name := rec.Key.Name
		if !lease.address.IsValid() { // not of such a server
			if lease.expired(now) {
				gone = append(gone, name)
			}
			continue
		}
		there[name] = true
		if renewed[name].identified != lease {
			renewed[name] = renewal{lease, now}
		}
		switch age := now.Sub(renewed[name].at); {
		case age < missedAfter:
			servers = append(servers, lease.address)
		case age > leaseDuration:
			gone = append(gone, name)
		}
	}
	for name := range renewed {
		if !there[name] {
			delete(renewed, name)
		}
	}
	errs := []error{s.lead(ctx, servers)}
	for _, key := range gone {
		_, name := step.SplitName(key)
		errs = append(errs, s.delete(ctx, name))
	}
	return errors.Join(errs...)
}

// lead has the Service lead to servers, and to this one in any case. It compares with what is
// stored: an earlier attempt may have failed.
func (s *Server) lead(ctx context.Context, servers []netip.AddrPort) error {
	servers = s.withOwn(servers)
	s.serving.Store(&servers)
	return s.mend(ctx)
}

// withOwn returns addresses in order, once each, with that of this server.
func (s *Server) withOwn(servers []netip.AddrPort) []netip.AddrPort {
	if at := s.listening.Load(); at != nil {
		servers = append(servers, netip.AddrPortFrom(Reachable(at), uint16(at.Port))) // a port
	}
	slices.SortFunc(servers, netip.AddrPort.Compare)
	return slices.Compact(servers)
}

// identified is what an identity Lease says of its server.
type identified struct {
	address netip.AddrPort // the zero value: it is not one of such a server
	renewed string
	seconds int32 // its duration
	labeled bool  // as that of an API server
}

// identityLease reads an identity Lease.
func identityLease(rec *storage.Record) identified {
	var lease struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			RenewTime            string `json:"renewTime"`
			LeaseDurationSeconds int32  `json:"leaseDurationSeconds"`
		} `json:"spec"`
	}
	if json.Unmarshal(rec.Value, &lease) != nil {
		return identified{}
	}
	address, _ := netip.ParseAddrPort(lease.Annotations[addressKey]) // the zero value if it is none
	return identified{address, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds, lease.Labels[identityLabel] == identityOfServers}
}

// expired reports whether the Lease of an API server that is none of these says of itself that it
// has ended, as kube-apiserver reads it: without a time or a duration it has.
func (i identified) expired(now time.Time) bool {
	if !i.labeled {
		return false
	}
	renewed, err := time.Parse(time.RFC3339Nano, i.renewed)
	return err != nil || i.seconds == 0 || now.After(renewed.Add(time.Duration(i.seconds)*time.Second))
}

// subsets are the addresses of servers for Endpoints, by their ports.
func subsets(servers []netip.AddrPort) string {
	byPort := map[uint16][]string{}
	var ports []uint16 // in the order of the servers
	for _, s := range servers {
		if byPort[s.Port()] == nil {
			ports = append(ports, s.Port())
		}
		byPort[s.Port()] = append(byPort[s.Port()], `{"ip":"`+s.Addr().String()+`"}`)
	}
	var out []string
	for _, port := range ports {
		out = append(out, `{"addresses":[`+strings.Join(byPort[port], ",")+`],"ports":[{"name":"https","port":`+strconv.Itoa(int(port))+`,"protocol":"TCP"}]}`)
	}
	return strings.Join(out, ",")
}

// sliceEndpoints are the addresses of servers for an EndpointSlice, whose endpoints are of one
// family and port: those of the first.
func sliceEndpoints(servers []netip.AddrPort, first netip.AddrPort) string {
	var out []string
	for _, s := range servers {
		if s.Port() == first.Port() && s.Addr().Is4() == first.Addr().Is4() {
			out = append(out, `{"addresses":["`+s.Addr().String()+`"],"conditions":{"ready":true}}`)
		}
	}
	return strings.Join(out, ",")
}
