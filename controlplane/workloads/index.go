// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Buckets of the objects that are followed.
const (
	pods         = "pods"
	nodes        = "nodes"
	claims       = "persistentvolumeclaims"
	volumes      = "persistentvolumes"
	controllers  = "replicationcontrollers"
	replicaSets  = "apps/replicasets"
	deployments  = "apps/deployments"
	statefulSets = "apps/statefulsets"
	daemonSets   = "apps/daemonsets"
	revisions    = "apps/controllerrevisions"
	jobs         = "batch/jobs"
	cronJobs     = "batch/cronjobs"
)

func buckets() []string {
	return []string{
		daemonSets, deployments, replicaSets, statefulSets, revisions, cronJobs, jobs,
		nodes, claims, volumes, pods, controllers,
	}
}

func follows(bucket string) bool { return slices.Contains(buckets(), bucket) }

// adoptable objects may be taken over by an owner that selects them.
func adoptable(bucket string) bool { return bucket == pods || bucket == replicaSets }

// adopts tells whether the objects of a bucket take others over.
func adopts(bucket string) bool {
	switch bucket {
	case replicaSets, controllers, deployments, statefulSets, daemonSets, jobs:
		return true
	}
	return false
}

// bucketOf returns where owners of a kind are kept; "" for kinds that are not
// followed.
func bucketOf(ref *metav1.OwnerReference) string {
	switch group, _, _ := strings.Cut(ref.APIVersion, "/"); group + " " + ref.Kind {
	case "v1 ReplicationController":
		return controllers
	case "apps ReplicaSet":
		return replicaSets
	case "apps Deployment":
		return deployments
	case "apps StatefulSet":
		return statefulSets
	case "apps DaemonSet":
		return daemonSets
	case "batch Job":
		return jobs
	case "batch CronJob":
		return cronJobs
	}
	return ""
}

// index knows every followed object by what others need to know of it, and who
// controls whom.
type index struct {
	objects map[storage.Key]*object
	// children of a controller, by its uid.
	children map[types.UID]step.KeySet
	// orphans that might be adopted and adopting objects, by namespace.
	orphans, adopting map[string]step.KeySet
	// addresses that Pods have, or will have, both ways round.
	addresses map[int]storage.Key
	numbers   map[storage.Key]int
	// free is the lowest address that may be free.
	free int
}

// object is what is known of a followed object. Fields after owner are those of
// Pods. It is not changed once it is in the index.
type object struct {
	key      storage.Key
	uid      types.UID
	labels   map[string]string
	created  storage.Revision
	deleting bool
	owner    owner

	createdAt  time.Time
	node       string
	phase      corev1.PodPhase
	ready      bool
	readySince time.Time
	startedAt  time.Time
	finishedAt time.Time
	restarts   int32
	cost       int
	address    string
	generation int64
	observed   int64
	// ordinal is the completion index of a Pod of a Job, -1 without one.
	ordinal int
	// tracked Pods are not counted by their Job yet.
	tracked bool
	grace   int64
	// cordoned nodes take no new Pods.
	cordoned bool
}

// owner is the controller of an object.
type owner struct {
	key storage.Key
	uid types.UID
}

func newIndex() *index {
	return &index{
		objects: map[storage.Key]*object{}, children: map[types.UID]step.KeySet{},
		orphans: map[string]step.KeySet{}, adopting: map[string]step.KeySet{}, addresses: map[int]storage.Key{}, numbers: map[storage.Key]int{},
		free: firstAddress,
	}
}

// put takes in the newest version of an object; false if it is unreadable.
func (x *index) put(rec *storage.Record) bool {
	x.remove(rec.Key)
	o := read(rec)
	if o == nil {
		return false
	}
	x.objects[o.key] = o
	namespace, _ := step.SplitName(o.key.Name)
	switch {
	case o.owner.uid != "":
		add(x.children, o.owner.uid, o.key)
	case adoptable(o.key.Bucket):
		add(x.orphans, namespace, o.key)
	}
	if adopts(o.key.Bucket) {
		add(x.adopting, namespace, o.key)
	}
	if n, ok := addressNumber(o.address); ok {
		x.addresses[n], x.numbers[o.key] = o.key, n
	}
	return true
}

// remove forgets an object.
func (x *index) remove(key storage.Key) {
	o := x.objects[key]
	if o == nil {
		return
	}
	delete(x.objects, key)
	namespace, _ := step.SplitName(key.Name)
	drop(x.children, o.owner.uid, key)
	drop(x.orphans, namespace, key)
	drop(x.adopting, namespace, key)
	if n, ok := x.numbers[key]; ok {
		delete(x.addresses, n)
		delete(x.numbers, key)
		x.free = min(x.free, n)
	}
}

func add[K comparable](sets map[K]step.KeySet, of K, key storage.Key) {
	if sets[of] == nil {
		sets[of] = step.KeySet{}
	}
	sets[of].Add(key)
}

func drop[K comparable](sets map[K]step.KeySet, of K, key storage.Key) {
	delete(sets[of], key)
	if len(sets[of]) == 0 {
		delete(sets, of)
	}
}

// childrenOf returns the objects of a bucket that a uid controls, in the order
// of their keys.
func (x *index) childrenOf(uid types.UID, bucket string) []*object {
	var out []*object
	for _, key := range x.children[uid].Sorted() {
		if key.Bucket == bucket {
			out = append(out, x.objects[key])
		}
	}
	return out
}

