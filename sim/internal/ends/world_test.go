// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// member is what an operator keeps of one Pod: the Pod itself and a claim named after it.
type member struct {
	role  string
	claim int // the member whose Pod owns the claim
	size  string
}

// world is what an operator leaves, without what a server gives.
type world struct {
	members   []member
	replicas  int
	secret    string
	rollout   int // the object whose version the Pods' annotation has: 0 the Secret, 1 the Database
	stale     bool
	orphan    bool // the Service's owner is a Database that was deleted
	behind    int64
	config    string
	leader    int // named in the status, by its uid
	condition string
}

func newWorld(r *rand.Rand) world {
	w := world{replicas: 1 + r.IntN(3), secret: "s3cret", config: "a", condition: "True"}
	for i := range 1 + r.IntN(4) {
		w.members = append(w.members, member{role: []string{"primary", "replica", "replica"}[r.IntN(3)], claim: i, size: "1Gi"})
	}
	w.leader = r.IntN(len(w.members))
	return w
}

// server draws what a server gives. Two of them give other values to the same objects.
type server struct {
	*rand.Rand
	version int64
}

func (s *server) uid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", s.Uint32(), s.IntN(1<<16), s.IntN(1<<12), s.IntN(1<<12), s.Int64N(1<<48))
}

func (s *server) suffix(n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[s.IntN(len(letters))]
	}
	return string(b)
}

func (s *server) time() string {
	return fmt.Sprintf("2026-%02d-%02dT%02d:%02d:%02dZ", 1+s.IntN(12), 1+s.IntN(28), s.IntN(24), s.IntN(60), s.IntN(60))
}

func (s *server) address() string {
	return fmt.Sprintf("10.%d.%d.%d", s.IntN(256), s.IntN(256), 1+s.IntN(254))
}

// object has the metadata that every object gets.
func (s *server) object(apiVersion, kind, name string, owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	s.version += 1 + s.Int64N(50)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"name": name, "namespace": "default", "uid": s.uid(), "resourceVersion": strconv.FormatInt(s.version, 10),
		"creationTimestamp": s.time(), "generation": 1 + s.Int64N(4),
		"managedFields": []any{map[string]any{"manager": "operator", "time": s.time()}},
	}}}
	var refs []any
	for _, o := range owners {
		refs = append(refs, map[string]any{
			"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "name": o.GetName(), "uid": string(o.GetUID()), "controller": true,
		})
	}
	if refs != nil {
		s.set(u, refs, "metadata", "ownerReferences")
	}
	return u
}

func (s *server) generated(apiVersion, kind, prefix string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	u := s.object(apiVersion, kind, prefix+s.suffix(5), owner)
	u.SetGenerateName(prefix)
	return u
}

func (s *server) set(u *unstructured.Unstructured, v any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, v, path...); err != nil {
		panic(err)
	}
}

