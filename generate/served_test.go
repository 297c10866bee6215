// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"path/filepath"
	"testing"

	"github.com/steer-dev/steer/steertest"
)

// served starts a control plane with the definitions in a folder, for programs
// outside this process, and returns its kubeconfig.
func served(t *testing.T, crds string) string {
	t.Helper()
	options := steertest.Options{CRDs: []string{crds}}
	options.Plane.Listen = "127.0.0.1:0"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := steertest.New(t, options).Plane.WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	return file
}
