// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies enforces ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
//
// A [set] has the policies of one kind that have bindings, by name. It is read from the
// store again after a write of a policy or binding, so that they are in force when that
// write is answered. A write looks up the policies whose rules name its resource
// ([match.Index]); where there are none, nothing else happens.
//
// For each binding that matches, the parameters are read from the store ([parameters]),
// and the expressions of the policy are evaluated with each of them. They are compiled
// when they are first needed ([programs]), once for each generation of the policy.
package policies
