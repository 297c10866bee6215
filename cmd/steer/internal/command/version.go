// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/module"
)

const (
	// Module is the module of this program.
	Module = "github.com/steer-dev/steer"
	// KubernetesMinor is the minor version of the Kubernetes API that Steer serves.
	KubernetesMinor = 37
)

// Version is the version of Steer that the binary was built from, "devel" in a
// checkout.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	steer := &info.Main
	for _, dep := range info.Deps { // of another module's tool
		if dep.Path == Module {
			steer = dep
		}
	}
	if steer.Path != Module || steer.Replace != nil || steer.Version == "" || steer.Version == "(devel)" {
		return "devel"
	}
	return steer.Version
}

// Origin is the version of Steer that this program was built from, or the folder of
// the checkout.
func Origin() (version, checkout string) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) && !strings.Contains(file, "@") {
		dir := filepath.Join(filepath.Dir(file), "../../../..")
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return "", dir
		}
	}
	if v := Version(); module.CanonicalVersion(v) != "" {
		return v, ""
	}
	return "", ""
}
