// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exampletest gives Example functions the testing.TB that steertest wants.
//
// It is a small package of its own because the examples of several folders need it,
// and none of them may import another.
package exampletest

import (
	"context"
	"fmt"
	"testing"
)

// Run calls body with a testing.TB that panics where a test fails, and then runs its
// cleanups, the last one first. Logs are dropped.
func Run(body func(t testing.TB)) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &tb{ctx: ctx}
	defer t.end()
	defer cancel()
	body(t)
}

// tb implements the methods of testing.TB that steertest calls.
type tb struct {
	testing.TB
	ctx   context.Context
	clean []func()
}

func (t *tb) Helper()                      {}
func (t *tb) Name() string                 { return "example" }
func (t *tb) Cleanup(fn func())            { t.clean = append(t.clean, fn) }
func (t *tb) Context() context.Context     { return t.ctx }
func (t *tb) Failed() bool                 { return false }
func (t *tb) Skipped() bool                { return false }
func (t *tb) Log(...any)                   {}
func (t *tb) Logf(string, ...any)          {}
func (t *tb) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (t *tb) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (t *tb) Error(args ...any)            { panic(fmt.Sprint(args...)) }
func (t *tb) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

func (t *tb) end() {
	for i := range t.clean {
		t.clean[len(t.clean)-1-i]()
	}
}
