// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"fmt"
	"testing"
)

// at describes a view in short: members as etcd lists them, "a" a voter that
// answers, "a!" one that is silent, "a-" one without a Pod, "a+" a learner that
// has not started, "a*" one that answers; then the Pods of no members.
func at(size int, members []string, pods map[string]podState) view {
	v := view{size: size, name: func(i int) string { return string(rune('a' + i)) }, pods: map[string]podState{}, answers: map[string]Status{}}
	for i, m := range members {
		name, mark := m[:1], m[1:]
		entry := Member{ID: uint64(i + 1), Name: name, Learner: mark == "+" || mark == "*", Started: mark != "+"}
		v.members = append(v.members, entry)
		if mark == "" || mark == "!" || mark == "*" {
			v.pods[name] = alive
		}
		if mark == "" || mark == "*" {
			v.answers[name] = Status{Learner: entry.Learner}
		}
	}
	for name, state := range pods {
		v.pods[name] = state
	}
	return v
}

func TestPlanTakesOneStepAtATime(t *testing.T) {
	t.Parallel()
	founded := func(v view, voters int) view {
		v.founded, v.voters = true, voters
		return v
	}
	type pods = map[string]podState
	for name, c := range map[string]struct {
		view view
		want string
	}{
		"nothing there":                         {at(3, nil, nil), "Found a"},
		"the first starts":                      {at(3, nil, pods{"a": alive}), "Wait a"},
		"the first failed":                      {at(3, nil, pods{"a": dead}), "Stop a"},
		"the failed first goes":                 {at(3, nil, pods{"a": leaving}), "Wait a"},
		"all data is lost":                      {founded(at(3, nil, nil), 3), "Stuck "},
		"most data is lost":                     {founded(at(3, nil, pods{"a": alive, "b": dead, "c": dead}), 3), "Stuck "},
		"an election":                           {founded(at(3, nil, pods{"a": alive, "b": alive}), 3), "Wait a"},
		"too small":                             {at(3, []string{"a"}, nil), "Add b"},
		"too small, a silent member":            {at(4, []string{"a", "b", "c!"}, nil), "Wait d"},
		"too small, the former Pod still there": {at(3, []string{"a"}, pods{"b": leaving}), "Wait b"},
		"a learner without a Pod":               {at(3, []string{"a", "b+"}, nil), "Start b"},
		"a learner whose Pod starts":            {at(3, []string{"a", "b+"}, pods{"b": alive}), "Wait b"},
		"a learner whose Pod failed early":      {at(3, []string{"a", "b+"}, pods{"b": dead}), "Stop b"},
		"a learner that answers":                {at(3, []string{"a", "b*"}, nil), "Promote b"},
		"a learner that died":                   {at(3, []string{"a", "b*"}, pods{"b": dead}), "Remove b lost"},
		"a learner that is not desired":         {at(1, []string{"a", "b+"}, nil), "Remove b"},
		"at its size":                           {at(3, []string{"a", "b", "c"}, nil), "Nothing "},
		"at its size, one silent":               {at(3, []string{"a", "b", "c!"}, nil), "Nothing "},
		"a member lost its Pod":                 {at(3, []string{"a", "b-", "c"}, nil), "Remove b lost"},
		"a member whose Pod failed":             {at(3, []string{"a", "b", "c"}, pods{"b": dead}), "Remove b lost"},
		"a Pod of no member":                    {at(3, []string{"a", "c"}, pods{"b": dead}), "Stop b"},
		"too large":                             {at(1, []string{"a", "b", "c"}, nil), "Remove c"},
		"the right number, the wrong member":    {at(1, []string{"b"}, nil), "Add a"},
		"too large, and the rest is too few":    {at(3, []string{"a", "b!", "c!", "d"}, nil), "Wait d"},
		"too large, the last one silent":        {at(3, []string{"a", "b", "c", "d!"}, nil), "Remove d"},
	} {
		got := plan(c.view)
		text := fmt.Sprintf("%s %s", got.action, got.member)
		if got.lost {
			text += " lost"
		}
		if text != c.want {
			t.Errorf("%s: %q (%s), want %q", name, text, got.reason, c.want)
		}
	}
}
