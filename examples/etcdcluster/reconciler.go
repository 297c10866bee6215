// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
)

const (
	// poll is how soon to look again at what etcd does by itself; it sends no events.
	poll = time.Second
	// resync is how soon to look again at a cluster where all is well.
	resync = 15 * time.Second
)

// Reconciler keeps EtcdClusters at their size.
type Reconciler struct {
	Options
	client   client.Client
	services controller.Children[*corev1.Service]
	replaced *prometheus.CounterVec
}

// +kubebuilder:rbac:groups=etcd.example.com,resources=etcdclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=etcd.example.com,resources=etcdclusters/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile looks at the Pods and at what etcd says, takes one step, and comes
// back to look again: nothing is remembered from one step to the next.
func (r *Reconciler) Reconcile(ctx context.Context, c *v1.EtcdCluster) (controller.Result, error) {
	v, err := r.observe(ctx, c)
	if err != nil {
		return controller.Result{}, err
	}
	next := plan(v)
	report(c, v, next)
	// DNS names come before the members that others look for under them, and go
	// after them.
	if err := r.services.Apply(ctx, c, r.names(c, v, next)); err != nil {
		return controller.Result{}, err
	}
	speaker, _ := v.speaker()
	switch next.action {
	case wait:
		return controller.After(r.Poll), nil
	case stuck:
		return controller.After(resync), nil
	case nothing:
		due, err := r.backup(ctx, c, speaker)
		if err != nil {
			return controller.Result{}, err
		}
		return controller.After(due), nil
	}
	switch err := r.take(ctx, c, v, next, speaker); {
	case errors.Is(err, ErrNotYet):
		return controller.After(r.Poll), nil
	case err != nil:
		return controller.Result{}, fmt.Errorf("%s member %s: %w", next.action, next.member, err)
	}
	r.tell(ctx, c, next)
	return controller.After(0), nil
}

// observe sees the cluster as it is.
func (r *Reconciler) observe(ctx context.Context, c *v1.EtcdCluster) (view, error) {
	v := view{
		size: int(c.Spec.Size), name: func(i int) string { return memberName(c, i) },
		pods: map[string]podState{}, answers: map[string]Status{},
		founded: c.Status.ClusterID != "", voters: int(c.Status.Size),
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabels{ClusterLabel: c.Name}); err != nil {
		return v, fmt.Errorf("list the pods of %s: %w", c.Name, err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; metav1.IsControlledBy(pod, c) {
			v.pods[pod.Labels[MemberLabel]] = stateOf(pod)
		}
	}
	v.ask(ctx, func(ctx context.Context, member string) (Status, error) {
		return r.Etcd.Status(ctx, r.Addresses.Client(c.Namespace, member))
	})
	speaker, ok := v.speaker()
	if !ok {
		return v, nil
	}
	var err error
	if v.members, err = r.Etcd.Members(ctx, r.Addresses.Client(c.Namespace, speaker)); err != nil {
		controller.Log(ctx).Info("The members are not known", "asked", speaker, "error", err)
		v.members = nil
		return v, nil
	}
	for i := range v.members {
		v.members[i].Name = r.nameOf(c, v.members[i].PeerURL)
	}
	slices.SortFunc(v.members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return v, nil
}

// ask collects the answers of the members whose Pods may run, all at once.
func (v *view) ask(ctx context.Context, status func(context.Context, string) (Status, error)) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for member, state := range v.pods {
		if state != alive {
			continue
		}
		all.Go(func() {
			answer, err := status(ctx, member)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			v.answers[member] = answer
		})
	}
	all.Wait()
}

// speaker is a member that speaks for a quorum.
func (v *view) speaker() (string, bool) {
	for _, member := range slices.Sorted(maps.Keys(v.answers)) {
		if !v.answers[member].Learner {
			return member, true
		}
	}
	return "", false
}

// nameOf finds the member of a peer URL.
func (r *Reconciler) nameOf(c *v1.EtcdCluster, peerURL string) string {
	for i := range maxSize {
		if name := memberName(c, i); r.Addresses.Peer(c.Namespace, name) == peerURL {
			return name
		}
	}
	return peerURL // of another cluster: it is shown, and in the way
}

// names are the Services of all who are, were or will be members.
func (r *Reconciler) names(c *v1.EtcdCluster, v view, next step) []*corev1.Service {
	members := maps.Clone(v.pods)
	for _, m := range v.members {
		members[m.Name] = absent
	}
	if next.action == add || next.action == found {
		members[next.member] = absent
	}
	var out []*corev1.Service
	for _, member := range slices.Sorted(maps.Keys(members)) {
		out = append(out, service(c, member))
	}
	return out
}

// take makes the one write of a step.
func (r *Reconciler) take(ctx context.Context, c *v1.EtcdCluster, v view, next step, speaker string) error {
	url := r.Addresses.Client(c.Namespace, speaker)
	switch next.action {
	case found, start:
		pod := r.pod(c, next.member, v.members, next.action == found)
		if err := controller.SetOwner(c, v1.GroupVersion.WithKind("EtcdCluster"), pod); err != nil {
			return err
		}
		return r.client.Create(ctx, pod)
	case add:
		return r.Etcd.Change(ctx, url, Change{Add: r.Addresses.Peer(c.Namespace, next.member)})
	case promote:
		return r.Etcd.Change(ctx, url, Change{Promote: next.id})
	case remove:
		return r.Etcd.Change(ctx, url, Change{Remove: next.id})
	case stop:
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: next.member}}
		return client.IgnoreNotFound(r.client.Delete(ctx, pod))
	}
	return fmt.Errorf("no such step: %s", next.action)
}
