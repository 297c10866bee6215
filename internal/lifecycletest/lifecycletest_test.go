// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycletest

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
)

// TestGoroutinesFindsWhatIsLeft keeps the suite from passing because it sees nothing.
func TestGoroutinesFindsWhatIsLeft(t *testing.T) {
	t.Parallel()
	id := fmt.Sprintf("%s/%p", t.Name(), t)
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	pprof.Do(t.Context(), pprof.Labels(label, id), func(context.Context) {
		go func() {
			defer close(ended)
			close(begun)
			<-end
		}()
	})
	<-begun
	if got := goroutines(id); !strings.Contains(got, "TestGoroutinesFindsWhatIsLeft") {
		t.Errorf("a goroutine that is left is not found: %q", got)
	}
	close(end)
	<-ended
	for range 1000 {
		if goroutines(id) == "" {
			return
		}
	}
	t.Errorf("a goroutine that has ended is found: %s", goroutines(id))
}
