// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhooks calls admission webhooks: the plugins MutatingAdmissionWebhook and
// ValidatingAdmissionWebhook.
//
// The configurations are read from the store when one of them has changed, and compiled
// into hooks ([hook]) and an index of their rules (package match). A write that no rule
// names costs a look-up in that index. For the others:
//
//   - [Mutating] calls one hook after the other, in the order of the names of their
//     configurations. A patch makes a new object, which is defaulted, pruned and the
//     object of the write from then on.
//   - [Validating] calls all hooks at once and waits for all of them.
//
// No lock is held while a webhook is called: it may write to the same object, or to the
// configurations. A write that began keeps the configurations that it began with for the
// pass.
package webhooks
