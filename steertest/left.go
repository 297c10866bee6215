// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/steertest/versions"
)

// leave writes what the control plane and the operator of a failed test have done to a file,
// and logs the line that opens it. An engine reports in its own way.
func (e *Env) leave() {
	if !e.Failed() || e.engine != nil || e.Plane == nil && len(e.recorders) == 0 {
		return
	}
	dir := ""
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		dir = e.ArtifactDir()
	}
	var config *rest.Config
	if e.Plane != nil {
		config = e.Config
	}
	line, err := versions.Leave(config, dir, strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")+"-"+e.Name(), e.recorders)
	if err != nil {
		line = "it is not kept: " + err.Error()
	}
	e.Logf("what the control plane and the operator did can be asked with steer history, steer tree, and\n  %s", line)
}
