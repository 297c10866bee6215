// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package vfs

import "errors"

// ErrLocked: another process has the lock.
var ErrLocked = errors.New("vfs: locked by another process")