// adopters returns who might adopt an orphan of a namespace.
func (x *index) adopters(namespace string) []storage.Key { return x.adopting[namespace].Sorted() }

// of returns the objects of a bucket, which takes a look at all there are.
func (x *index) of(bucket string) []storage.Key {
	out := step.KeySet{}
	for key := range x.objects {
		if key.Bucket == bucket {
			out.Add(key)
		}
	}
	return out.Sorted()
}

const firstAddress = 2

// addressNumber reads the address of a Pod of the simulated node.
func addressNumber(ip string) (int, bool) {
	var a, b, c int
	if n, err := fmt.Sscanf(ip, "10.%d.%d.%d", &a, &b, &c); n != 3 || err != nil || a < 244 {
		return 0, false
	}
	return (a-244)<<16 | b<<8 | c, true
}

// address returns the address that a new Pod gets: the lowest free one.
func (x *index) address(key storage.Key) string {
	n, ok := x.numbers[key]
	if !ok {
		for n = x.free; ; n++ {
			if _, taken := x.addresses[n]; !taken {
				break
			}
		}
		x.addresses[n], x.numbers[key], x.free = key, n, n+1
	}
	return fmt.Sprintf("10.%d.%d.%d", 244+n>>16, n>>8&0xff, n&0xff)
}

// record is what is read of a stored object.
type record struct {
	Metadata struct {
		UID               types.UID               `json:"uid"`
		Labels            map[string]string       `json:"labels"`
		Annotations       map[string]string       `json:"annotations"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
		Finalizers        []string                `json:"finalizers"`
		CreationTimestamp metav1.Time             `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		Grace             *int64                  `json:"deletionGracePeriodSeconds"`
		Generation        int64                   `json:"generation"`
	} `json:"metadata"`
}

// podRecord is what is read of a stored Pod.
type podRecord struct {
	record
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64           `json:"observedGeneration"`
		Phase              corev1.PodPhase `json:"phase"`
		PodIP              string          `json:"podIP"`
		StartTime          *metav1.Time    `json:"startTime"`
		Conditions         []struct {
			Type               corev1.PodConditionType `json:"type"`
			Status             corev1.ConditionStatus  `json:"status"`
			LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
		} `json:"conditions"`
		ContainerStatuses []struct {
			RestartCount int32 `json:"restartCount"`
			State        struct {
				Terminated *struct {
					FinishedAt metav1.Time `json:"finishedAt"`
				} `json:"terminated"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// read returns what the index keeps of an object, nil for what is none.
func read(rec *storage.Record) *object {
	var p podRecord
	into := any(&p)
	if rec.Key.Bucket != pods {
		into = &p.record
	}
	if step.Decode(rec, into) != nil || p.Metadata.UID == "" {
		return nil
	}
	m := &p.Metadata
	o := &object{
		key: rec.Key, uid: m.UID, labels: m.Labels, created: rec.Created, deleting: m.DeletionTimestamp != nil,
		createdAt: m.CreationTimestamp.Time, generation: m.Generation, ordinal: -1,
		tracked: slices.Contains(m.Finalizers, batchv1.JobTrackingFinalizer),
	}
	if m.Grace != nil {
		o.grace = *m.Grace
	}
	namespace, _ := step.SplitName(rec.Key.Name)
	for i := range m.OwnerReferences {
		ref := &m.OwnerReferences[i]
		if ref.Controller != nil && *ref.Controller {
			o.owner = owner{key: storage.Key{Bucket: bucketOf(ref), Name: namespace + "/" + ref.Name}, uid: ref.UID}
		}
	}
	switch rec.Key.Bucket {
	case volumes:
		o.owner = boundTo(rec)
	case nodes:
		var n struct {
			Spec struct {
				Unschedulable bool `json:"unschedulable"`
			} `json:"spec"`
		}
		o.cordoned = step.Decode(rec, &n) == nil && n.Spec.Unschedulable
	}
	if rec.Key.Bucket != pods {
		return o
	}
	o.cost, _ = strconv.Atoi(m.Annotations[corev1.PodDeletionCost]) // 0 without one
	if n, err := strconv.Atoi(m.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
		o.ordinal = n
	}
	o.node, o.phase, o.address, o.observed = p.Spec.NodeName, p.Status.Phase, p.Status.PodIP, p.Status.ObservedGeneration
	if p.Status.StartTime != nil {
		o.startedAt = p.Status.StartTime.Time
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			o.ready, o.readySince = true, c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		o.restarts += c.RestartCount
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(o.finishedAt) {
			o.finishedAt = t.FinishedAt.Time
		}
	}
	return o
}

// boundTo returns the claim that a volume is for, as its owner.
func boundTo(rec *storage.Record) owner {
	var v struct {
		Spec struct {
			ClaimRef *corev1.ObjectReference `json:"claimRef"`
		} `json:"spec"`
	}
	if step.Decode(rec, &v) != nil || v.Spec.ClaimRef == nil {
		return owner{}
	}
	ref := v.Spec.ClaimRef
	return owner{key: storage.Key{Bucket: claims, Name: ref.Namespace + "/" + ref.Name}, uid: ref.UID}
}

// ended tells whether a Pod has run.
func (o *object) ended() bool { return o.phase == corev1.PodSucceeded || o.phase == corev1.PodFailed }

// active tells whether a Pod counts as one of its owner's.
func (o *object) active() bool { return !o.ended() && !o.deleting }
