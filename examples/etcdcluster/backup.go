// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
)

// stamp is the time in the name of a snapshot, so that names sort by time.
const stamp = "20060102t150405z"

// Snapshots are the files of a folder, the claim etcd-backups in a cluster.
type Snapshots string

// Save writes a snapshot, which appears when it is complete.
func (s Snapshots) Save(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(string(s), ".partial-*")
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", name, err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone by then when all went well
	err = write(file)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(s), name))
	}
	if err != nil {
		return fmt.Errorf("save snapshot %s: %w", name, err)
	}
	return nil
}

// Of lists the snapshots of a cluster, oldest first.
func (s Snapshots) Of(c *v1.EtcdCluster) ([]v1.Snapshot, error) {
	files, err := os.ReadDir(string(s))
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var out []v1.Snapshot
	for _, f := range files {
		text, ok := strings.CutPrefix(f.Name(), prefix(c))
		if at, err := time.Parse(stamp, text); ok && err == nil {
			out = append(out, v1.Snapshot{Name: f.Name(), Time: metav1.NewTime(at)})
		}
	}
	slices.SortFunc(out, func(a, b v1.Snapshot) int { return a.Time.Compare(b.Time.Time) })
	return out, nil
}

func prefix(c *v1.EtcdCluster) string { return c.Namespace + "." + c.Name + "." }

// backup takes a snapshot if one is due, and returns in how long the next is.
// Which there are is read from the folder, not remembered.
func (r *Reconciler) backup(ctx context.Context, c *v1.EtcdCluster, speaker string) (time.Duration, error) {
	if c.Spec.Backup == nil {
		return resync, nil
	}
	taken, err := r.Snapshots.Of(c)
	if err != nil {
		return 0, err
	}
	if n := len(taken); n > 0 {
		c.Status.LastBackup = &taken[n-1]
		if due := taken[n-1].Time.Add(c.Spec.Backup.Every.Duration); due.After(r.Now()) {
			return min(due.Sub(r.Now()), resync), nil
		}
	}
	if err := r.snapshot(ctx, c, speaker); err != nil {
		return 0, err
	}
	for _, old := range taken[:max(0, len(taken)+1-int(c.Spec.Backup.Keep))] {
		if err := os.Remove(filepath.Join(string(r.Snapshots), old.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("delete snapshot: %w", err)
		}
	}
	return min(c.Spec.Backup.Every.Duration, resync), nil
}

func (r *Reconciler) snapshot(ctx context.Context, c *v1.EtcdCluster, speaker string) error {
	at := metav1.NewTime(r.Now().UTC().Truncate(time.Second))
	name := prefix(c) + at.Format(stamp)
	write := func(w io.Writer) error {
		return r.Etcd.Snapshot(ctx, r.Addresses.Client(c.Namespace, speaker), w)
	}
	if err := r.Snapshots.Save(name, write); err != nil {
		return err
	}
	c.Status.LastBackup = &v1.Snapshot{Name: name, Time: at}
	controller.Emit(ctx, controller.UserEvent{Reason: "BackupTaken", Action: "Backup", Note: "took the snapshot " + name})
	return nil
}

// Cleanup takes a last snapshot before a cluster that has backups goes. A
// cluster that cannot give one does not stay for it.
func (r *Reconciler) Cleanup(ctx context.Context, c *v1.EtcdCluster) (controller.FinalizerResult, error) {
	if c.Spec.Backup == nil {
		return controller.Finalized(), nil
	}
	v, err := r.observe(ctx, c)
	if err != nil {
		return controller.FinalizerResult{}, err
	}
	speaker, ok := v.speaker()
	if !ok {
		controller.Emit(ctx, controller.UserEvent{Warning: true, Reason: "NoLastBackup", Action: "Backup", Note: "the cluster goes without a last snapshot: it has no quorum"})
		return controller.Finalized(), nil
	}
	if err := r.snapshot(ctx, c, speaker); err != nil {
		return controller.FinalizerResult{}, err
	}
	return controller.Finalized(), nil
}
