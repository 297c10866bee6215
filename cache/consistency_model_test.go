// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client"
)

// TestModelReadsAreNeverStale runs random writes through the client, writes
// behind its back, and random treatment of the watch, and checks after each own
// write that reads show it or something newer, and at the end that cache,
// handlers and server agree.
func TestModelReadsAreNeverStale(t *testing.T) {
	t.Parallel()
	runs := 150
	if testing.Short() {
		runs = 20
	}
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) { consistencyRun(t, uint64(seed)) })
	}
}

// model is what a handler has been told and what this client has written.
type model struct {
	*rig
	rnd *rand.Rand
	log []string
	// floor is, by name, the newest revision that reads must show: that of the
	// last own write.
	floor map[string]uint64
	told  map[string]string // what handlers believe: name -> resourceVersion
}

func consistencyRun(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	opts := Options{PageSize: 1 + rnd.Int64N(4)}
	if rnd.IntN(3) == 0 {
		opts.InitialSync = SyncWatchList
	}
	if rnd.IntN(3) == 0 {
		opts.Namespaces = []string{"default", "other"}
	}
	opts.Compact = rnd.IntN(2) == 0
	m := &model{rig: newRig(t, opts), rnd: rnd, floor: map[string]uint64{}, told: map[string]string{}}
	defer m.cache.Stop()
	if rnd.IntN(2) == 0 {
		m.server.ServeWatchList("36")
	}
	inf := m.informer(&corev1.ConfigMap{})
	inf.AddHandler(func(e Event) {
		name := e.Object.GetName()
		switch _, known := m.told[name]; {
		case known == (e.Type == Added):
			t.Errorf("seed %d: event %s of %s, known %v", seed, e.Type, name, known)
		case e.Type == Deleted:
			delete(m.told, name)
		default:
			m.told[name] = e.Object.GetResourceVersion()
		}
	})
	if err := m.cache.IndexField(&corev1.ConfigMap{}, "data", func(obj client.Object) []string {
		return []string{obj.(*corev1.ConfigMap).Data["v"]}
	}); err != nil {
		t.Fatal(err)
	}
	m.start()
	m.synced()
	for range 60 {
		m.step()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, m.text())
		}
	}
	m.server.Hold(false)
	m.server.SetFail(nil)
	time.Sleep(5 * time.Minute) // virtual: every back-off is over
	// A deletion of something that the watch had never shown may stay noted
	// until a list has been asked for after it.
	m.server.Hold(true)
	m.server.Put("configmaps", "default", "z", v("last"), nil)
	m.server.Compact()
	m.server.Cut(io.ErrUnexpectedEOF)
	m.server.Hold(false)
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	m.agree(inf)
	if t.Failed() {
		t.Fatalf("seed %d:\n%s", seed, m.text())
	}
}

func (m *model) text() string {
	out := ""
	for _, line := range m.log {
		out += line + "\n"
	}
	return out
}

func (m *model) logf(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *model) step() {
	ctx := context.Background()
	name := string(rune('a' + m.rnd.IntN(4)))
	cm := &corev1.ConfigMap{}
	switch m.rnd.IntN(15) {
	case 0, 1:
		cm.Name, cm.Namespace, cm.Data = name, "default", v(strconv.Itoa(m.rnd.IntN(100)))
		if m.rnd.IntN(3) == 0 {
			cm.Finalizers = []string{"example.com/x"}
		}
		m.wrote("create", name, cm, m.client.Create(ctx, cm))
	case 2, 3, 4:
		if m.client.Get(ctx, key(name), cm) == nil {
			cm.Data = v(strconv.Itoa(m.rnd.IntN(100)))
			if m.rnd.IntN(2) == 0 {
				cm.Finalizers = nil
			}
			m.wrote("update", name, cm, m.client.Update(ctx, cm))
		}
	case 5, 6:
		cm.Name, cm.Namespace = name, "default"
		if m.rnd.IntN(2) == 0 {
			_ = m.client.Get(ctx, key(name), cm)
		}
		m.wrote("delete", name, nil, m.client.Delete(ctx, cm))
	case 7:
		if m.rnd.IntN(2) == 0 {
			m.logf("foreign put %s %s", name, m.server.Put("configmaps", "default", name, v("foreign"), nil))
		} else {
			m.logf("foreign delete %s", name)
			m.server.Delete("configmaps", "default", name)
		}
	case 8:
		on := m.rnd.IntN(2) == 0
		m.logf("hold %v", on)
		m.server.Hold(on)
	case 9:
		m.disturb()
	case 10:
		m.logf("pause")
		time.Sleep(time.Duration(m.rnd.IntN(5000)) * time.Millisecond)
		synctest.Wait()
	case 11:
		m.list()
	case 12:
		synctest.Wait()
	case 13:
		m.lost(name)
	case 14:
		m.deleteAll()
	}
	m.check(name)
}

