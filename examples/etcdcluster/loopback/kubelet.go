// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback runs the Pods of EtcdClusters in this process: each is a real
// etcd member on a loopback address. It plays the kubelet where there is none,
// for tests and to see the operator at work on a control plane without nodes.
package loopback

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/etcdcluster"
)

// Kubelet runs members. Set its fields before Run.
type Kubelet struct {
	// Client of the control plane, live.
	Client client.Client
	// Dir keeps the data of the members.
	Dir string
	// Backups is the folder with the snapshots: what the claim is in a cluster.
	Backups string

	mu      sync.Mutex
	members map[types.UID]*member
}

// Run follows the Pods until ctx ends, and returns when the last member has.
func (k *Kubelet) Run(ctx context.Context) error {
	k.mu.Lock()
	k.members = map[types.UID]*member{}
	k.mu.Unlock()
	defer k.stopAll()
	for ctx.Err() == nil {
		changes, err := k.Client.Watch(ctx, &corev1.PodList{}, client.HasLabels{etcdcluster.MemberLabel})
		if err != nil {
			return fmt.Errorf("watch the pods of members: %w", err)
		}
		// Without a revision a watch begins with all that there is.
		for event := range changes.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Bookmark {
				k.follow(ctx, event.Type, pod)
			}
		}
		changes.Stop()
	}
	return nil
}

func (k *Kubelet) follow(ctx context.Context, change watch.EventType, pod *corev1.Pod) {
	k.mu.Lock()
	m := k.members[pod.UID]
	k.mu.Unlock()
	ended := pod.Status.Phase == corev1.PodFailed
	switch {
	case change == watch.Deleted:
		k.end(m)
	case pod.DeletionTimestamp != nil:
		k.end(m)
		now := client.GracePeriodSeconds(0)
		_ = k.Client.Delete(ctx, pod, now) // it goes by itself otherwise
	case m == nil && !ended:
		m = &member{pod: pod, dir: filepath.Join(k.Dir, string(pod.UID)), backups: k.Backups, done: make(chan struct{})}
		m.ctx, m.cancel = context.WithCancel(ctx)
		k.mu.Lock()
		k.members[pod.UID] = m
		k.mu.Unlock()
		go func() {
			defer close(m.done)
			m.run(func() { _ = k.report(ctx, pod, corev1.PodRunning) })
		}()
	}
}

// end stops a member and forgets its data.
func (k *Kubelet) end(m *member) {
	if m == nil {
		return
	}
	m.cancel()
	<-m.done
	_ = os.RemoveAll(m.dir) // a temporary folder of the caller
}

func (k *Kubelet) stopAll() {
	k.mu.Lock()
	all := make([]*member, 0, len(k.members))
	for _, m := range k.members {
		all = append(all, m)
	}
	k.mu.Unlock()
	for _, m := range all {
		m.cancel()
	}
	for _, m := range all {
		<-m.done
	}
}

// Kill ends a member as the loss of its node does: at once, data and all. Its
// Pod is marked as failed.
func (k *Kubelet) Kill(ctx context.Context, namespace, name string) error {
	k.mu.Lock()
	var found *member
	for _, m := range k.members {
		if m.pod.Namespace == namespace && m.pod.Name == name && m.ctx.Err() == nil {
			found = m
		}
	}
	k.mu.Unlock()
	if found == nil {
		return fmt.Errorf("kill %s/%s: it does not run", namespace, name)
	}
	k.end(found)
	return k.report(ctx, found.pod, corev1.PodFailed)
}

// Running are the names of the members that run, in order.
func (k *Kubelet) Running() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, m := range k.members {
		if m.serves.Load() {
			out = append(out, m.pod.Name)
		}
	}
	slices.Sort(out)
	return out
}

// report writes the status of a Pod.
func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) error {
	ready, runs := corev1.ConditionFalse, phase == corev1.PodRunning
	if runs {
		ready = corev1.ConditionTrue
	}
	container := map[string]any{"name": "etcd", "ready": runs, "started": runs, "restartCount": 0, "image": "", "imageID": ""}
	if runs {
		container["state"] = map[string]any{"running": map[string]any{}}
	}
	status, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{
			"phase": phase, "podIP": "127.0.0.1", "podIPs": []any{map[string]any{"ip": "127.0.0.1"}},
			"conditions":        []any{map[string]any{"type": corev1.PodReady, "status": ready}},
			"containerStatuses": []any{container},
		},
	})
	if err != nil {
		return err
	}
	target := &corev1.Pod{}
	target.Namespace, target.Name = pod.Namespace, pod.Name
	return client.IgnoreNotFound(k.Client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, status)))
}
