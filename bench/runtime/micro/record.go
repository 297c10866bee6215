// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// StatusPod is the Pod whose status is written.
var StatusPod = types.NamespacedName{Namespace: "default", Name: "status"}

// Record measures what the flight recorder takes of a reconcile with one status write:
// against a canned answer, with the recorder and without in turn, as the difference would be
// lost in what a connection takes; of which share that is, against the server of a
// configuration, with a connection as operators have one. All is CPU time of this process,
// in which no server runs.
func Record(ctx context.Context, side Recording, server *rest.Config, process func() time.Duration) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &measurement{process: process}
	var steps [2]func() error
	for i, recorded := range []bool{true, false} {
		canned, err := newCanned(builtin, 1, true)
		if err != nil {
			return nil, err
		}
		pod, err := canned.encode(builtin.object(7, revision+1, true))
		if err != nil {
			return nil, err
		}
		if steps[i], err = writing(ctx, side, config(patched{canned, pod}), recorded); err != nil {
			return nil, err
		}
	}
	least, err := m.beside(1500, steps[0], steps[1])
	if err != nil {
		return nil, err
	}
	if err := createPod(ctx, server); err != nil {
		return nil, err
	}
	var connected [2]func() error
	for i, recorded := range []bool{true, false} {
		if connected[i], err = writing(ctx, side, server, recorded); err != nil {
			return nil, err
		}
	}
	whole, err := m.beside(150, connected[0], connected[1])
	if err != nil {
		return nil, err
	}
	record := max(least[0].cpu-least[1].cpu, 0.01)
	return Result{
		"status write CPU": whole[1].cpu, "status write recorder CPU": record,
		"status write recorder share": 100 * record / whole[1].cpu,
	}, nil
}

// writing returns what makes one reconcile with a status write and waits for it.
func writing(ctx context.Context, side Recording, config *rest.Config, recorded bool) (once func() error, err error) {
	done := make(chan error, 1)
	enqueue, err := side.WriteStatus(ctx, config, recorded, func(err error) { done <- err })
	return func() error { enqueue(); return <-done }, err
}

// createPod creates the Pod, unless it is there.
func createPod(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"none"}]}}`, StatusPod.Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath("/api/v1/namespaces", StatusPod.Namespace, "pods").String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated && answer.StatusCode != http.StatusConflict {
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("create the Pod: %s: %s %w", answer.Status, text, err)
	}
	return nil
}
