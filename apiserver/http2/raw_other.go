// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package http2

import (
	"errors"
	"net"
)

// raw is not there: package net reads and writes.
type raw struct{}

func newRaw(net.Conn) *raw { return nil }

func (*raw) read([]byte) (int, error)  { return 0, errors.ErrUnsupported }
func (*raw) write([]byte) (int, error) { return 0, errors.ErrUnsupported }
