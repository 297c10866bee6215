// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"strings"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
)

// Wait returns the object of a key, "namespace/name" or "name", as soon as it
// exists and the condition holds; await.Ready is such a condition. It watches;
// nothing is polled. When the condition does not hold within the timeout the
// test fails and shows the last state.
func Wait[T client.Object](e *Env, key string, condition func(T) bool) T {
	e.Helper()
	return wait(e, key, func(obj T) bool { return !await.Gone(obj) && condition(obj) })
}

// WaitGone waits until the object of a key does not exist.
func WaitGone[T client.Object](e *Env, key string) {
	e.Helper()
	wait(e, key, await.Gone[T])
}

func wait[T client.Object](e *Env, name string, condition func(T) bool) T {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.ctx, e.timeout)
	defer cancel()
	obj, err := await.Object(ctx, e.Client, Key(name), condition)
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	return obj
}

// WaitList returns the list as soon as the condition holds for it.
func WaitList[L client.ObjectList](e *Env, condition func(L) bool, opts ...client.ListOption) L {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.ctx, e.timeout)
	defer cancel()
	list, err := await.List(ctx, e.Client, condition, opts...)
	if err != nil {
		e.Fatalf("steertest: %v", err)
	}
	return list
}

// Key reads "namespace/name" or "name".
func Key(s string) client.ObjectKey {
	if namespace, name, ok := strings.Cut(s, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	return client.ObjectKey{Name: s}
}
