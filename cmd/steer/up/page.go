// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	answers "github.com/steer-dev/steer/cmd/steer/internal/explain"
	"github.com/steer-dev/steer/dashboard"
)

// servePage serves the page of a control plane until the returned function is called, and
// returns the line that tells where it is. With the address 0, or none, there is no page.
func servePage(ctx context.Context, address string, config *rest.Config) (line string, stop func(), err error) {
	if address == "" || address == "0" {
		return "", func() {}, nil
	}
	local, err := dashboard.New(dashboard.Options{Title: "Control plane", Objects: answers.NewPlane(config)}).Listen(address)
	if err != nil {
		return "", nil, fmt.Errorf("--page-bind-address: %w", err)
	}
	serving, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = local.Run(serving) // a listener that breaks shows in the browser
	}()
	return "\nIts page: " + local.URL() + "\n", func() {
		cancel()
		<-ended
	}, nil
}
