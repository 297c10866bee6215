// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/controller"
)

// A retry panics at the same line with other values of its arguments: it is the same mistake.
func TestAPanicIsReportedOnceWhateverItsArguments(t *testing.T) {
	t.Parallel()
	const stack = "goroutine 7 [running]:\nruntime/debug.Stack()\n\t/go/src/runtime/debug/stack.go:26 +0x5e\npanic({0x%d?, 0x5d?})\n\t/go/src/runtime/panic.go:860 +0x13a\n" +
		"shop.(*Reconciler).Reconcile({0x7f%[1]d?, 0x9?}, 0x%[1]d?)\n\t/shop/%[2]s +0x32\ngithub.com/steer-dev/steer/controller.(*controller[...]).attempt(0xc%[1]d)\n\t/steer/controller/controller.go:280 +0x1f"
	var told []string
	finder := NewFinder(runtime.NewScheme(), func(_ error, advice string) { told = append(told, advice) })
	for i, line := range []string{"shop.go:9", "shop.go:9", "shop.go:12"} {
		finder.Look(&controller.PanicError{Value: "no bread", Stack: fmt.Appendf(nil, stack, i, line)})
	}
	const want = "panic(...)\n\t/go/src/runtime/panic.go:860\nshop.(*Reconciler).Reconcile(...)\n\t/shop/shop.go:9"
	if len(told) != 2 || told[0] != want {
		t.Errorf("told %d times, want 2:\n%q", len(told), told)
	}
}
