// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/machines/api/v1"
)

// runner is the controller of machines. It is in the server, as a kubelet is on its node.
type runner struct {
	client.Client
	host *host
}

// Reconcile starts the process of a machine, reports what becomes of it, and takes the next
// step of its deletion.
func (r *runner) Reconcile(ctx context.Context, q controller.Request) (controller.Result, error) {
	m, p := &v1.Machine{}, r.host.process(q.NamespacedName)
	err := r.Get(ctx, q.NamespacedName, m)
	deleted := apierrors.IsNotFound(err)
	if err != nil && !deleted {
		return controller.Result{}, err
	}
	if p != nil && (deleted || p.uid != m.UID) { // the machine of the process was deleted, by force
		p.signal(syscall.SIGKILL)
		if !p.exited() {
			return controller.Wait(), nil // its end is a request of its own
		}
		r.host.forget(q.NamespacedName, p)
		p = nil
	}
	if deleted {
		return controller.Done(), nil
	}
	if m.DeletionTimestamp != nil {
		return r.stop(ctx, m, p)
	}
	before := m.DeepCopy()
	if m.Status.Phase == v1.Exited {
		return controller.Done(), nil
	}
	if p == nil { // a new machine, or the server was restarted
		if p, err = r.host.start(q.NamespacedName, m); err != nil {
			m.Status = v1.MachineStatus{Phase: v1.Exited, Message: err.Error()}
			return controller.Done(), r.Status().Patch(ctx, m, client.MergeFrom(before))
		}
	}
	p.allow(m.Spec.Ports)
	m.Status = status(p, v1.Running)
	return controller.Done(), r.Status().Patch(ctx, m, client.MergeFrom(before))
}

// stop takes the next step of a deletion: SIGTERM, SIGKILL when the grace period is over,
// and the end of the object when the process has ended.
func (r *runner) stop(ctx context.Context, m *v1.Machine, p *process) (controller.Result, error) {
	if p == nil || p.exited() {
		if p != nil {
			r.host.forget(client.ObjectKeyFromObject(m), p)
		}
		err := r.Delete(ctx, m, client.GracePeriodSeconds(0), client.Preconditions{UID: &m.UID})
		return controller.Done(), client.IgnoreNotFound(err)
	}
	before := m.DeepCopy()
	left, phase, signal := time.Until(m.DeletionTimestamp.Time), v1.Stopping, syscall.SIGTERM
	if left <= 0 {
		phase, signal = v1.Killed, syscall.SIGKILL
	}
	if m.Status.Phase != phase {
		m.Status = status(p, phase)
		if err := r.Status().Patch(ctx, m, client.MergeFrom(before)); apierrors.IsNotFound(err) {
			return controller.Done(), nil
		} else if err != nil {
			return controller.Result{}, err
		}
		p.signal(signal)
	}
	if phase == v1.Killed {
		return controller.Wait(), nil
	}
	return controller.After(left), nil
}

// status is that of a machine with a process.
func status(p *process, phase string) v1.MachineStatus {
	if !p.exited() {
		return v1.MachineStatus{Phase: phase, PID: p.cmd.Process.Pid}
	}
	return v1.MachineStatus{Phase: v1.Exited, ExitCode: &p.code}
}
