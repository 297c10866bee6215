// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

var errNoKeys = errors.New("no keys")

func rootsForTests() ([]byte, error) { return []byte("roots"), nil }

func namespaceObject(name string, created time.Time, phase corev1.NamespacePhase) *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(created)},
		Status:     corev1.NamespaceStatus{Phase: phase},
	}
}

func TestControllersIndexEqualsRebuild(t *testing.T) {
	t.Parallel()
	tokens := NewTokens(Options{Keys: func() (*Keys, error) { return nil, errNoKeys }, Issuers: []string{"x"}})
	for name, fresh := range map[string]func() step.Controller{
		"default accounts": func() step.Controller { return NewDefaultAccounts() },
		"root CAs":         func() step.Controller { return NewRootCAs(rootsForTests) },
		"token secrets":    func() step.Controller { return NewTokenSecrets(tokens, rootsForTests) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(1, 2))
			store := storage.NewMemory(storage.MemoryOptions{})
			follows := fresh()
			follows.Reset(store.Latest())
			cursor, err := store.Watch(storage.Range{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer cursor.Close()
			begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for range 300 {
				change(t, chance, store, begin)
				batch, err := cursor.Poll()
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range batch.Events {
					steptest.Observe(follows, e)
				}
				view := store.Latest()
				anew := fresh()
				anew.Reset(view)
				now := begin.Add(time.Hour)
				got := follows.Sync(view, now)
				if diff := cmp.Diff(anew.Sync(view, now), got); diff != "" {
					t.Fatalf("requests (-anew +following):\n%s", diff)
				}
				for _, r := range got { // nothing is done, so that it stays due
					follows.Done(r, errNoKeys)
				}
			}
		})
	}
}

// change does something to the objects that the controllers look at.
func change(t *testing.T, chance *rand.Rand, store storage.Store, begin time.Time) {
	ns := fmt.Sprintf("n%d", chance.IntN(3))
	in := func(bucket, name string) storage.Key { return storage.Key{Bucket: bucket, Name: ns + "/" + name} }
	put := func(key storage.Key, o any) {
		if view := store.Latest(); o != nil || view.Get(key) != nil {
			steptest.Put(t, store, key, o)
		}
	}
	switch chance.IntN(8) {
	case 0:
		put(storage.Key{Bucket: namespaces, Name: ns}, namespaceObject(ns, begin, corev1.NamespaceActive))
	case 1:
		put(storage.Key{Bucket: namespaces, Name: ns}, namespaceObject(ns, begin, corev1.NamespaceTerminating))
	case 2:
		put(storage.Key{Bucket: namespaces, Name: ns}, nil)
	case 3:
		put(in(accounts, DefaultName), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: DefaultName, UID: types.UID(fmt.Sprint(chance.IntN(2)))}})
	case 4:
		put(in(accounts, DefaultName), nil)
	case 5:
		put(in("configmaps", RootCAName), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: RootCAName}, Data: map[string]string{"ca.crt": []string{"roots", "others"}[chance.IntN(2)]},
		})
	case 6:
		put(in("configmaps", RootCAName), nil)
	case 7:
		kind := []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeOpaque}[chance.IntN(2)]
		put(in("secrets", "s"), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s", Annotations: map[string]string{corev1.ServiceAccountNameKey: DefaultName, corev1.ServiceAccountUIDKey: "0"}},
			Type:       kind, Data: map[string][]byte{"token": []byte("t")},
		})
	}
}

func TestControllersLeaveNewNamespacesToTheirCreation(t *testing.T) {
	t.Parallel()
	store, begin := storage.NewMemory(storage.MemoryOptions{}), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	steptest.Put(t, store, storage.Key{Bucket: namespaces, Name: "n"}, namespaceObject("n", begin, corev1.NamespaceActive))
	k := NewDefaultAccounts()
	k.Reset(store.Latest())
	if got := k.Sync(store.Latest(), begin.Add(time.Second)); len(got) != 0 || !k.Wake().Equal(begin.Add(Settling)) {
		t.Errorf("at first: %v, to be woken at %v", got, k.Wake())
	}
	got := k.Sync(store.Latest(), begin.Add(Settling))
	want, err := k.Request("n")
	if err != nil || len(got) != 1 || !cmp.Equal(want, got[0]) || !k.Wake().IsZero() {
		t.Errorf("later: %v, %v", got, err)
	}
}

func TestPodsWaitForTheDefaultAccountOfANewNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := storage.NewMemory(storage.MemoryOptions{})
		steptest.Put(t, store, storage.Key{Bucket: namespaces, Name: "n"}, namespaceObject("n", time.Now(), corev1.NamespaceActive))
		a := Admission{Store: store, Suffix: func(int) string { return "xxxxx" }, Patience: Settling}
		admit := func(account string) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{}}}}
			return a.Admit(context.Background(), &resource.AdmissionRequest{
				Request: &resource.Request{Namespace: "n", Name: "p", Resource: &resource.Resource{Names: resource.Names{Plural: "pods"}}}, Operation: resource.Create, Object: pod,
			})
		}
		begin := time.Now()
		if err := admit("other"); err == nil || time.Since(begin) != 0 {
			t.Errorf("another account: %v after %v", err, time.Since(begin))
		}
		done := make(chan error, 1)
		go func() { done <- admit("") }()
		time.Sleep(time.Second)
		steptest.Put(t, store, storage.Key{Bucket: accounts, Name: "n/other"}, &corev1.ServiceAccount{})
		synctest.Wait()
		steptest.Put(t, store, storage.Key{Bucket: accounts, Name: "n/default"}, &corev1.ServiceAccount{})
		if err := <-done; err != nil || time.Since(begin) != time.Second {
			t.Errorf("the default account: %v after %v", err, time.Since(begin))
		}
		steptest.Put(t, store, storage.Key{Bucket: accounts, Name: "n/default"}, nil)
		if err := admit(""); err == nil || time.Since(begin) != Settling {
			t.Errorf("a default account that does not come: %v after %v", err, time.Since(begin))
		}
	})
}
