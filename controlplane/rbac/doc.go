// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac authorizes requests by roles and bindings.
//
// An [Authorizer] reads Roles, ClusterRoles and their bindings from the store
// and answers as the RBAC authorizer of Kubernetes, reason included. It indexes
// bindings by subject and decodes a role once per version of it, so that an
// answer takes a few comparisons; whether the index is still true is asked of the
// store for every answer, so that none is older than the last write.
//
// [Escalation] is the admission that keeps people from granting what they do not
// have. [Boot] says which objects a control plane begins with, [Aggregator] is
// the controller that fills roles from others by label.
//
// See https://kubernetes.io/docs/reference/access-authn-authz/rbac/.
package rbac
