// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/steertest"
)

// BenchmarkNew measures a control plane for a test, from nothing to ready.
func BenchmarkNew(b *testing.B) {
	s := scheme(b)
	for b.Loop() {
		steertest.New(b, steertest.Options{Scheme: s})
	}
}

// BenchmarkFirstReconcile measures the same with an operator, up to what its
// first reconcile has written.
func BenchmarkFirstReconcile(b *testing.B) {
	s := scheme(b)
	for b.Loop() {
		env := steertest.New(b, steertest.Options{Scheme: s, Setup: setup})
		env.Create(configMap("source"))
		steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
	}
}
