// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-envtest runs a suite of envtest and prints what it took as JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/steer-dev/steer/bench/envtest/suite"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	var s suite.Suite
	flag.IntVar(&s.Tests, "tests", 50, "how many tests")
	flag.IntVar(&s.AtOnce, "at-once", 1, "how many of them run at once")
	flag.DurationVar(&s.Within, "within", time.Hour, "begin no more tests after this time")
	flag.StringVar(&s.Definitions, "definitions", "envtest/config/crd", "folder of the definitions to install")
	flag.Parse()
	result, err := s.Run(context.Background())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe-envtest:", err)
		os.Exit(1)
	}
}
