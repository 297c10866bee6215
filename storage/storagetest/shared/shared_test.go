// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package shared_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest"
	"github.com/steer-dev/steer/storage/storagetest/shared"
)

func openShared(*testing.T) storage.Store {
	return shared.New(1).Open(storage.MemoryOptions{})
}

func TestStoreOnASharedDatabaseKeepsTheContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, openShared)
}

func TestStoreOnASharedDatabaseAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storagetest.Model(t, openShared, storagetest.ModelOptions{})
}

func TestStoresOnASharedDatabaseAreLinearizable(t *testing.T) {
	t.Parallel()
	db := shared.New(1)
	var stores []storage.Store
	for range 3 {
		s := db.Open(storage.MemoryOptions{})
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
	}
	storagetest.LinearizeStores(t, stores...)
}

func TestServersOfASharedDatabaseKeepTheContractOfElections(t *testing.T) {
	t.Parallel()
	storagetest.Elections(t, storagetest.Servers{
		Open: func(_ *testing.T, n int) []storage.Elector {
			db := shared.New(1)
			var servers []storage.Elector
			for range n {
				servers = append(servers, db.OpenServer(storage.MemoryOptions{}))
			}
			return servers
		},
		Expire: func(_ *testing.T, leader storage.Elector) { leader.(*shared.Server).Expire() },
	})
}

func TestServerThatLeadsKeepsTheContractOfStores(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t *testing.T) storage.Store {
		s := shared.New(1).OpenServer(storage.MemoryOptions{})
		if _, err := s.Campaign(t.Context(), storage.Member{Identity: "one"}); err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestLeaderThatWasPausedPastItsLeaseCannotWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := shared.New(1)
		paused, other := db.OpenServer(storage.MemoryOptions{}), db.OpenServer(storage.MemoryOptions{})
		defer paused.Close()
		defer other.Close()
		term, err := paused.Campaign(t.Context(), storage.Member{Identity: "paused"})
		if err != nil {
			t.Fatal(err)
		}
		write := storage.Write{Key: storage.Key{Bucket: "b", Name: "n"}, Value: []byte("1"), Expect: storage.AnyRevision}
		time.Sleep(10 * shared.LeaseTime) // it is renewed meanwhile
		if _, err := paused.Commit(t.Context(), write); err != nil {
			t.Fatal(err)
		}
		thaw, began := paused.Freeze(), time.Now()
		if _, err := other.Campaign(t.Context(), storage.Member{Identity: "other"}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > shared.LeaseTime {
			t.Errorf("the next term began after %v", waited)
		}
		thaw()
		if _, err := paused.Commit(t.Context(), write); !errors.Is(err, storage.ErrNotLeader) {
			t.Errorf("got error %v, want ErrNotLeader", err)
		}
		<-term.Done()
	})
}

func TestServerThatIsFrozenNeitherWritesNorCampaigns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shared.New(1).OpenServer(storage.MemoryOptions{})
		defer s.Close()
		if _, err := s.Campaign(t.Context(), storage.Member{Identity: "one"}); err != nil {
			t.Fatal(err)
		}
		thaw, began := s.Freeze(), time.Now()
		go func() {
			time.Sleep(time.Hour)
			thaw()
		}()
		write := storage.Write{Key: storage.Key{Bucket: "b", Name: "n"}, Value: []byte("1"), Expect: storage.AnyRevision}
		if _, err := s.Commit(t.Context(), write); !errors.Is(err, storage.ErrNotLeader) {
			t.Errorf("the lease ran out meanwhile: got error %v, want ErrNotLeader", err)
		}
		if waited := time.Since(began); waited != time.Hour {
			t.Errorf("the write ended after %v", waited)
		}
		thaw, began = s.Freeze(), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if term, err := s.Campaign(ctx, storage.Member{Identity: "one"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got term %v, %v after %v", term, err, time.Since(began))
		}
		thaw()
	})
}
