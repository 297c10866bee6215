// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package match decides which webhooks and policies concern a write.
//
// A plugin compiles the rules and selectors of each configuration into [Constraints], and
// keeps all of them in an [Index], which is made anew when a configuration changes:
//
//	index := match.NewIndex(deps, items, func(i *item) *match.Constraints { return i.constraints })
//
// For each write, [Index.Candidates] returns the items whose rules name the resource, from
// a map. Only if there are some, the plugin makes a [Request] and asks
// [Constraints.Matches] and [Conditions.Match], which look at labels and at the object.
package match
