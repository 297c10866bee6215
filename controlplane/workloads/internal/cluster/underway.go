// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// UnderWay holds the requests whose outcomes are not reported yet. The objects that they are
// about, or write, are looked at once they are: until then it is not known what follows from
// them. Several steps may pass meanwhile, and a Reset.
type UnderWay struct {
	requests map[uint64]*pending // by number
	// objects counts requests by the objects that wait for them.
	objects map[storage.Key]int
	// events counts requests that record Events, for which no object waits.
	events int
	number uint64 // of the last request
}

// pending is a request without an outcome.
type pending struct {
	// writes is the object that the request changes, or none.
	writes storage.Key
	// waiting are the objects that wait for the outcome.
	waiting []storage.Key
	event   bool
	// notes are recorded depending on the outcome.
	notes []Note
}

func newUnderWay() *UnderWay {
	return &UnderWay{requests: map[uint64]*pending{}, objects: map[storage.Key]int{}}
}

// Has reports whether a request of an earlier step is about an object, or writes it.
func (u *UnderWay) Has(key storage.Key) bool { return u.objects[key] > 0 }

// begin numbers a request.
func (u *UnderWay) begin(r *step.Request) {
	u.number++
	r.Number = u.number
	u.requests[r.Number] = &pending{}
}

// send notes that requests leave the step that made them.
func (u *UnderWay) send(requests []step.Request) {
	for i := range requests {
		r := &requests[i]
		p := u.requests[r.Number]
		if r.Subject.Detail == Telling {
			p.event = true
			u.events++
			continue
		}
		p.waiting = append(p.waiting, r.Subject.Key)
		if p.writes != (storage.Key{}) && p.writes != r.Subject.Key {
			p.waiting = append(p.waiting, p.writes)
		}
		for _, key := range p.waiting {
			u.objects[key]++
		}
	}
}

// end returns the notes of a request whose outcome is known, and forgets it.
func (u *UnderWay) end(number uint64) []Note {
	p := u.requests[number]
	if p == nil {
		return nil
	}
	delete(u.requests, number)
	if p.event {
		u.events--
	}
	for _, key := range p.waiting {
		if u.objects[key]--; u.objects[key] == 0 {
			delete(u.objects, key)
		}
	}
	return p.notes
}
