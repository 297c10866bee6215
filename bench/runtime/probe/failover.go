// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/bench/runtime/micro"
)

// contender is one of the managers that want to lead.
type contender struct {
	stop        context.CancelFunc
	warm, leads chan struct{} // closed
	ended       chan error
}

func contend(ctx context.Context, side Side, config *rest.Config) *contender {
	ctx, stop := context.WithCancel(ctx)
	c := &contender{stop: stop, warm: make(chan struct{}), leads: make(chan struct{}), ended: make(chan error, 1)}
	warm, leads := sync.OnceFunc(func() { close(c.warm) }), sync.OnceFunc(func() { close(c.leads) })
	go func() { c.ended <- side.Contend(ctx, rest.CopyConfig(config), warm, func(string) { leads() }) }()
	return c
}

// failover measures from the clean stop of a leader to the first reconcile of
// the next one, whose caches are warm.
func failover(side Side, kubeconfig string) (_ micro.Result, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	first := contend(ctx, side, config)
	if err := await(ctx, first, first.leads); err != nil {
		return nil, err
	}
	second := contend(ctx, side, config)
	if err := await(ctx, second, second.warm); err != nil {
		return nil, err
	}
	begun := time.Now()
	first.stop()
	if err := await(ctx, second, second.leads); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	second.stop()
	return micro.Result{"failover": millis(took)}, errors.Join(ignoreCanceled(<-first.ended), ignoreCanceled(<-second.ended))
}

func await(ctx context.Context, c *contender, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case err := <-c.ended:
		return fmt.Errorf("the manager ended: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}
