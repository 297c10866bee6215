// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

func TestServiceLeadsToServersWhoseLeasesAreRenewed(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	var deleted []string
	s := &Server{
		Store: store, NewUID: func() types.UID { return "uid" }, Service: Service{Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}},
		Send: func(_ context.Context, r step.Request) error {
			deleted = append(deleted, r.Method+" "+r.Path)
			return nil
		},
	}
	s.listening.Store(&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 6443})
	renewals := 0
	write := func(i int, renew bool) {
		name := fmt.Sprintf("apiserver-%d", i)
		if renew {
			renewals++
		}
		value := fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"kube-system","annotations":{"steer.dev/address":"192.0.2.%d:6443"}},"spec":{"renewTime":"%d"}}`, name, i, renewals)
		if i == 9 { // of a kube-apiserver
			value = `{"metadata":{"name":"apiserver-9","namespace":"kube-system","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}},` +
				`"spec":{"leaseDurationSeconds":3600,"renewTime":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}}`
		}
		w := storage.Write{Key: storage.Key{Bucket: leaseBucket, Name: "kube-system/" + name}, Value: []byte(value), Expect: storage.AnyRevision}
		if _, err := store.Commit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	lease := func(i int) { write(i, true) }
	renewed, now := map[string]renewal{}, time.Now()
	look := func(after time.Duration, want ...string) {
		t.Helper()
		now = now.Add(after)
		if err := s.look(t.Context(), renewed, now); err != nil {
			t.Fatal(err)
		}
		var o corev1.Endpoints // clients read it
		if err := json.Unmarshal(store.Get(endpointsKey()).Value, &o); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range o.Subsets[0].Addresses {
			got = append(got, a.IP)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %v (-want +got)\n%s", after, diff)
		}
	}
	lease(9)
	look(0, "192.0.2.1")
	lease(3)
	lease(2)
	look(time.Second, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	lease(2)
	look(renewEvery, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	lease(2)
	look(missedAfter-renewEvery, "192.0.2.1", "192.0.2.2")
	lease(3)
	look(time.Second, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	write(3, false) // by a client that sets a label
	look(missedAfter, "192.0.2.1")
	if len(deleted) > 0 {
		t.Errorf("requests %v", deleted)
	}
	look(leaseDuration, "192.0.2.1")
	if len(deleted) != 3 {
		t.Errorf("requests %v, want the deletion of three leases", deleted)
	}
}

// TestLeasesOfOtherAPIServersAreDeletedOnceTheyHaveExpired reads Leases as kube-apiserver writes them.
func TestLeasesOfOtherAPIServersAreDeletedOnceTheyHaveExpired(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const label = `"labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}`
	for _, test := range []struct {
		name, metadata, spec string
		want                 bool
	}{
		{"renewed in time", label, `"leaseDurationSeconds":3600,"renewTime":"2026-01-01T11:30:00.000000Z"`, false},
		{"not renewed", label, `"leaseDurationSeconds":3600,"renewTime":"2026-01-01T10:59:59.000000Z"`, true},
		{"of a short duration", label, `"leaseDurationSeconds":10,"renewTime":"2026-01-01T11:59:49.000000Z"`, true},
		{"never renewed", label, `"leaseDurationSeconds":3600`, true},
		{"without a duration", label, `"renewTime":"2026-01-01T12:00:00.000000Z"`, true},
		{"of another component", `"labels":{"apiserver.kubernetes.io/identity":"other"}`, `"renewTime":"2026-01-01T10:00:00.000000Z"`, false},
		{"without a label", `"labels":{}`, `"renewTime":"2026-01-01T10:00:00.000000Z"`, false},
	} {
		rec := &storage.Record{Value: []byte(`{"metadata":{` + test.metadata + `},"spec":{` + test.spec + `}}`)}
		if got := identityLease(rec).expired(now); got != test.want {
			t.Errorf("%s: expired is %t, want %t", test.name, got, test.want)
		}
	}
}

// TestTheOnlyServerOfAStoreHasALease holds that it is renewed before it expires and no more often,
// tried again soon where it is refused, and that those of earlier starts go.
func TestTheOnlyServerOfAStoreHasALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := storage.NewMemory(storage.MemoryOptions{})
		for name, metadata := range map[string]string{
			"apiserver-old": `{"annotations":{"steer.dev/address":"192.0.2.1:1"}}`, "apiserver-other": "{}",
			"apiserver-real": `{"labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}}`,
		} {
			w := storage.Write{Key: storage.Key{Bucket: leaseBucket, Name: "kube-system/" + name}, Value: []byte(`{"metadata":` + metadata + "}")}
			if _, err := store.Commit(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		var sent []string
		began, refused := time.Now(), true
		s := &Server{Store: store, Send: func(_ context.Context, r step.Request) error {
			if refused {
				refused = false
				return errors.New("not now")
			}
			sent = append(sent, fmt.Sprintf("%v %s %s", time.Since(began), r.Method, strings.TrimPrefix(r.Path, leasesPath)))
			if r.Method == http.MethodDelete {
				_, err := store.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: leaseBucket, Name: "kube-system" + strings.TrimPrefix(r.Path, leasesPath)}, Expect: storage.AnyRevision})
				return err
			}
			return nil
		}}
		r := s.RegisterAlone(Identity{Host: "h", Address: netip.MustParseAddrPort("192.0.2.1:6443")}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx)
		}()
		time.Sleep(20 * time.Minute)
		r.Leave(ctx)
		<-done
		cancel()
		if want := []string{"10s POST ", "10s DELETE /apiserver-old", "10s DELETE /apiserver-real", "15m10s POST "}; !slices.Equal(want, sent) {
			t.Errorf("sent are %q, want %q", sent, want)
		}
	})
}

// TestServersOfAMachineHaveLeasesOfTheirOwn holds that the first has the name that kube-apiserver gives
// the host, and that others have another one, also where they do not see the first yet.
func TestServersOfAMachineHaveLeasesOfTheirOwn(t *testing.T) {
	t.Parallel()
	const usual = "apiserver-lgabes5ywnaqeagh5dny4zlzs4"
	store := storage.NewMemory(storage.MemoryOptions{})
	exists := false // by now, although the store of the server does not have it
	s := &Server{Store: store, Send: func(ctx context.Context, r step.Request) error {
		var lease struct{ Metadata struct{ Name string } }
		if err := json.Unmarshal(r.Body, &lease); err != nil {
			return err
		}
		if exists && lease.Metadata.Name == usual {
			return errors.New("it exists")
		}
		_, err := store.Commit(ctx, storage.Write{Key: storage.Key{Bucket: leaseBucket, Name: "kube-system/" + lease.Metadata.Name}, Value: r.Body, Expect: storage.AnyRevision})
		return err
	}}
	begin := func(port uint16) *Registration {
		return s.Register(Identity{Host: "node-1", Address: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port)}, slog.New(slog.DiscardHandler))
	}
	renew := func(r *Registration, want string) {
		t.Helper()
		if err := r.renew(t.Context()); err != nil || r.name != want {
			t.Errorf("the Lease of the server at %s is %q (%v), want %q", r.identity.Address, r.name, err, want)
		}
	}
	first, second := begin(1), begin(2)
	for range 2 {
		renew(first, usual)
		renew(second, second.identity.ownName())
	}
	renew(begin(1), usual) // the first again
	if _, err := store.Commit(t.Context(), storage.Write{Key: storage.Key{Bucket: leaseBucket, Name: "kube-system/" + usual}, Expect: storage.AnyRevision}); err != nil {
		t.Fatal(err)
	}
	exists = true
	third := begin(3)
	renew(third, third.identity.ownName())
}
