// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

package difftest

import _ "sigs.k8s.io/controller-tools/cmd/controller-gen" // what is compared with
