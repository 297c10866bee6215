// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// TestModelOverlay plays one key: own writes whose answers arrive late and in
// any order, writes of others, a watch that lags, lists and live reads under
// way, an object that leaves the selection for a while. After every step the
// store must show a state that the server has had, not older than any own write
// answered nor than what was shown before, or say that it does not know. In
// the end it knows.
func TestModelOverlay(t *testing.T) {
	t.Parallel()
	seeds := 4_000
	if testing.Short() {
		seeds = 1_000
	}
	for seed := range seeds {
		if trouble := playOverlay(uint64(seed)); trouble != "" {
			t.Fatalf("seed %d: %s", seed, trouble)
		}
	}
}

// overlayWorld is a server, its history, and what is under way.
type overlayWorld struct {
	rnd       *rand.Rand
	store     *Store
	key       client.ObjectKey
	selection bool
	// states by revision, nil where there is nothing; states[0] is the beginning.
	states []*metav1.PartialObjectMetadata
	uids   int
	// answers to own writes that have not been noted.
	answers []answer
	reads   []liveRead
	watched int // revision that the watch has delivered
	listing *liveRead
	floor   int // reads show this state or a later one
	log     []string
	trouble string
}

type answer struct {
	own Own
	rev int
}

// liveRead is one under way; its revision is negative until it is carried out.
type liveRead struct {
	mark uint64
	at   int
}

func playOverlay(seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 7))
	w := &overlayWorld{rnd: rnd, store: New(""), key: client.ObjectKey{Name: "a"}, selection: rnd.IntN(3) == 0, states: make([]*metav1.PartialObjectMetadata, 1)}
	steps := []func(){w.own, w.own, w.own, w.foreign, w.answer, w.answer, w.watch, w.watch, w.bookmark, w.list, w.read, w.read}
	for range 8 + rnd.IntN(24) {
		steps[rnd.IntN(len(steps))]()
		w.check()
		if w.trouble != "" {
			return w.trouble + "\n" + strings.Join(w.log, "\n")
		}
	}
	w.settle()
	if w.trouble != "" {
		return w.trouble + "\n" + strings.Join(w.log, "\n")
	}
	return ""
}

func (w *overlayWorld) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *overlayWorld) now() int { return len(w.states) - 1 }

// change makes the next revision; "" creates with a new uid.
func (w *overlayWorld) change(uid types.UID, exists bool) *metav1.PartialObjectMetadata {
	if !exists {
		w.states = append(w.states, nil)
		return nil
	}
	if uid == "" {
		w.uids++
		uid = types.UID(fmt.Sprint("u", w.uids))
	}
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid, ResourceVersion: strconv.Itoa(len(w.states)), Labels: map[string]string{}}}
	if !w.selection || w.rnd.IntN(3) > 0 {
		obj.Labels["in"] = ""
	}
	w.states = append(w.states, obj)
	return obj
}

// visible is what a store that selects shows of a state.
func visible(obj *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	if obj == nil {
		return nil
	}
	if _, in := obj.Labels["in"]; !in {
		return nil
	}
	return obj
}

func (w *overlayWorld) own() {
	was := w.states[w.now()]
	own := Own{Key: w.key}
	switch action := w.rnd.IntN(8); {
	case action == 0: // the answer gets lost
		if w.rnd.IntN(2) == 0 {
			w.foreign()
		}
		own.Unknown, own.Lost = true, true
		w.answers = append(w.answers, answer{own, 0})
		w.logf("own write, answer lost")
		return
	case was == nil:
		w.noteObject(&own, w.change("", true))
	case action < 4:
		w.noteObject(&own, w.change(was.UID, true))
	case action == 4: // deletes all: the answer names what was there
		own.UID, own.Floor, own.Unknown = was.UID, was.ResourceVersion, true
		if w.rnd.IntN(3) == 0 { // there is a finalizer
			w.change(was.UID, true)
		} else {
			w.change("", false)
		}
	case action == 5: // the answer is something else
		w.change(was.UID, true)
		own.Unknown = true
	default:
		own.UID = was.UID
		if w.rnd.IntN(4) == 0 {
			own.Floor = was.ResourceVersion
		}
		w.change("", false)
	}
	w.answers = append(w.answers, answer{own, w.now()})
	w.logf("own write %d: %s, answer %+v", w.now(), textOf(w.states[w.now()]), own)
	if w.rnd.IntN(2) == 0 {
		w.noteAnswer(len(w.answers) - 1)
	}
}

func (w *overlayWorld) noteObject(own *Own, obj *metav1.PartialObjectMetadata) {
	own.UID, own.Revision = obj.UID, obj.ResourceVersion
	if v := visible(obj); v != nil {
		own.Object = v
	}
}

func textOf(obj *metav1.PartialObjectMetadata) string {
	if obj == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s@%s, selected %t", obj.UID, obj.ResourceVersion, visible(obj) != nil)
}

func (w *overlayWorld) foreign() {
	switch was := w.states[w.now()]; {
	case was == nil:
		w.change("", true)
	case w.rnd.IntN(2) == 0:
		w.change(was.UID, true)
	default:
		w.change("", false)
	}
	w.logf("foreign %d: %s", w.now(), textOf(w.states[w.now()]))
}

func (w *overlayWorld) answer() {
	if len(w.answers) > 0 {
		w.noteAnswer(w.rnd.IntN(len(w.answers)))
	}
}

