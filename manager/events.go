// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager/internal/guard"
)

const (
	// eventBacklog is how many notes may wait to be sent; more are dropped.
	eventBacklog = 1024
	// seriesEnd is the silence after which a repetition is a new event.
	seriesEnd = 6 * time.Minute
	// gathering is how long notes are gathered before they are sent in an order of
	// their own: which worker was faster must not show.
	gathering = 100 * time.Millisecond
	// maxNameStep bounds the search for a name that is free.
	maxNameStep = 1 << 16
	// maxNote bounds an event's text, in bytes; the API refuses more.
	maxNote = 1024
)

// recorder sends notes as events of events.k8s.io/v1. What repeats becomes a
// series: its count is written at 2, 4, 8, ... occurrences, so that a hot loop
// costs a logarithm, and when the series or the recorder ends.
type recorder struct {
	client    client.Client
	elections client.Client   // of the events of leader election; nil without one
	scheme    *runtime.Scheme // of the objects that events are about
	operator  string          // field owner and reporting controller's default
	instance  string
	log       *slog.Logger
	notes     chan *note
	dropped   atomic.Uint64
	series    map[seriesKey]*series
	last      int64 // suffix of the last event's name; of the sender alone
}

// note is a controller.UserEvent, resolved where it was made: the object may change
// before it is sent.
type note struct {
	key  seriesKey
	text string
	at   time.Time
	// sent is closed when the note's turn comes; such a note is no event.
	sent chan<- struct{}
}

type seriesKey struct {
	regarding, related         corev1.ObjectReference
	warning                    bool
	reason, action, controller string
}

type series struct {
	namespace, name string
	count           int32
	told            int32 // the count that was written last
	last            time.Time
}

func newRecorder(c client.Client, scheme *runtime.Scheme, operator, instance string, log *slog.Logger) *recorder {
	return &recorder{
		client: c, scheme: scheme, operator: operator, instance: instance, log: log,
		notes: make(chan *note, eventBacklog), series: map[seriesKey]*series{},
	}
}

// Record implements controller.EventRecorder.
func (r *recorder) Record(n controller.UserEvent) {
	key := seriesKey{warning: n.Warning, reason: n.Reason, action: n.Action, controller: n.Controller}
	if key.action == "" {
		key.action = n.Reason
	}
	if key.controller == "" {
		key.controller = r.operator
	}
	var ok bool
	if key.regarding, ok = r.reference(n.Regarding); !ok {
		return
	}
	if n.Related != nil {
		key.related, _ = r.reference(n.Related)
	}
	select {
	case r.notes <- &note{key: key, text: cut(n.Note, maxNote), at: time.Now()}:
	default:
		if total := r.dropped.Add(1); total&(total-1) == 0 { // the first, and as it doubles
			r.log.Warn("events are dropped because too many wait to be sent", "dropped", total, "reason", n.Reason, "regarding", client.FormatKey(client.ObjectKeyFromObject(n.Regarding)),
				"advice", "emit events on transitions, not in every reconcile; or see why the API server takes them so slowly")
		}
	}
}

func (r *recorder) reference(obj client.Object) (corev1.ObjectReference, bool) {
	gvk, err := client.KindOf(r.scheme, obj)
	if _, own := obj.(*coordinationv1.Lease); own {
		gvk, err = coordinationv1.SchemeGroupVersion.WithKind("Lease"), nil // the operator need not know it
	}
	if err != nil {
		r.log.Warn("an event was dropped", "error", err)
		return corev1.ObjectReference{}, false
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(),
	}, true
}

// run sends until ctx ends, and then, for a second, what still waits.
func (r *recorder) run(ctx context.Context) {
	prune := time.NewTicker(seriesEnd)
	defer prune.Stop()
	var gathered []*note
	var full <-chan time.Time
	for {
		select {
		case n := <-r.notes:
			if gathered = append(gathered, n); full == nil {
				full = time.After(gathering)
			}
		case <-full:
			r.sendAll(ctx, gathered)
			clear(gathered)
			gathered, full = gathered[:0], nil
		case now := <-prune.C:
			r.finish(ctx, now.Add(-seriesEnd))
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			for {
				select {
				case n := <-r.notes:
					gathered = append(gathered, n)
					continue
				default:
				}
				r.sendAll(last, gathered)
				r.finish(last, time.Now())
				return
			}
		}
	}
}

// sendAll sends notes in the order of their times, and those of one moment in
// the order of what they say, before who waits for them.
func (r *recorder) sendAll(ctx context.Context, notes []*note) {
	slices.SortStableFunc(notes, func(a, b *note) int {
		return cmp.Or(a.at.Compare(b.at), a.turn()-b.turn(), cmp.Compare(a.key.text(), b.key.text()), cmp.Compare(a.text, b.text))
	})
	for _, n := range notes {
		r.send(ctx, n)
	}
}

