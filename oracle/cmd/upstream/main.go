// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command upstream runs kube-apiserver and etcd until it is interrupted or its
// standard input ends. Its first line of output is JSON: url, token, ca, the URL of etcd, pids
// and the seconds that the start took.
package main

import (
	"context"

	"github.com/steer-dev/steer/oracle/upstream"
)

func main() {
	upstream.Main("upstream", func(_ context.Context, server *upstream.Server) (map[string]any, error) {
		return map[string]any{
			"url": server.URL, "token": server.Token, "ca": string(server.CA),
			"etcd": server.Etcd(), "pids": server.PIDs(), "seconds": server.Started.Seconds(),
		}, nil
	})
}