// lost is a write that may have happened: its answer does not arrive.
func (m *model) lost(name string) {
	m.server.LoseAnswers(true)
	defer m.server.LoseAnswers(false)
	cm := &corev1.ConfigMap{}
	cm.Name, cm.Namespace, cm.Data = name, "default", v("lost")
	var err error
	if m.rnd.IntN(2) == 0 {
		err = m.client.Update(context.Background(), cm)
	} else {
		err = m.client.Delete(context.Background(), cm)
	}
	m.logf("answer about %s lost: %v", name, err)
}

func (m *model) deleteAll() {
	ctx := context.Background()
	var before corev1.ConfigMapList
	if err := m.live.List(ctx, &before); err != nil {
		m.t.Errorf("list: %v", err)
	}
	if err := m.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default")); err != nil {
		m.t.Errorf("delete all: %v", err)
	}
	m.logf("delete all %d", m.server.Revision())
	for i := range before.Items {
		name := before.Items[i].Name
		var live corev1.ConfigMap
		m.floor[name] = m.server.Revision()
		if m.live.Get(ctx, key(name), &live) == nil { // it has finalizers
			m.floor[name] = revisionOf(&live)
		}
	}
}

func (m *model) disturb() {
	switch m.rnd.IntN(5) {
	case 0:
		m.logf("cut")
		m.server.Cut(io.EOF)
	case 1:
		m.logf("cut, truncated")
		m.server.Send(`{"type":"ADDED","obj`)
		m.server.Cut(io.EOF)
	case 2:
		m.logf("compact and cut")
		m.server.Compact()
		m.server.Cut(errors.New("connection reset"))
	case 3:
		m.logf("ERROR event 410")
		m.server.Send(`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}` + "\n")
	case 4:
		m.logf("bookmark")
		m.server.Bookmark()
	}
}

// wrote notes the revision that reads must show from now on.
func (m *model) wrote(verb, name string, obj *corev1.ConfigMap, err error) {
	m.logf("%s %s: %v", verb, name, err)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		if verb == "update" && apierrors.IsNotFound(err) {
			return // a foreign deletion that the cache has not seen
		}
		return
	case err != nil:
		m.t.Errorf("%s %s: %v", verb, name, err)
	}
	m.floor[name] = m.server.Revision()
	_ = obj
}

// check reads one object both ways.
func (m *model) check(name string) {
	m.t.Helper()
	ctx := context.Background()
	var cached, live corev1.ConfigMap
	cachedErr, liveErr := m.client.Get(ctx, key(name), &cached), m.live.Get(ctx, key(name), &live)
	m.logf("  read %s: cached %q %s, live %q %s", name, cached.ResourceVersion, cached.UID, live.ResourceVersion, live.UID)
	floor := m.floor[name]
	if floor == 0 {
		return
	}
	switch {
	case cachedErr == nil:
		// What is shown must not be older than the last own write, unless the
		// write was a deletion: then it must not be what was deleted.
		if liveErr != nil && live.UID == "" && revisionOf(&cached) < floor && m.ownStateGone(name) {
			m.t.Errorf("%s: read revision %s, but the own deletion was at %d", name, cached.ResourceVersion, floor)
		}
		if revisionOf(&cached) < floor {
			m.t.Errorf("%s: read revision %s, but the own write was at %d", name, cached.ResourceVersion, floor)
		}
	case apierrors.IsNotFound(cachedErr):
		// Right if the object is gone, or if another client made it
		// after our write.
		if liveErr == nil && revisionOf(&live) <= floor {
			m.t.Errorf("%s: not found, but revision %s is an own write", name, live.ResourceVersion)
		}
	default:
		m.t.Errorf("%s: %v", name, cachedErr)
	}
}

