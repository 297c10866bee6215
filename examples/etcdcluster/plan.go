// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"fmt"
	"maps"
	"slices"
)

// action is what a step does. Each is one write.
type action string

const (
	nothing action = "Nothing" // all is as it should be
	wait    action = "Wait"    // something has to happen first, by itself
	stuck   action = "Stuck"   // only a person can help
	found   action = "Found"   // start the Pod of the first member
	add     action = "Add"     // tell etcd of a new member, as a learner
	start   action = "Start"   // start the Pod of a learner
	promote action = "Promote" // give a learner a vote
	remove  action = "Remove"  // tell etcd that a member goes
	stop    action = "Stop"    // delete the Pod of a member that is none any more
)

// step is what to do next, and why.
type step struct {
	action action
	member string
	id     uint64 // of the member, for promote and remove
	lost   bool   // the member to remove is dead
	reason string // for people
}

// podState is what a Pod can still become.
type podState int

const (
	absent  podState = iota
	alive            // it runs, or is going to
	dead             // it ended, and the member's data with it
	leaving          // it is being deleted
)

// view is the state of one cluster at one moment: all that a plan rests on.
type view struct {
	size    int
	name    func(ordinal int) string
	pods    map[string]podState // by member
	answers map[string]Status   // of the members that answer
	members []Member            // as etcd lists them; nil without a quorum
	// founded reports that the cluster has worked before, with so many voters.
	founded bool
	voters  int
}

// quorum is how many of n voters must agree.
func quorum(n int) int { return n/2 + 1 }

// plan chooses the next step. It remembers nothing: a new operator that sees
// the same view goes on with the same step. One change of the membership follows
// the other, a new member votes only once it has the data, and none is taken away
// that a quorum needs.
func plan(v view) step {
	if v.members == nil {
		return v.withoutQuorum()
	}
	for _, m := range v.members {
		if m.Learner {
			return v.withLearner(m)
		}
	}
	listed := map[string]bool{}
	for _, m := range v.members {
		listed[m.Name] = true
		if state := v.pods[m.Name]; state != alive && len(v.members) > 1 {
			return step{action: remove, member: m.Name, id: m.ID, lost: true, reason: "its Pod is gone, and its data with it"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.pods)) {
		if !listed[name] && v.pods[name] != leaving {
			return step{action: stop, member: name, reason: "it is not a member any more"}
		}
	}
	return v.towardsSize(listed)
}

// withoutQuorum founds a cluster, or waits until one can speak.
func (v view) withoutQuorum() step {
	first, running := v.name(0), 0
	for _, state := range v.pods {
		if state == alive {
			running++
		}
	}
	switch {
	case v.founded && running < quorum(v.voters):
		return step{action: stuck, reason: fmt.Sprintf(
			"%d of %d members are left and %d are needed: restore a snapshot into a new cluster", running, v.voters, quorum(v.voters))}
	case v.founded || running > 0 || v.pods[first] == leaving:
		return step{action: wait, member: first, reason: "the members are not a quorum yet"}
	case v.pods[first] == dead:
		return step{action: stop, member: first, reason: "it ended before there was a cluster"}
	}
	return step{action: found, member: first, reason: "the first member begins a cluster"}
}

// withLearner brings a new member up to a vote. Until then it does not count, so
// it can be given up at any time.
func (v view) withLearner(m Member) step {
	_, answers := v.answers[m.Name]
	state := v.pods[m.Name]
	switch {
	case !slices.Contains(v.wanted(), m.Name), m.Started && state != alive:
		return step{action: remove, member: m.Name, id: m.ID, lost: m.Started, reason: "it ended before it had a vote"}
	case state == absent:
		return step{action: start, member: m.Name, reason: "etcd expects it"}
	case state == dead:
		return step{action: stop, member: m.Name, reason: "it ended before it joined"}
	case state == leaving || !answers:
		return step{action: wait, member: m.Name, reason: m.Name + " has not joined yet"}
	}
	return step{action: promote, member: m.Name, id: m.ID, reason: "it has joined"}
}

// towardsSize takes the last member away or adds the first that is missing.
func (v view) towardsSize(listed map[string]bool) step {
	wanted := v.wanted()
	healthy, last := 0, Member{}
	for _, m := range v.members {
		if _, ok := v.answers[m.Name]; ok {
			healthy++
		}
		if !slices.Contains(wanted, m.Name) && m.Name > last.Name {
			last = m
		}
	}
	// One that is not wanted stays until those that are have taken its place: the
	// first may have been lost while there were more.
	if last.Name != "" && len(v.members) > v.size {
		if _, ok := v.answers[last.Name]; ok {
			healthy--
		}
		if healthy < quorum(len(v.members)-1) {
			return step{action: wait, member: last.Name, reason: "too few of the other members answer"}
		}
		return step{action: remove, member: last.Name, id: last.ID, reason: fmt.Sprintf("%d members are wanted", v.size)}
	}
	for _, name := range wanted {
		switch {
		case listed[name]:
		case healthy < len(v.members):
			return step{action: wait, member: name, reason: fmt.Sprintf("%d of %d members answer", healthy, len(v.members))}
		case v.pods[name] != absent:
			return step{action: wait, member: name, reason: "its former Pod is still there"}
		default:
			return step{action: add, member: name, reason: fmt.Sprintf("%d members are wanted", v.size)}
		}
	}
	return step{action: nothing, reason: fmt.Sprintf("%d of %d members answer", healthy, len(v.members))}
}

// wanted are the names of the members at the wanted size.
func (v view) wanted() []string {
	out := make([]string, v.size)
	for i := range out {
		out[i] = v.name(i)
	}
	return out
}
