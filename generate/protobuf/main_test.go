// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf_test

import "flag"

// update rewrites what scripts expect to what happens.
var update = flag.Bool("update", false, "rewrite the expectations of scripts")
