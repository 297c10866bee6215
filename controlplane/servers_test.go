// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/shared"
)

// cluster is several servers of one database in this process.
type cluster struct {
	*testing.T
	db      *shared.Database
	keys    *controlplane.Keys
	edit    func(*controlplane.Options) // nil: nothing
	servers []*server
}

// server is one of them, with a client of its own.
type server struct {
	*controlplane.Plane
	*api
	store *shared.Server
}

// newCluster starts n servers.
func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	return newClusterOf(t, n, nil)
}

// newClusterOf starts n servers with options.
func newClusterOf(t *testing.T, n int, edit func(*controlplane.Options)) *cluster {
	t.Helper()
	keys, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, db: shared.New(1), keys: keys, edit: edit}
	t.Cleanup(func() {
		var stopping sync.WaitGroup
		for _, s := range c.servers {
			stopping.Go(func() {
				if err := s.Stop(context.Background()); err != nil {
					t.Error(err)
				}
				_ = s.store.Close()
			})
		}
		stopping.Wait()
	})
	for range n {
		c.start()
	}
	return c
}

// start adds a server.
func (c *cluster) start() {
	c.Helper()
	c.startWith(storage.MemoryOptions{})
}

// startWith adds a server with options of its store.
func (c *cluster) startWith(of storage.MemoryOptions) *server {
	c.Helper()
	store := c.db.OpenServer(of)
	o := controlplane.Options{Store: store, Listen: "127.0.0.1:0", Authentication: controlplane.Authentication{Keys: c.keys}}
	if c.edit != nil {
		c.edit(&o)
	}
	plane, err := controlplane.New(o)
	if err != nil {
		c.Fatal(err)
	}
	s := &server{Plane: plane, store: store}
	c.servers = append(c.servers, s)
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	if err := plane.Start(ctx); err != nil {
		c.Fatal(err)
	}
	s.api = c.client(plane)
	return s
}

// client is one over the network, as administrator.
func (c *cluster) client(plane *controlplane.Plane) *api {
	c.Helper()
	raw, err := plane.Kubeconfig()
	if err != nil {
		c.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		c.Fatal(err)
	}
	return apiOf(c, config)
}

// leader returns the server that leads, and one that does not.
func (c *cluster) leader() (leader, follower *server) {
	c.Helper()
	for _, s := range c.servers {
		if led, _ := s.store.Leader(); led.Address != "" && strings.HasSuffix(s.URL(), "://"+led.Address) {
			leader = s
		} else {
			follower = s
		}
	}
	if leader == nil {
		c.Fatal("no server leads")
	}
	return leader, follower
}

func TestServersOfOneStoreActAsOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	leader, follower := c.leader()
	const path = "/api/v1/namespaces/default/configmaps"
	for i, s := range c.servers {
		s.must(http.MethodPost, path, configMap(fmt.Sprintf("from-%d", i)))
		for j, other := range c.servers {
			if got := other.must(http.MethodGet, fmt.Sprintf("%s/from-%d", path, i), ""); got.GetName() == "" {
				t.Errorf("server %d does not read what server %d was sent", j, i)
			}
		}
		s.must(http.MethodPatch, fmt.Sprintf("%s/from-%d", path, i), "data: {a: c}")
		s.must(http.MethodDelete, fmt.Sprintf("%s/from-%d", path, i), "")
	}
	// The controllers of the leader act on what a follower was sent.
	follower.must(http.MethodPost, "/api/v1/namespaces", "metadata: {name: other}")
	if _, err := leader.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	follower.must(http.MethodGet, "/api/v1/namespaces/other/serviceaccounts/default", "")
}

func TestServersServeDefinitionsOfOneAnother(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for i, s := range c.servers {
		plural := fmt.Sprintf("crontabs%d", i)
		s.must(http.MethodPost, definitions, cronTabCRD(plural, fmt.Sprintf("CronTab%d", i), fmt.Sprintf("ct%d", i)))
		for j, other := range c.servers {
			path := strings.Replace(cronTabs, "crontabs", plural, 1)
			name := fmt.Sprintf("from-%d", j)
			other.must(http.MethodPost, path, strings.Replace(cronTab(name), "kind: CronTab", fmt.Sprintf("kind: CronTab%d", i), 1))
			s.must(http.MethodGet, path+"/"+name, "")
		}
	}
}

