// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube-apiserver is the upstream program, built from its module.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
