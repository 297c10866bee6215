// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
	"github.com/steer-dev/steer/storage"
)

// Names of the buckets.
const (
	Pods         = "pods"
	Nodes        = "nodes"
	Claims       = "persistentvolumeclaims"
	Volumes      = "persistentvolumes"
	Controllers  = "replicationcontrollers"
	ReplicaSets  = "apps/replicasets"
	Deployments  = "apps/deployments"
	StatefulSets = "apps/statefulsets"
	DaemonSets   = "apps/daemonsets"
	Revisions    = "apps/controllerrevisions"
	Jobs         = "batch/jobs"
	CronJobs     = "batch/cronjobs"
	Services     = "services"
	// The following, but for EndpointSlices, are not in the index: they are read where they are needed.
	Endpoints  = "endpoints"
	Leases     = "coordination.k8s.io/leases"
	Namespaces = "namespaces"
	// AttributesClasses are those of volumes.
	AttributesClasses = "storage.k8s.io/volumeattributesclasses"
	EndpointSlices    = "discovery.k8s.io/endpointslices"
)

// Buckets returns the buckets of the objects in the index.
func Buckets() []string {
	return []string{
		DaemonSets, Deployments, ReplicaSets, StatefulSets, Revisions, CronJobs, Jobs, EndpointSlices,
		Nodes, Claims, Volumes, Pods, Controllers, Services,
	}
}

// NodeName is the name of the simulated node.
const NodeName = egress.SimulatedNode

// SimulatedLabel, with the value "true", marks the nodes whose Pods are run. Those of
// other nodes are left alone.
const SimulatedLabel = egress.SimulatedLabel

// NodeKey is the key of the simulated node.
func NodeKey() storage.Key { return NodeOf(NodeName) }

// Follows reports whether the objects of a bucket are in the index.
func Follows(bucket string) bool { return slices.Contains(Buckets(), bucket) }

// Adoptable reports whether objects of a bucket are adopted by owners that select them.
func Adoptable(bucket string) bool { return bucket == Pods || bucket == ReplicaSets }

// adopts reports whether the objects of a bucket adopt others.
func adopts(bucket string) bool {
	switch bucket {
	case ReplicaSets, Controllers, Deployments, StatefulSets, DaemonSets, Jobs:
		return true
	}
	return false
}

// bucketOf returns where owners of a kind are kept; "" for kinds that are not
// known.
func bucketOf(ref *metav1.OwnerReference) string {
	switch group, _, _ := strings.Cut(ref.APIVersion, "/"); group + " " + ref.Kind {
	case "v1 ReplicationController":
		return Controllers
	case "v1 Service":
		return Services
	case "v1 Endpoints":
		return Endpoints
	case "apps ReplicaSet":
		return ReplicaSets
	case "apps Deployment":
		return Deployments
	case "apps StatefulSet":
		return StatefulSets
	case "apps DaemonSet":
		return DaemonSets
	case "batch Job":
		return Jobs
	case "batch CronJob":
		return CronJobs
	}
	return ""
}

// Index holds what the controllers read of every followed object, and which object
// controls which.
type Index struct {
	Objects map[storage.Key]*Object
	// Children of a controller, by its uid.
	Children map[types.UID]step.KeySet
	// orphans that might be adopted and adopting objects, by namespace.
	orphans, adopting map[string]step.KeySet
	// pods and services by namespace.
	pods, services map[string]step.KeySet
	nodes          step.KeySet
	// ingresses are Services by the address of their load balancer.
	ingresses map[string]step.KeySet
	// on are the Pods of a node; of none for those that are not bound. ended are those
	// that have ended and are not being deleted.
	on    map[string]step.KeySet
	ended step.KeySet
	// used is what the Pods of a node take of it; repelling are Pods on nodes that keep
	// others away.
	used      map[string]*scheduler.Usage
	repelling step.KeySet
	demands   scheduler.Pool
	// addresses that Pods have, or will have, both ways round.
	addresses map[int]storage.Key
	Numbers   map[storage.Key]int
	// free is the lowest address that may be free.
	free int
}

