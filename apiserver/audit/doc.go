// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit records requests as Kubernetes does: a [Policy] says which ones and how much
// of them, a [Log] writes one JSON line of kind Event (audit.k8s.io/v1) for each stage of a
// request. The server makes an [Event] for each request and completes it on the way; handlers
// and admission find it in the context with [From].
package audit