// run returns what is there at the end of a run on a server.
func (w world) run(seed uint64) []Life {
	s := &server{Rand: rand.New(rand.NewPCG(seed, 1)), version: int64(seed % 1000)}
	db := s.object("example.com/v1", "Database", "db")
	old := s.object("example.com/v1", "Database", "db")
	secret := s.object("v1", "Secret", "db", db)
	s.set(secret, base64.StdEncoding.EncodeToString([]byte(w.secret+" of "+string(db.GetUID()))), "data", "password")
	service := s.object("v1", "Service", "db", db)
	if w.orphan {
		service = s.object("v1", "Service", "db", old)
	}
	s.set(service, "db.service/"+string(db.GetUID())[:8]+s.suffix(8), "metadata", "annotations", appliedAnnotation)
	ip := s.address()
	s.set(service, ip, "spec", "clusterIP")
	s.set(service, []any{map[string]any{"port": int64(5432), "nodePort": 30000 + s.Int64N(2768)}}, "spec", "ports")
	deployment := s.object("apps/v1", "Deployment", "web", db)
	hash := s.suffix(9)
	rollouts := 1 + s.IntN(4)
	var lives []Life
	for i := range rollouts - 1 {
		was := s.object("apps/v1", "ReplicaSet", "web-"+s.suffix(9), deployment)
		s.set(was, fmt.Sprint(i+1), "metadata", "annotations", revisionAnnotation)
		lives = append(lives, Life{Object: was})
	}
	s.set(deployment, fmt.Sprint(rollouts), "metadata", "annotations", revisionAnnotation)
	replicaSet := s.object("apps/v1", "ReplicaSet", "web-"+hash, deployment)
	s.set(replicaSet, hash, "metadata", "labels", "pod-template-hash")
	s.set(replicaSet, fmt.Sprint(rollouts), "metadata", "annotations", revisionAnnotation)
	s.set(replicaSet, int64(w.replicas), "spec", "replicas")
	lives = append(lives, Life{Object: db}, Life{Object: old, Deleted: 2}, Life{Object: secret}, Life{Object: service},
		Life{Object: deployment}, Life{Object: replicaSet})
	for range w.replicas {
		pod := s.generated("v1", "Pod", replicaSet.GetName()+"-", replicaSet)
		s.set(pod, hash, "metadata", "labels", "pod-template-hash")
		version := []*unstructured.Unstructured{secret, db}[w.rollout].GetResourceVersion()
		if w.stale {
			version = "1"
		}
		s.set(pod, version, "metadata", "annotations", "example.com/secret-resource-version")
		lives = append(lives, Life{Object: pod})
	}
	var pods []*unstructured.Unstructured
	for _, m := range w.members {
		pod := s.generated("v1", "Pod", "db-", db)
		s.set(pod, m.role, "spec", "role")
		s.set(pod, "host "+ip+":5432 as "+pod.GetName()+".db.default.svc", "spec", "env")
		s.set(pod, s.address(), "status", "podIP")
		s.set(pod, []any{map[string]any{"name": "main", "containerID": "containerd://" + s.uid()}}, "status", "containerStatuses")
		token := "kube-api-access-" + s.suffix(5)
		s.set(pod, []any{map[string]any{"name": token}}, "spec", "volumes")
		s.set(pod, token, "spec", "mount")
		pods = append(pods, pod)
	}
	var members, endpoints []any
	for i, m := range w.members {
		claim := s.object("v1", "PersistentVolumeClaim", "data-"+pods[i].GetName()+"-0", pods[m.claim])
		s.set(claim, m.size, "spec", "size")
		applied, err := json.Marshal(map[string]any{"spec": map[string]any{"size": m.size, "pod": pods[i].GetName()}})
		if err != nil {
			panic(err)
		}
		s.set(claim, string(applied), "metadata", "annotations", "last-applied")
		members = append(members, map[string]any{"name": pods[i].GetName(), "since": s.time()})
		endpoints = append(endpoints, map[string]any{"addresses": []any{pods[i].Object["status"].(map[string]any)["podIP"]}})
		lives = append(lives, Life{Object: pods[i]}, Life{Object: claim})
	}
	s.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	s.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	slice := s.object("discovery.k8s.io/v1", "EndpointSlice", "db-"+s.suffix(5), service)
	slice.SetGenerateName("db-")
	slice.Object["endpoints"] = endpoints
	config := s.object("v1", "ConfigMap", "db", db)
	s.set(config, w.config+" at "+s.time(), "data", "text")
	s.set(config, s.uid(), "data", "id")
	clock := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(s.Int64N(int64(300 * 24 * time.Hour))))
	s.set(config, clock.String()+" m=+0.5", "data", "clock")
	s.set(config, strconv.FormatInt(clock.UnixMilli(), 10), "data", "milliseconds")
	s.set(config, clock.Unix(), "seconds")
	for i, pod := range pods {
		s.set(config, w.members[i].role, "data", pod.GetName())
	}
	conditions := []any{
		map[string]any{"type": "Ready", "status": w.condition, "lastTransitionTime": s.time(), "observedGeneration": db.GetGeneration() - w.behind},
		map[string]any{"type": "Synced", "status": "True", "lastTransitionTime": s.time()},
	}
	if s.IntN(2) == 0 {
		slices.Reverse(conditions)
	}
	db.Object["status"] = map[string]any{
		"members": members, "leader": string(pods[w.leader].GetUID()), "conditions": conditions,
		"observedGeneration": db.GetGeneration() - w.behind,
	}
	lives = append(lives, Life{Object: slice}, Life{Object: config}, Life{Object: s.object("v1", "Event", "e"+s.suffix(5))})
	s.Shuffle(len(lives), func(i, j int) { lives[i], lives[j] = lives[j], lives[i] })
	return lives
}
