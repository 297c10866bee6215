// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler chooses nodes for Pods, with the filters, the order and the messages of
// kube-scheduler's default profile. It reads no store and writes nothing: a [World] goes in, a
// node or the reason why there is none comes out, the same for the same input.
//
// What is filtered: cordons, taints, node selector and required node affinity, host ports,
// requests against what nodes allocate, claims in use and the node affinity of volumes,
// topology spread constraints that must hold, and required affinity and anti-affinity between
// Pods, in that order.
//
// Of the nodes that remain, the one with these properties is chosen, the first that
// distinguishes them deciding: the fewest PreferNoSchedule taints that are not tolerated; the
// most weight of preferred node affinity; the lowest share of CPU and memory requested, the Pod
// included; the fewest Pods; the first name. Other preferences have no effect, and no Pod is
// preempted for another.
package scheduler
