// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sample-apiserver is the sample of a custom API server that Kubernetes has, built from
// its module. It keeps its objects in etcd.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/sample-apiserver/pkg/cmd/server"
)

func main() {
	options := server.NewWardleServerOptions(os.Stdout, os.Stderr)
	os.Exit(cli.Run(server.NewCommandStartWardleServer(genericapiserver.SetupSignalContext(), options, false)))
}
