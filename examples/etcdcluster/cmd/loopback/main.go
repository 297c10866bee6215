// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command loopback runs the operator together with a kubelet for its Pods: every
// member is a real etcd in this process, on a loopback address. With it a control
// plane without nodes, such as that of `steer up`, is enough to see the operator
// at work.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/examples/etcdcluster"
	"github.com/steer-dev/steer/examples/etcdcluster/loopback"
	"github.com/steer-dev/steer/manager"
)

func main() {
	dir, err := os.MkdirTemp("", "etcdcluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	backups := dir + "/backups"
	if err := os.Mkdir(backups, 0o700); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("members and snapshots are in", dir)
	fmt.Println("Try: kubectl apply -f config/samples; kubectl get etcd --watch")
	op := etcdcluster.Operator(etcdcluster.Options{Addresses: loopback.Addresses{}, Snapshots: etcdcluster.Snapshots(backups)})
	setup := op.Setup
	op.Setup = func(ctx context.Context, m *manager.Manager) error {
		kubelet := &loopback.Kubelet{Client: m.Live(), Dir: dir, Backups: backups}
		if err := m.Add(manager.RunnableFunc(kubelet.Run)); err != nil {
			return err
		}
		return setup(ctx, m)
	}
	steer.Main(op)
}