// Object is what the index holds of an object. It is not changed once it is in the index.
type Object struct {
	Key      storage.Key
	UID      types.UID
	Labels   map[string]string
	Created  storage.Revision
	Deleting bool
	Owner    Owner

	// Selects are the labels of the Pods of a Service. Balanced is set if it wants an address of a
	// load balancer; Ingress is the first address that it has.
	Selects  map[string]string
	Balanced bool
	Ingress  string

	CreatedAt time.Time
	Node      string
	Phase     corev1.PodPhase
	// evicted reports that a Pod was ended by its node.
	evicted bool
	Ready   bool
	// ReadyAt is when it became ready or ceased to be.
	ReadyAt    time.Time
	StartedAt  time.Time
	FinishedAt time.Time
	Restarts   int32
	cost       int
	Address    string
	Hostname   string
	Subdomain  string
	Generation int64
	Observed   int64
	// Ordinal is the completion index of a Pod of a Job, -1 without one.
	Ordinal int
	// Tracked reports that a Pod is not counted by its Job yet.
	Tracked bool
	Grace   int64
	// Target is the node that a Pod is on, or the only one that it can go to.
	Target string
	// Demand is what a Pod asks of its node.
	Demand *scheduler.Demand

	// Room is what a node offers to Pods. The Pods of a Ready node run: in
	// simulation, if it is Simulated.
	Room      *scheduler.Node
	Simulated bool
	// Health of a node is the status of its condition Ready, empty without one, Heartbeat when
	// that was last confirmed; Ills are the keys of the taints that its conditions call for.
	Health    corev1.ConditionStatus
	Heartbeat time.Time
	Ills      []string
	// HostAddress of a node, empty if it has none.
	HostAddress string
}

// Owner is the controller of an object.
type Owner struct {
	Key storage.Key
	UID types.UID
}

func newIndex() *Index {
	return &Index{
		Objects: map[storage.Key]*Object{}, Children: map[types.UID]step.KeySet{},
		orphans: map[string]step.KeySet{}, adopting: map[string]step.KeySet{},
		pods: map[string]step.KeySet{}, services: map[string]step.KeySet{}, nodes: step.KeySet{}, on: map[string]step.KeySet{}, ended: step.KeySet{},
		ingresses: map[string]step.KeySet{}, used: map[string]*scheduler.Usage{}, repelling: step.KeySet{},
		addresses: map[int]storage.Key{}, Numbers: map[storage.Key]int{},
		free: firstAddress,
	}
}

// Put indexes the newest version of an object; false if it is unreadable.
func (x *Index) Put(rec *storage.Record) bool {
	before := x.Objects[rec.Key]
	o := read(rec)
	if o != nil && rec.Key.Bucket == Pods {
		o.Demand = x.demandOf(rec, o, before)
	}
	x.Remove(rec.Key)
	if o == nil {
		return false
	}
	x.Objects[o.Key] = o
	namespace, _ := step.SplitName(o.Key.Name)
	switch {
	case o.Owner.UID != "":
		add(x.Children, o.Owner.UID, o.Key)
	case Adoptable(o.Key.Bucket):
		add(x.orphans, namespace, o.Key)
	}
	if adopts(o.Key.Bucket) {
		add(x.adopting, namespace, o.Key)
	}
	switch o.Key.Bucket {
	case Pods:
		add(x.pods, namespace, o.Key)
		if add(x.on, o.Node, o.Key); o.Ended() && !o.Deleting {
			x.ended.Add(o.Key)
		}
		x.use(o, 1)
	case Services:
		if add(x.services, namespace, o.Key); o.Ingress != "" {
			add(x.ingresses, o.Ingress, o.Key)
		}
	case Nodes:
		x.nodes.Add(o.Key)
	}
	if n, ok := addressNumber(o.Address); ok {
		x.addresses[n], x.Numbers[o.Key] = o.Key, n
	}
	return true
}

// Remove removes an object from the index.
func (x *Index) Remove(key storage.Key) {
	o := x.Objects[key]
	if o == nil {
		return
	}
	delete(x.Objects, key)
	namespace, _ := step.SplitName(key.Name)
	drop(x.Children, o.Owner.UID, key)
	drop(x.orphans, namespace, key)
	drop(x.adopting, namespace, key)
	drop(x.pods, namespace, key)
	drop(x.services, namespace, key)
	drop(x.ingresses, o.Ingress, key)
	delete(x.nodes, key)
	drop(x.on, o.Node, key)
	delete(x.ended, key)
	if o.Demand != nil {
		x.use(o, -1)
		x.demands.Release(o.Demand)
	}
	if n, ok := x.Numbers[key]; ok {
		delete(x.addresses, n)
		delete(x.Numbers, key)
		x.free = min(x.free, n)
	}
}

