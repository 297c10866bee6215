// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || portable

package envtest

import (
	"os"
	"time"
)

// parentInterval is how often the parent is looked for.
const parentInterval = 500 * time.Millisecond

// awaitParent returns a channel that is closed when the process that started
// this one has ended, however it did: the child then has another parent.
func awaitParent() (<-chan struct{}, error) {
	parent, gone := os.Getppid(), make(chan struct{})
	go func() {
		defer close(gone)
		for range time.Tick(parentInterval) {
			if os.Getppid() != parent {
				return
			}
		}
	}()
	return gone, nil
}
