// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller turns events into calls of Reconcile.
//
// A reconciler is a type with one method. Its parameter says what is
// reconciled, and [Add] puts it to work:
//
//	func (r *Reconciler) Reconcile(ctx context.Context, web *v1.Web) (controller.Result, error)
//
//	err := controller.Add(m, r,
//		controller.Owns[*appsv1.Deployment](),
//		controller.Finalizer("example.com/cleanup", r.Cleanup),
//		controller.Concurrency(4))
//
// The object is private to the call. Its status belongs to the reconciler: what
// Reconcile changes in it is written afterwards, once, also when it fails.
// Everything else of the object is read-only; changing it is an error.
//
// Reconcile is level-triggered: any event may be lost, merged or repeated, and
// what counts is the state that is read. One object is never reconciled twice
// at once. An object with a deletion timestamp never reaches Reconcile: it goes
// to the functions of the finalizers, and to [OnGone] when it is no more.
//
// A reconciler whose parameter is a [Request], or any other comparable type
// that is not an object, gets the request itself and reads for itself; the
// options Watches and From say where its requests come from.
//
// How an attempt ended is a value: [Done], [After], [Wait], [Retry], or an
// error, which is retried with back-off unless it is [Terminal]. A conflict is
// no failure: it is retried without noise.
package controller