// demandOf returns what a Pod asks of its node. It is read again only if the spec may have changed.
func (x *Index) demandOf(rec *storage.Record, o, before *Object) *scheduler.Demand {
	if before != nil && before.UID == o.UID && o.Generation > 0 && before.Generation == o.Generation {
		x.demands.Keep(before.Demand)
		return before.Demand
	}
	var p struct {
		Spec corev1.PodSpec `json:"spec"`
	}
	_ = step.Decode(rec, &p) // what cannot be read asks for nothing
	return x.demands.Take(&p.Spec)
}

// use counts a Pod that takes room on a node, or no longer with times -1.
func (x *Index) use(o *Object, times int) {
	if o.Node == "" || o.Ended() {
		return
	}
	u := x.used[o.Node]
	if u == nil {
		u = &scheduler.Usage{}
		x.used[o.Node] = u
	}
	if u.Add(o.Demand, times); u.Pods == 0 {
		delete(x.used, o.Node)
	}
	switch {
	case times < 0:
		delete(x.repelling, o.Key)
	case o.Demand.Repels():
		x.repelling.Add(o.Key)
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

// ChildrenOf returns the objects of a bucket that a uid controls, in the order
// of their keys.
func (x *Index) ChildrenOf(uid types.UID, bucket string) []*Object {
	var out []*Object
	for _, key := range x.Children[uid].Sorted() {
		if key.Bucket == bucket {
			out = append(out, x.Objects[key])
		}
	}
	return out
}

// Adopters returns the objects that might adopt an orphan of a namespace.
func (x *Index) Adopters(namespace string) []storage.Key { return x.adopting[namespace].Sorted() }

// HasIngress reports whether a Service has an address of a load balancer.
func (x *Index) HasIngress(address string) bool { return len(x.ingresses[address]) > 0 }

// SelectedBy returns the Pods of a Service, in no order.
func (x *Index) SelectedBy(service *Object) []*Object {
	namespace, _ := step.SplitName(service.Key.Name)
	var out []*Object
	for key := range x.pods[namespace] {
		if p := x.Objects[key]; service.selects(p) {
			out = append(out, p)
		}
	}
	return out
}

// ServicesOf returns the Services of a Pod.
func (x *Index) ServicesOf(p *Object) []storage.Key {
	namespace, _ := step.SplitName(p.Key.Name)
	var out []storage.Key
	for key := range x.services[namespace] {
		if x.Objects[key].selects(p) {
			out = append(out, key)
		}
	}
	return out
}

// SameTo reports whether two states of an object, nil for none, give the same endpoints of the
// Services that select it.
func (o *Object) SameTo(other *Object) bool {
	if o == nil || other == nil {
		return o == other
	}
	return o.Address == other.Address && o.Ready == other.Ready && o.Deleting == other.Deleting && o.Ended() == other.Ended() &&
		o.Node == other.Node && o.UID == other.UID && maps.Equal(o.Labels, other.Labels)
}

// selects reports whether a Pod is one of a Service.
func (o *Object) selects(p *Object) bool {
	for key, value := range o.Selects {
		if has, ok := p.Labels[key]; !ok || has != value {
			return false
		}
	}
	return len(o.Selects) > 0
}

// Of returns the objects of a bucket. It iterates over the whole index.
func (x *Index) Of(bucket string) []storage.Key {
	out := step.KeySet{}
	for key := range x.Objects {
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

// Address returns the address that a new Pod gets: the lowest free one.
func (x *Index) Address(key storage.Key) string {
	n, ok := x.Numbers[key]
	if !ok {
		for n = x.free; ; n++ {
			if _, taken := x.addresses[n]; !taken {
				break
			}
		}
		x.addresses[n], x.Numbers[key], x.free = key, n, n+1
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
		NodeName  string        `json:"nodeName"`
		Hostname  string        `json:"hostname"`
		Subdomain string        `json:"subdomain"`
		Affinity  *nodeAffinity `json:"affinity"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64           `json:"observedGeneration"`
		Phase              corev1.PodPhase `json:"phase"`
		Reason             string          `json:"reason"`
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

// read returns what the index holds of an object, nil if it is unreadable.
func read(rec *storage.Record) *Object {
	var p podRecord
	into := any(&p)
	if rec.Key.Bucket != Pods {
		into = &p.record
	}
	if step.Decode(rec, into) != nil || p.Metadata.UID == "" {
		return nil
	}
	m := &p.Metadata
	o := &Object{
		Key: rec.Key, UID: m.UID, Labels: m.Labels, Created: rec.Created, Deleting: m.DeletionTimestamp != nil,
		CreatedAt: m.CreationTimestamp.Time, Generation: m.Generation, Ordinal: -1,
		Tracked: slices.Contains(m.Finalizers, batchv1.JobTrackingFinalizer),
	}
	if m.Grace != nil {
		o.Grace = *m.Grace
	}
	namespace, _ := step.SplitName(rec.Key.Name)
	for i := range m.OwnerReferences {
		ref := &m.OwnerReferences[i]
		if ref.Controller != nil && *ref.Controller {
			o.Owner = Owner{Key: storage.Key{Bucket: bucketOf(ref), Name: namespace + "/" + ref.Name}, UID: ref.UID}
		}
	}
	switch rec.Key.Bucket {
	case Volumes:
		o.Owner = boundTo(rec)
	case Services:
		o.readService(rec)
	case Nodes:
		o.readNode(rec)
	}
	if rec.Key.Bucket != Pods {
		return o
	}
	o.cost, _ = strconv.Atoi(m.Annotations[corev1.PodDeletionCost]) // 0 without one
	if n, err := strconv.Atoi(m.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
		o.Ordinal = n
	}
	o.Node, o.Phase, o.Address, o.Observed = p.Spec.NodeName, p.Status.Phase, p.Status.PodIP, p.Status.ObservedGeneration
	o.evicted = o.Phase == corev1.PodFailed && p.Status.Reason == "Evicted"
	if o.Target = o.Node; o.Target == "" {
		o.Target = p.Spec.Affinity.target()
	}
	if p.Status.StartTime != nil {
		o.StartedAt = p.Status.StartTime.Time
	}
	o.Hostname, o.Subdomain = p.Spec.Hostname, p.Spec.Subdomain
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			o.Ready, o.ReadyAt = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		o.Restarts += c.RestartCount
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(o.FinishedAt) {
			o.FinishedAt = t.FinishedAt.Time
		}
	}
	return o
}

// readService reads the fields of a Service.
func (o *Object) readService(rec *storage.Record) {
	var s struct {
		Spec struct {
			Selector map[string]string  `json:"selector"`
			Type     corev1.ServiceType `json:"type"`
			Class    *string            `json:"loadBalancerClass"`
		} `json:"spec"`
		Status struct {
			LoadBalancer corev1.LoadBalancerStatus `json:"loadBalancer"`
		} `json:"status"`
	}
	if step.Decode(rec, &s) != nil {
		return
	}
	o.Selects, o.Balanced = s.Spec.Selector, s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.Class == nil
	for _, in := range s.Status.LoadBalancer.Ingress {
		o.Ingress = cmp.Or(o.Ingress, in.IP, in.Hostname)
	}
}

// boundTo returns the claim that a volume is for, as its owner.
func boundTo(rec *storage.Record) Owner {
	var v struct {
		Spec struct {
			ClaimRef *corev1.ObjectReference `json:"claimRef"`
		} `json:"spec"`
	}
	if step.Decode(rec, &v) != nil || v.Spec.ClaimRef == nil {
		return Owner{}
	}
	ref := v.Spec.ClaimRef
	return Owner{Key: storage.Key{Bucket: Claims, Name: ref.Namespace + "/" + ref.Name}, UID: ref.UID}
}

// Ended reports whether a Pod has terminated.
func (o *Object) Ended() bool { return o.Phase == corev1.PodSucceeded || o.Phase == corev1.PodFailed }

// readySince is when a Pod that is ready became so; the zero time for another.
func (o *Object) readySince() time.Time {
	if !o.Ready {
		return time.Time{}
	}
	return o.ReadyAt
}

// Active reports whether a Pod counts for the replicas of its owner.
func (o *Object) Active() bool { return !o.Ended() && !o.Deleting }
