// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhookclient calls webhooks: those of admission, and those that convert custom resources.
//
// Users who may write webhook configurations decide where the server connects to. [Options.Reach]
// bounds that; it is checked for the address that a connection is made to, after names have been
// resolved. Redirects are not followed, no proxy is taken from the environment, the time and the
// size of an answer are bounded, and nothing of the credentials of the server's clients is sent.
package webhookclient
