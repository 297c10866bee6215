// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiservice has APIServices: which server serves a version of an API
// group. Those of what this server has itself are there from the start, those of
// custom resources come and go with their definitions. A version that another
// server is said to serve is answered with 503: requests are not passed on yet.
//
// The kind is [Aggregation.Resource], the objects of a fresh cluster are those of
// [Boot], and [Controller] keeps them as they should be.
package apiservice