func (w *overlayWorld) noteAnswer(i int) {
	a := w.answers[i]
	w.answers = append(w.answers[:i:i], w.answers[i+1:]...)
	w.store.Write(a.own)
	w.floor = max(w.floor, a.rev)
	w.logf("answer of %d", a.rev)
}

// watch delivers some revisions.
func (w *overlayWorld) watch() {
	if w.listing != nil {
		return
	}
	for range 1 + w.rnd.IntN(3) {
		if w.watched < w.now() {
			w.deliver()
		}
	}
}

func (w *overlayWorld) deliver() {
	before := visible(w.states[w.watched])
	w.watched++
	now, revision := w.states[w.watched], strconv.Itoa(w.watched)
	w.logf("watch %d", w.watched)
	switch {
	case visible(now) != nil:
		w.store.Commit([]Delta{{Op: Put, Object: now, Revision: revision}}, nil)
	case before != nil:
		last := before.DeepCopy()
		last.ResourceVersion = revision
		w.store.Commit([]Delta{{Op: Delete, Object: last, Revision: revision}}, nil)
	}
}

func (w *overlayWorld) bookmark() {
	if w.listing == nil && w.watched > 0 {
		w.logf("bookmark %d", w.watched)
		w.store.Commit([]Delta{{Op: Progress, Revision: strconv.Itoa(w.watched)}}, nil)
	}
}

// list goes on with a list of the watch: asked for, carried out, read.
func (w *overlayWorld) list() {
	switch l := w.listing; {
	case l == nil:
		if w.rnd.IntN(2) == 0 {
			return
		}
		w.listing = &liveRead{mark: w.store.Mark(), at: -1}
		w.logf("list asked for")
		w.store.Commit([]Delta{{Op: ListBegin, Mark: w.listing.mark}}, nil)
	case l.at < 0:
		l.at = w.now()
		w.logf("list carried out at %d", l.at)
		if obj := visible(w.states[l.at]); obj != nil {
			w.store.Commit([]Delta{{Op: PutListed, Object: obj, Revision: obj.ResourceVersion}}, nil)
		}
	default:
		w.logf("list ends")
		w.store.Commit([]Delta{{Op: ListEnd, Revision: strconv.Itoa(l.at)}}, nil)
		w.watched, w.listing = l.at, nil
	}
}

// read begins, carries out or ends a live read.
func (w *overlayWorld) read() {
	if len(w.reads) == 0 || w.rnd.IntN(3) == 0 {
		if _, answer := w.store.Get(w.key); answer == Unknown {
			w.reads = append(w.reads, liveRead{mark: w.store.Mark(), at: -1})
			w.logf("live read asked for")
		}
		return
	}
	i := w.rnd.IntN(len(w.reads))
	if w.reads[i].at < 0 {
		w.reads[i].at = w.now()
		w.logf("live read carried out at %d", w.reads[i].at)
		return
	}
	r := w.reads[i]
	w.reads = append(w.reads[:i:i], w.reads[i+1:]...)
	w.resolve(r)
}

func (w *overlayWorld) resolve(r liveRead) {
	w.logf("live read of %d noted", r.at)
	switch state := w.states[r.at]; {
	case visible(state) != nil:
		w.store.Resolve(w.key, r.mark, state, state.ResourceVersion)
	case state != nil:
		w.store.Resolve(w.key, r.mark, nil, state.ResourceVersion)
	default:
		w.store.Resolve(w.key, r.mark, nil, strconv.Itoa(r.at))
	}
}

// check reads. The earliest state that explains what is shown is the floor of
// what is shown next.
func (w *overlayWorld) check() {
	obj, how := w.store.Get(w.key)
	if listed, how2 := w.store.Select(Query{}, nil); how2 != how && how2 == Unknown || how != Unknown && (len(listed) == 1) != (obj != nil) {
		w.trouble = fmt.Sprintf("a list says %d objects, %v, but a read %v, %v", len(listed), how2, obj, how)
		return
	}
	if how == Unknown {
		w.logf("  does not know")
		return
	}
	shown := "nothing"
	if obj != nil {
		shown = obj.GetResourceVersion()
	}
	w.logf("  shows %s", shown)
	for at := w.floor; at < len(w.states); at++ {
		state := visible(w.states[at])
		if state == nil && obj == nil || state != nil && obj != nil && state.ResourceVersion == obj.GetResourceVersion() {
			w.floor = at
			return
		}
	}
	w.trouble = fmt.Sprintf("shows %s, which is older than %d", shown, w.floor)
}

// settle lets everything arrive.
func (w *overlayWorld) settle() {
	for len(w.answers) > 0 {
		w.noteAnswer(0)
		w.check()
	}
	for w.listing != nil {
		w.list()
		w.check()
	}
	for w.watched < w.now() {
		w.deliver()
		w.check()
	}
	w.bookmark()
	w.check()
	w.resolve(liveRead{mark: w.store.Mark(), at: w.now()})
	w.check()
	obj, how := w.store.Get(w.key)
	want := visible(w.states[w.now()])
	switch {
	case w.trouble != "" || w.now() == 0:
	case how == Unknown:
		w.trouble = "does not know, though a live read has answered"
	case (obj == nil) != (want == nil) || obj != nil && obj.GetResourceVersion() != want.ResourceVersion:
		w.trouble = fmt.Sprintf("in the end shows %v, want %s", obj, textOf(want))
	}
}