// turn puts those who wait for the notes of a moment behind them.
func (n *note) turn() int {
	if n.sent != nil {
		return 1
	}
	return 0
}

// text orders keys.
func (k *seriesKey) text() string {
	of := func(ref *corev1.ObjectReference) string { return ref.Kind + " " + ref.Namespace + "/" + ref.Name }
	return strings.Join([]string{of(&k.regarding), of(&k.related), k.controller, k.reason, k.action}, " ")
}

// finish ends the series of which nothing came after a time, and writes how often
// it was in the end.
func (r *recorder) finish(ctx context.Context, silent time.Time) {
	var ended []seriesKey
	for key, s := range r.series {
		if !s.last.After(silent) {
			ended = append(ended, key)
		}
	}
	slices.SortFunc(ended, func(a, b seriesKey) int { return cmp.Compare(a.text(), b.text()) })
	for _, key := range ended {
		s := r.series[key]
		delete(r.series, key)
		if s.count == s.told {
			continue
		}
		if err := r.extend(ctx, s); !apierrors.IsNotFound(err) { // it has expired
			r.report(err)
		}
	}
}

// Idle waits until what was recorded before has been sent.
func (r *recorder) Idle(ctx context.Context) error {
	sent := make(chan struct{})
	select {
	case r.notes <- &note{sent: sent, at: time.Now()}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *recorder) send(ctx context.Context, n *note) {
	if n.sent != nil {
		close(n.sent)
		return
	}
	s := r.series[n.key]
	if s != nil && n.at.Sub(s.last) <= seriesEnd {
		s.count++
		s.last = n.at
		if bits.OnesCount32(uint32(s.count)) != 1 {
			return
		}
		err := r.extend(ctx, s)
		if !apierrors.IsNotFound(err) {
			r.report(err)
			return
		}
		// The event has expired on the server: this one starts a new series.
	}
	s, err := r.create(ctx, n)
	r.report(err)
	if err == nil {
		r.series[n.key] = s
	}
}

func (r *recorder) create(ctx context.Context, n *note) (*series, error) {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: n.key.regarding.Namespace},
		EventTime:           metav1.NewMicroTime(n.at),
		ReportingController: n.key.controller,
		ReportingInstance:   cut(r.instance, 128),
		Action:              n.key.action,
		Reason:              n.key.reason,
		Regarding:           n.key.regarding,
		Note:                n.text,
		Type:                corev1.EventTypeNormal,
	}
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault
	}
	if n.key.warning {
		event.Type = corev1.EventTypeWarning
	}
	if n.key.related != (corev1.ObjectReference{}) {
		event.Related = &n.key.related
	}
	if err := r.createNamed(ctx, event, n); err != nil {
		return nil, err
	}
	return &series{namespace: event.Namespace, name: event.Name, count: 1, told: 1, last: n.at}, nil
}

// createNamed gives the event a name that starts with what it is about and keeps
// within 253 characters. Of one recorder no two are alike. Two recorders meet where
// the clock does not run by itself, as in a test under testing/synctest: the one
// that comes second goes on from there, in growing steps.
func (r *recorder) createNamed(ctx context.Context, event *eventsv1.Event, n *note) error {
	c := r.client
	if r.elections != nil && n.key.regarding.Kind == "Lease" {
		c = r.elections
	}
	r.last = max(r.last+1, n.at.UnixNano())
	for step := int64(1); ; step *= 2 {
		event.Name = cut(n.key.regarding.Name, 236) + "." + strconv.FormatInt(r.last, 16)
		err := c.Create(ctx, event)
		if !apierrors.IsAlreadyExists(err) || step == maxNameStep {
			return err
		}
		r.last += step
	}
}

func (r *recorder) extend(ctx context.Context, s *series) error {
	body, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(s.last)}})
	if err != nil {
		return err
	}
	event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}}
	if err := r.client.Patch(ctx, event, client.RawPatch(types.MergePatchType, body)); err != nil {
		return err
	}
	s.told = s.count
	return nil
}

func (r *recorder) report(err error) {
	if err == nil || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return
	}
	advice := wire.Advice(err)
	if apierrors.IsForbidden(err) {
		advice = "the service account needs create and patch on events.events.k8s.io"
	}
	if advice == "" {
		r.log.Warn("an event could not be written", "error", err)
		return
	}
	r.log.Warn("an event could not be written", "error", err, "advice", advice)
}

// cut shortens s to at most n bytes without breaking a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// addManagerKinds makes the scheme know the kinds that the manager itself writes.
func addManagerKinds(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		eventsv1.AddToScheme, coordinationv1.AddToScheme, guard.AddToScheme,
	} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
