// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/steer-dev/steer/bench/report"
)

// groupEtcd is the group of [RunEtcd].
const groupEtcd = "etcd"

// RunEtcd measures one server of each side on the etcd that kube-apiserver was started
// with: both run all the time, and are measured in turn. The binary of steer is steer-etcd.
func RunEtcd(ctx context.Context, out *report.Report, log io.Writer, steer Steer, upstream Kubernetes, scale Scale) (err error) {
	kubernetes, err := upstream.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kubernetes.Stop()) }()
	steer.Etcd = kubernetes.Etcd
	own, err := steer.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop()) }()
	both := []struct {
		name     report.Side
		instance *Instance
	}{{report.Steer, own}, {report.Upstream, kubernetes}}
	for _, side := range both {
		clients, done := side.instance.NewClients(1)
		_, err := prepare(ctx, clients[0])
		done()
		if err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
	}
	for round := range out.Turns(ctx, groupEtcd, scale.Rounds) {
		for _, side := range both {
			fmt.Fprintf(log, "etcd: round %d, %s\n", round+1, side.name)
			if err := measureOnEtcd(ctx, out, side.name, side.instance, scale); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
	}
	return nil
}

func measureOnEtcd(ctx context.Context, out *report.Report, side report.Side, instance *Instance, scale Scale) error {
	clients, done := instance.NewClients(16)
	defer done()
	add := func(name, unit string, better report.Direction, value float64) {
		out.Add(groupEtcd, name, unit, better, side, value)
	}
	warm := func(ctx context.Context, c *Client, _ int) error {
		return send(ctx, c, http.MethodGet, collection+"/first", "", nil)
	}
	if _, err := drive(ctx, clients, 200, warm); err != nil {
		return err
	}
	if err := measureVerbs(ctx, add, instance, clients[:1], "1 client", max(scale.Objects/20, 20)); err != nil {
		return err
	}
	if err := measureVerbs(ctx, add, instance, clients, "16 clients", scale.Objects); err != nil {
		return err
	}
	return measureWatch(ctx, add, instance, items(), "20 watchers", 20, scale.Writes)
}