// A server that starts long after the last change of a definition does not have that change
// in its history.
func TestServersServeDefinitionsThatAreOlderThanTheHistory(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.servers[0].must(http.MethodPost, definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	c.servers[0].must(http.MethodPost, cronTabs, cronTab("one"))
	state := storage.MemoryOptions{From: c.servers[0].store.Latest()}
	follower := c.startWith(state)
	follower.must(http.MethodGet, cronTabs+"/one", "")
	if err := c.servers[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	follower.must(http.MethodPatch, cronTabs+"/one", "spec: {replicas: 2}")
	if err := follower.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	leader := c.startWith(state)
	leader.must(http.MethodPatch, cronTabs+"/one", "spec: {replicas: 3}")
}

func TestServersAreTheEndpointsOfTheServiceKubernetes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	ports := func(servers []*server) []string {
		var out []string
		for _, s := range servers {
			out = append(out, s.URL()[strings.LastIndexByte(s.URL(), ':')+1:])
		}
		slices.Sort(out)
		return out
	}
	c.awaitEndpoints(ports(c.servers))
	leader, follower := c.leader()
	for _, leaving := range []*server{follower, leader} {
		if err := leaving.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		c.servers = slices.DeleteFunc(c.servers, func(s *server) bool { return s == leaving })
		c.awaitEndpoints(ports(c.servers))
		_ = leaving.store.Close()
	}
	leases := c.servers[0].must(http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver", "")
	if items, _, _ := unstructured.NestedSlice(leases.Object, "items"); len(items) != 1 {
		t.Errorf("there are %d identity leases, want that of the server that is left", len(items))
	}
}

// awaitEndpoints returns when the Endpoints of the Service kubernetes have the ports.
func (c *cluster) awaitEndpoints(want []string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	store := c.servers[0].store
	cursor, err := store.Watch(storage.Range{Bucket: "endpoints"}, store.Latest().Revision())
	if err != nil {
		c.Fatal(err)
	}
	defer cursor.Close()
	for {
		var found struct {
			Subsets []struct{ Ports []struct{ Port int } }
		}
		if rec := store.Get(storage.Key{Bucket: "endpoints", Name: "default/kubernetes"}); rec != nil {
			if err := json.Unmarshal(rec.Value, &found); err != nil {
				c.Fatal(err)
			}
		}
		var got []string
		for _, s := range found.Subsets {
			got = append(got, fmt.Sprint(s.Ports[0].Port))
		}
		if slices.Sort(got); slices.Equal(got, want) {
			return
		}
		if _, err := cursor.Next(ctx); err != nil {
			c.Fatalf("the endpoints have ports %v, want %v: %v", got, want, err)
		}
	}
}

// TestNotesOfAServerThatLeadsAgainHaveAGap since another has executed writes meanwhile.
func TestNotesOfAServerThatLeadsAgainHaveAGap(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	first, second := c.leader()
	const path = "/api/v1/namespaces/default/configmaps"
	knownFrom := func() int64 {
		var list notes.List
		code, text := first.do(http.MethodGet, notes.Path, "")
		if err := json.Unmarshal(text, &list); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s: %v", code, text, err)
		}
		known, err := strconv.ParseInt(list.KnownFrom, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	for _, leads := range []*server{second, first} {
		other := map[*server]*server{first: second, second: first}[leads]
		thaw := other.store.Freeze()
		other.store.Expire()
		c.awaitLeaderOtherThan(other)
		thaw()
		leads.must(http.MethodPost, path, "metadata: {generateName: a-}")
		// The other one finds out by a write that is refused, and campaigns again.
		for code := http.StatusServiceUnavailable; code != http.StatusCreated; {
			if code, _ = other.do(http.MethodPost, path, "metadata: {generateName: a-}"); code != http.StatusCreated && code != http.StatusServiceUnavailable {
				t.Fatal(code)
			}
		}
	}
	elsewhere := second.must(http.MethodGet, path, "").Object["items"].([]any)
	oldest := int64(0) // of the revisions that either has written
	for _, item := range elsewhere {
		metadata := item.(map[string]any)["metadata"].(map[string]any)
		revision, _ := strconv.ParseInt(fmt.Sprint(metadata["resourceVersion"]), 10, 64)
		if strings.HasPrefix(fmt.Sprint(metadata["name"]), "a-") && (oldest == 0 || revision < oldest) {
			oldest = revision
		}
	}
	if known := knownFrom(); known <= oldest {
		t.Errorf("known from %d, and another server wrote %d", known, oldest)
	}
}