func (m *model) ownStateGone(name string) bool { return m.floor[name] != 0 }

func revisionOf(obj client.Object) uint64 {
	n, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return n
}

// list checks that lists agree with gets.
func (m *model) list() {
	var l corev1.ConfigMapList
	if err := m.client.List(context.Background(), &l, client.InNamespace("default")); err != nil {
		m.t.Errorf("list: %v", err)
	}
	shown := map[string]uint64{}
	for i := range l.Items {
		shown[l.Items[i].Name] = revisionOf(&l.Items[i])
	}
	for name, floor := range m.floor {
		var live corev1.ConfigMap
		err := m.live.Get(context.Background(), key(name), &live)
		switch rev, ok := shown[name]; {
		case ok && rev < floor:
			m.t.Errorf("list shows %s at %d, but the own write was at %d", name, rev, floor)
		case !ok && err == nil && revisionOf(&live) <= floor:
			m.t.Errorf("list misses %s, an own write at %d", name, floor)
		}
	}
	m.logf("list %v", shown)
	value := strconv.Itoa(m.rnd.IntN(100))
	for _, item := range l.Items {
		value = item.Data["v"]
	}
	var some corev1.ConfigMapList
	if err := m.client.List(context.Background(), &some, client.InNamespace("default"), client.MatchingFields{"data": value}); err != nil {
		m.t.Errorf("list by index: %v", err)
	}
	selected := map[string]bool{}
	for i := range some.Items {
		item := &some.Items[i]
		selected[item.Name] = true
		if revisionOf(item) < m.floor[item.Name] || item.Data["v"] != value {
			m.t.Errorf("a list by index %q shows %s at %d with %q, but the own write was at %d", value, item.Name, revisionOf(item), item.Data["v"], m.floor[item.Name])
		}
	}
	for name, floor := range m.floor {
		var live corev1.ConfigMap
		if m.live.Get(context.Background(), key(name), &live) == nil && revisionOf(&live) <= floor && live.Data["v"] == value && !selected[name] {
			m.t.Errorf("a list by index misses %s, an own write at %d", name, floor)
		}
	}
}

// agree compares server, cache and handlers when all is quiet.
func (m *model) agree(inf Informer) {
	m.t.Helper()
	var live, cached corev1.ConfigMapList
	if err := m.live.List(context.Background(), &live); err != nil {
		m.t.Error(err)
	}
	if err := m.client.List(context.Background(), &cached); err != nil {
		m.t.Error(err)
	}
	text := func(l *corev1.ConfigMapList) (out string) {
		for i := range l.Items {
			out += l.Items[i].Name + "@" + l.Items[i].ResourceVersion + " "
		}
		return out
	}
	if text(&live) != text(&cached) {
		m.t.Errorf("in the end the server has %s but the cache %s", text(&live), text(&cached))
	}
	if len(m.told) != len(live.Items) {
		m.t.Errorf("in the end handlers believe in %v but the server has %s", m.told, text(&live))
	}
	for i := range live.Items {
		if m.told[live.Items[i].Name] != live.Items[i].ResourceVersion {
			m.t.Errorf("handlers believe in %v but the server has %s", m.told, text(&live))
		}
	}
	if st := inf.Status(); st.Overlay != 0 || st.Err != nil {
		m.t.Errorf("in the end the status is %+v, want no overlay and no error", st)
	}
}
