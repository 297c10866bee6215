// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcdcluster is an operator for a system that must not lose its quorum:
// an EtcdCluster is kept at its size, one member after the other.
//
// Each reconcile observes (the Pods, the answers of the members, the membership
// as a quorum of etcd knows it), plans one step, and takes it:
//
//	bigger   DNS name, member add as learner, start, caught up, promote, next
//	smaller  member remove, stop, next
//	lost     member remove, stop, and then as for bigger
//
// The plan is a function of what was observed (plan.go), so that an operator
// that is killed between any two steps, and started again, goes on.
//
// The API is in api/v1, its generated manifests in config, the program in cmd.
// Package loopback runs real etcd members in place of a kubelet.
package etcdcluster

import (
	"cmp"
	"context"
	"flag"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
	"github.com/steer-dev/steer/manager"
)

// Name of the operator.
const Name = "etcdcluster-operator"

// Finalizer that holds a cluster with backups until the last one is taken.
const Finalizer = "etcd.example.com/last-backup"

// maxSize is the largest size that the API allows.
const maxSize = 9

// Options of the operator. The zero value is for a cluster.
type Options struct {
	// Addresses of members. Default ClusterDNS.
	Addresses Addresses
	// Etcd reaches members. Default Network.
	Etcd Etcd
	// Snapshots is the folder for snapshots. Default the flag --backup-dir.
	Snapshots Snapshots
	// Poll is how soon to look again at what etcd does by itself. Default 1 s.
	Poll time.Duration
	// Now is the time. Default time.Now.
	Now func() time.Time
}

// Operator keeps EtcdClusters.
func Operator(o Options) steer.Operator {
	backups := backupDir
	return steer.Operator{
		Name:   Name,
		Scheme: steer.Scheme{v1.AddToScheme, corev1.AddToScheme},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&backups, "backup-dir", backups, "`folder` of the snapshots: where the claim "+BackupClaim+" is mounted")
		},
		Setup: func(_ context.Context, m *manager.Manager) error {
			o := o
			o.Snapshots = cmp.Or(o.Snapshots, Snapshots(backups))
			return setup(m, o)
		},
	}
}

func setup(m *manager.Manager, o Options) error {
	if o.Addresses == nil {
		o.Addresses = ClusterDNS{}
	}
	if o.Etcd == nil {
		o.Etcd = Network{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Poll = cmp.Or(o.Poll, poll)
	r := &Reconciler{
		Options: o, client: m.Client(),
		replaced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "etcdcluster_members_replaced_total", Help: "Members that were lost and replaced.",
		}, []string{"namespace", "name"}),
	}
	if err := m.Registry().Register(r.replaced); err != nil {
		return err
	}
	return controller.Add(m, r,
		controller.Owns[*corev1.Pod](),
		controller.Owns[*corev1.Service](),
		controller.Finalizer(Finalizer, r.Cleanup),
		controller.Concurrency(4))
}
