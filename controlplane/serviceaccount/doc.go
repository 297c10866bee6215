// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount issues and authenticates the tokens of ServiceAccounts, creates
// the account and the certificates that every namespace has, and gives Pods the volume
// with their token.
//
//   - [Tokens] issues tokens through the subresource serviceaccounts/token,
//     authenticates them, and publishes the documents by which others can.
//   - [Admission] gives Pods an account and the volume with its token.
//   - [NewDefaultAccounts] and [NewRootCAs] are the controllers of what every
//     namespace has; [Provide] makes it before the creation of a namespace
//     returns, so that clients need not wait.
//   - [NewTokenSecrets] is the controller of tokens that are kept in Secrets.
//
// A token is a JSON Web Token (RFC 7519). It says for which audiences, for how
// long, and for which account; it may be bound to a Pod, a Secret or a Node. It
// holds as long as the account and that object exist with the same UID: every
// authentication looks them up. See KEP-1205 and KEP-4193.
package serviceaccount
