// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is a cluster as etcd and a kubelet would have it, reduced to what a plan
// can see and change.
type model struct {
	*rand.Rand
	size    int
	next    uint64
	members map[string]Member
	pods    map[string]podState
	founded bool
}

// serves reports that a member's process takes part.
func (m *model) serves(name string) bool { return m.members[name].Started && m.pods[name] == alive }

func (m *model) voters() (all, serving int) {
	for name, member := range m.members {
		if member.Learner {
			continue
		}
		all++
		if m.serves(name) {
			serving++
		}
	}
	return all, serving
}

// quorate reports that the voters can agree.
func (m *model) quorate() bool {
	all, serving := m.voters()
	return all > 0 && serving >= quorum(all)
}

func (m *model) view() view {
	v := view{size: m.size, name: func(i int) string { return fmt.Sprint(i) }, pods: maps.Clone(m.pods), answers: map[string]Status{}, founded: m.founded}
	v.voters, _ = m.voters()
	if !m.quorate() {
		return v
	}
	for _, name := range slices.Sorted(maps.Keys(m.members)) {
		v.members = append(v.members, m.members[name])
		if m.serves(name) {
			v.answers[name] = Status{Learner: m.members[name].Learner}
		}
	}
	m.founded = true
	return v
}

// take does what a step asks for.
func (m *model) take(s step) {
	member := m.members[s.member]
	switch s.action {
	case found:
		m.next++
		m.members = map[string]Member{s.member: {ID: m.next, Name: s.member, Started: true}}
		m.pods[s.member] = alive
	case add:
		m.next++
		m.members[s.member] = Member{ID: m.next, Name: s.member, Learner: true}
	case start:
		m.pods[s.member] = alive
	case promote:
		member.Learner = false
		m.members[s.member] = member
	case remove:
		delete(m.members, s.member)
	case stop:
		m.pods[s.member] = leaving
	}
}

// pass lets time pass: Pods that are deleted go, members whose Pods run start.
func (m *model) pass() {
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		member, is := m.members[name]
		switch {
		case m.IntN(2) == 0:
		case m.pods[name] == leaving:
			delete(m.pods, name)
		case m.pods[name] == alive && is && !member.Started:
			member.Started = true
			m.members[name] = member
		}
	}
}

// harm loses a Pod if the quorum survives it.
func (m *model) harm() {
	names := slices.Sorted(maps.Keys(m.pods))
	if len(names) == 0 {
		return
	}
	name := names[m.IntN(len(names))]
	was := m.pods[name]
	if m.pods[name] = []podState{dead, leaving}[m.IntN(2)]; m.quorate() {
		return
	}
	m.pods[name] = was
}

// TestPlansKeepTheQuorumAndArrive plays thousands of histories with losses and
// changes of the size between the steps.
func TestPlansKeepTheQuorumAndArrive(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		m := &model{Rand: rand.New(rand.NewPCG(seed, 0)), size: 3, members: map[string]Member{}, pods: map[string]podState{}}
		const troubled, limit = 200, 600
		var last step
		for i := range limit {
			if i < troubled {
				switch m.IntN(8) {
				case 0:
					m.harm()
				case 1:
					m.size = 1 + m.IntN(maxSize)
				}
			}
			m.pass()
			before := m.quorate()
			if last = plan(m.view()); last.action == nothing && i >= troubled {
				break
			}
			m.take(last)
			if before && !m.quorate() {
				t.Fatalf("seed %d, step %d: %+v took the quorum away: %+v, Pods %v", seed, i, last, m.members, m.pods)
			}
		}
		maps.DeleteFunc(m.pods, func(_ string, state podState) bool { return state == leaving }) // in the end they go
		all, serving := m.voters()
		if last.action != nothing || all != m.size || serving != m.size || len(m.pods) != m.size {
			t.Fatalf("seed %d did not arrive: %+v; %d voters, %d serve, %d wanted, Pods %v", seed, last, all, serving, m.size, m.pods)
		}
	}
}
