// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager
