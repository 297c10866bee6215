// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest/internal/host"
)

// Replica is another process of the operator under test; see [Env.StartReplica].
type Replica struct {
	env    *Env
	now    *incarnation
	killed atomic.Bool
}

// StartReplica starts the operator once more, beside the one that [Env.StartOperator]
// has started: with a manager, caches and a memory of its own, as another Pod of its
// Deployment would. With Args: {"--leader-elect"} it waits for the lease, without all
// processes reconcile. [Env.Settled] waits for those that lead. The control plane calls
// the webhooks of the process that was started first. The replica runs until the test
// ends, or until Stop or Kill.
//
//	standby := env.StartReplica()
//	env.StopOperator() // the lease is released: standby leads
//	last := env.StartReplica()
//	standby.Kill() // the lease is not released: last leads when it has expired
func (e *Env) StartReplica() *Replica {
	e.Helper()
	defer e.hold()()
	if e.engine != nil {
		e.Fatalf("steertest: StartReplica in a test that package sim runs: that drives one process of the operator; use testing/synctest alone")
	}
	if e.options.Operator.Setup == nil {
		e.Fatalf("steertest: start a replica of the operator: Options.Operator and Options.Setup are missing")
	}
	r := &Replica{env: e}
	var err error
	r.now, err = e.launch(r.connect, func(err error) error {
		if r.killed.Load() {
			return nil
		}
		return err
	})
	if err == nil {
		e.replicas = append(e.replicas, r)
		e.Cleanup(r.Stop)
		err = e.serveWebhooks(r.now.manager)
	}
	if err != nil {
		e.Fatalf("steertest: start a replica of the operator: %v", err)
	}
	return r
}

// Manager runs the replica.
func (r *Replica) Manager() *manager.Manager { return r.now.manager }

// Stop tells the replica to end, as Kubernetes does when it deletes a Pod, and waits until it
// has. It does nothing after the first time.
func (r *Replica) Stop() {
	defer r.env.hold()()
	r.env.webhooks.Remove(r.now.manager.Webhooks())
	r.now.cancel()
	<-r.now.ended
	r.env.replicas = slices.DeleteFunc(r.env.replicas, func(other *Replica) bool { return other == r })
}

// Kill ends the replica as a node that fails does: nothing that it sends from now on
// arrives, so that it keeps a lease until that expires.
func (r *Replica) Kill() {
	r.killed.Store(true)
	r.Stop()
}

// connect is cfg for a process that may be killed.
func (r *Replica) connect(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &host.Severed{RoundTripper: next, Cut: &r.killed}
	})
	return cfg
}

// processes are those of the operator that run.
func (e *Env) processes() (all []*incarnation) {
	defer e.hold()()
	if now := e.running.Load(); now != nil {
		all = append(all, now)
	}
	for _, r := range e.replicas {
		all = append(all, r.now)
	}
	return all
}

// working are the processes of the operator that reconcile: where one of them has to lead, it
// waits until one does.
func (e *Env) working(ctx context.Context) []*incarnation {
	all := e.processes()
	if len(all) < 2 || !all[0].elects {
		return all
	}
	led := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, one := range all {
		led = append(led, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(one.manager.Elected())})
	}
	if _, _, _ = reflect.Select(led); ctx.Err() != nil {
		return all // and the error of Idle says that none leads
	}
	return slices.DeleteFunc(all, func(one *incarnation) bool {
		select {
		case <-one.manager.Elected():
			return false
		default:
			return true
		}
	})
}
