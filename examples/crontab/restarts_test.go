// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/crontab/api/v1beta1"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

const (
	// restartsVariable is the number of rolling restarts, 1 if it is not set.
	restartsVariable = "STEER_RESTARTS"
	// writers write at once.
	writers = 4
	// drain is how long a replica serves after it was told to stop. After noticedWrites,
	// or noticedAfter if they take longer, it is an endpoint no more.
	drain         = 5 * time.Second
	noticedWrites = 50
	noticedAfter  = time.Second
)

// TestRollingRestartsFailNoAdmission restarts two replicas one after the other, each
// replaced before it stops, while every write goes through a defaulter, a validator and
// twice through the conversion, over TLS. Where STEER_UPSTREAM_BIN has it, kube-apiserver
// is tried too.
func TestRollingRestartsFailNoAdmission(t *testing.T) {
	t.Parallel()
	restarts := 1
	if text := os.Getenv(restartsVariable); text != "" {
		var err error
		if restarts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("steer", func(t *testing.T) {
		t.Parallel()
		env := steertest.New(t, steertest.Options{})
		env.NeedPlane()
		restartUnderLoad(t, env.Config, restarts)
	})
	t.Run("kube-apiserver", func(t *testing.T) {
		t.Parallel()
		restartUnderLoad(t, kubeapiserver.Server(t), restarts)
	})
}

func restartUnderLoad(t *testing.T, cfg *rest.Config, restarts int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(restarts)*30*time.Second)
	defer cancel()
	s := newService(t)
	c := s.install(ctx, t, cfg)
	begin := func() *replica {
		r := startReplica(ctx, t, cfg, func(o *manager.Options) { o.Webhooks.Drain = drain })
		s.add(r.address())
		return r
	}
	replicas := []*replica{begin(), begin()}
	trusted(ctx, t, c)

	var written atomic.Int64
	loading, endLoad := context.WithCancel(ctx)
	var load sync.WaitGroup
	for i := range writers {
		load.Go(func() { write(ctx, loading, t, c, i, &written) })
	}
	for range restarts {
		for i, old := range replicas {
			address := old.address()
			replicas[i] = begin()
			old.stop()
			old.awaitReady(ctx, t, false)
			late := time.Now().Add(noticedAfter)
			for until := written.Load() + noticedWrites; written.Load() < until && time.Now().Before(late); {
				if pause(ctx) != nil {
					break
				}
			}
			s.remove(address)
			if err := old.await(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			break
		}
	}
	endLoad()
	load.Wait()
	t.Logf("%d writes during %d rolling restarts", written.Load(), restarts)
	for _, r := range replicas {
		r.stop() // both drain at once
	}
	for _, r := range replicas {
		if err := r.await(); err != nil {
			t.Error(err)
		}
	}
}

// write changes an object in v1beta1 until the load ends. No write may fail.
func write(ctx, loading context.Context, t *testing.T, c client.Client, writer int, written *atomic.Int64) {
	ct := &v1beta1.CronTab{Spec: v1beta1.CronTabSpec{Schedule: "@yearly", Image: "image"}}
	ct.Namespace, ct.Name = "default", fmt.Sprintf("load-%d", writer)
	if err := c.Create(ctx, ct); err != nil {
		t.Errorf("a creation failed: %v", err)
		return
	}
	for n := 0; loading.Err() == nil; n++ {
		patch := fmt.Appendf(nil, `{"spec":{"schedule":"@yearly","image":"image-%d"}}`, n)
		if err := c.Patch(ctx, ct, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Errorf("write %d of writer %d failed: %v", n, writer, err)
			return
		}
		if ct.Spec.Schedule != "0 0 1 1 *" {
			t.Errorf("a write was not completed: %q", ct.Spec.Schedule)
			return
		}
		written.Add(1)
	}
}

// pause waits before something is looked at again.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * time.Millisecond):
		return nil
	}
}
