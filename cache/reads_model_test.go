// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/steertest"
)

// modelRounds is the environment variable with the number of rounds of
// TestModelReadsAreOfOneDefinition, and modelSeed with the first seed.
const (
	modelRounds = "STEER_MODEL_ROUNDS"
	modelSeed   = "STEER_MODEL_SEED"
)

// TestModelReadsAreOfOneDefinition plays rounds of writes of every form, through the cache's
// client and behind its back, with watches that are late, cut and too old, against caches
// of random options. Every read in every form must be explained by the options alone: a
// state that the server has had, not older than the last own write and than what was
// read before, selected, transformed and found by its indexes as those say.
func TestModelReadsAreOfOneDefinition(t *testing.T) {
	t.Parallel()
	rounds, first := 25, 0
	if testing.Short() {
		rounds = 10
	}
	for variable, to := range map[string]*int{modelRounds: &rounds, modelSeed: &first} {
		if text := os.Getenv(variable); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %v", variable, err)
			}
			*to = n
		}
	}
	for seed := first; seed < first+rounds; seed++ {
		synctest.Test(t, func(t *testing.T) { newReadModel(t, uint64(seed)).play() })
		if t.Failed() {
			return
		}
	}
}

var (
	modelNamespaces = []string{"default", "one", "other"}
	modelNames      = []string{"a", "b", "c", "d"}
	// modelForms are the ways to read, by name.
	modelForms = []string{"typed", "metadata", "unstructured"}
)

type readModel struct {
	*testing.T
	seed   uint64
	rnd    *rand.Rand
	wire   *wire
	truth  client.Client // past the wire
	cache  *cache.Cache
	client client.Client
	log    []string

	gvk  schema.GroupVersionKind
	opts cache.Options
	kind cache.KindOptions
	// informers by form; handlers of the first.
	informers map[string]cache.Informer
	told      map[client.ObjectKey]string

	// states of each object that the server has had; nil where it was not there.
	states map[client.ObjectKey][]*unstructured.Unstructured
	// written and shown are the earliest states that reads may give: for all forms,
	// and for one.
	written  map[client.ObjectKey]int
	shown    map[string]int
	revision string
}

func newReadModel(t *testing.T, seed uint64) *readModel {
	m := &readModel{
		T: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 3)), informers: map[string]cache.Informer{}, told: map[client.ObjectKey]string{},
		states: map[client.ObjectKey][]*unstructured.Unstructured{}, written: map[client.ObjectKey]int{}, shown: map[string]int{},
	}
	m.gvk = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	options := steertest.Options{}
	for _, name := range modelNamespaces[1:] {
		options.Objects = append(options.Objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if m.odds(2) {
		m.gvk = widgetKind
		options.CRDs = []string{"testdata/widgets.yaml"}
	}
	scheme, err := client.NewScheme(corev1.AddToScheme, addWidgets)
	m.must(err)
	options.Scheme = scheme
	env := steertest.New(t, options)
	m.truth = env.Client
	transport, err := rest.TransportFor(env.Config)
	m.must(err)
	m.wire = newWire(transport)
	log := slog.New(slog.DiscardHandler)
	live, err := client.New(&rest.Config{Host: env.Config.Host, Transport: m.wire}, client.Options{Scheme: scheme, FieldOwner: "model", Log: log})
	m.must(err)
	m.choose()
	m.opts.Log, m.opts.DetectMutation = log, m.odds(2)
	m.cache, err = cache.New(live, m.opts)
	m.must(err)
	m.client = cache.NewClient(live, m.cache)
	return m
}

func (m *readModel) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("seed %d: %v\n%s", m.seed, err, strings.Join(m.log, "\n"))
	}
}

func (m *readModel) logf(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// odds is true once in n.
func (m *readModel) odds(n int) bool { return m.rnd.IntN(n) == 0 }

func (m *readModel) custom() bool { return m.gvk == widgetKind }

// choose draws the options of the cache.
func (m *readModel) choose() {
	m.kind = cache.KindOptions{Object: m.blank("typed"), Compact: m.odds(3), KeepManagedFields: m.odds(4)}
	m.opts = cache.Options{PageSize: 1 + m.rnd.Int64N(4), InitialSync: cache.InitialSync(m.rnd.IntN(3))}
	switch m.rnd.IntN(4) {
	case 0:
		m.opts.Namespaces = []string{"default", "one"}
	case 1:
		m.kind.Namespaces = []string{"default"}
	}
	if m.odds(2) {
		m.kind.Labels = labels.SelectorFromSet(labels.Set{"app": "x"})
	}
	switch m.rnd.IntN(4) {
	case 0:
		m.kind.Fields = fields.OneTermNotEqualSelector("metadata.name", "d")
	case 1:
		if m.custom() {
			m.kind.Fields = fields.OneTermEqualSelector("spec.color", "red")
		}
	}
	if m.odds(2) {
		m.kind.Transform = transformed
	}
	m.opts.ByKind = []cache.KindOptions{m.kind}
	m.logf("%s: namespaces %q %q labels %v fields %v transform %t compact %t managedFields %t", m.gvk.Kind, m.opts.Namespaces, m.kind.Namespaces,
		m.kind.Labels, m.kind.Fields, m.kind.Transform != nil, m.kind.Compact, m.kind.KeepManagedFields)
}

// valueOf is the value of an object in any form: of the annotation that they all have.
func valueOf(obj client.Object) string { return obj.GetAnnotations()["v"] }

// transformed is the transform: it marks the value, and takes an annotation away.
func transformed(obj client.Object) (client.Object, error) {
	annotations := obj.GetAnnotations()
	delete(annotations, "drop")
	if v, ok := annotations["v"]; ok && !strings.HasPrefix(v, "t-") {
		annotations["v"] = "t-" + v
	}
	obj.SetAnnotations(annotations)
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		delete(o.Data, "drop")
	case *widget:
		o.Status.Phase = ""
	case *unstructured.Unstructured:
		unstructured.RemoveNestedField(o.Object, "data", "drop")
		unstructured.RemoveNestedField(o.Object, "status", "phase")
	}
	return obj, nil
}

// blank is an empty object in a form.
func (m *readModel) blank(form string) client.Object {
	switch {
	case form == "metadata":
		return client.NewMetadata(m.gvk)
	case form == "unstructured":
		return client.NewUnstructured(m.gvk)
	case m.custom():
		return &widget{}
	}
	return &corev1.ConfigMap{}
}

func (m *readModel) blankList(form string) client.ObjectList {
	var list client.ObjectList = &corev1.ConfigMapList{}
	switch {
	case form == "metadata":
		list = &metav1.PartialObjectMetadataList{}
	case form == "unstructured":
		list = &unstructured.UnstructuredList{}
	case m.custom():
		list = &widgetList{}
	}
	list.GetObjectKind().SetGroupVersionKind(m.gvk.GroupVersion().WithKind(m.gvk.Kind + "List"))
	return list
}

func (m *readModel) play() {
	ctx := m.Context()
	defer m.cache.Stop()
	m.record()
	for range m.rnd.IntN(8) {
		m.foreign()
	}
	for _, form := range modelForms {
		m.must(m.cache.IndexField(m.blank(form), "v", func(obj client.Object) []string { return []string{valueOf(obj)} }))
		if m.odds(2) {
			continue
		}
		inf, err := m.cache.Informer(m.blank(form))
		m.must(err)
		if m.informers[form] = inf; len(m.informers) == 1 {
			inf.AddHandler(m.handle)
		}
	}
	m.logf("informers of %q", slices.Sorted(maps.Keys(m.informers)))
	m.must(m.cache.Start(ctx))
	m.must(m.cache.WaitForSync(ctx))
	for range 40 {
		m.step()
		m.reads()
		if m.Failed() {
			break
		}
	}
	if !m.Failed() {
		m.rest()
	}
	if m.Failed() {
		m.Logf("seed %d:\n%s", m.seed, strings.Join(m.log, "\n"))
	}
}

// handle keeps what handlers have been told.
func (m *readModel) handle(e cache.Event) {
	key := client.ObjectKeyFromObject(e.Object)
	switch _, known := m.told[key]; {
	case known == (e.Type == cache.Added):
		m.Errorf("event %s of %s, known %v", e.Type, key, known)
	case e.Type == cache.Deleted:
		delete(m.told, key)
	default:
		m.told[key] = e.Object.GetResourceVersion()
	}
}

func (m *readModel) step() {
	switch n := m.rnd.IntN(20); {
	case n < 9:
		m.own()
	case n < 11:
		m.foreign()
	case n < 13:
		on := m.odds(2)
		m.logf("hold %t", on)
		m.wire.Hold(on)
	case n < 15:
		m.logf("cut")
		m.wire.SetFail(nil)
		if m.odds(3) {
			m.logf("and compacted")
			m.expire()
		}
		m.wire.Cut([]error{os.ErrClosed, context.DeadlineExceeded}[m.rnd.IntN(2)])
	case n < 16:
		m.logf("pause")
		time.Sleep(time.Duration(m.rnd.IntN(3000)) * time.Millisecond)
	case n < 18:
		synctest.Wait()
	default:
		m.meanwhile()
	}
}

// expire has watches from before now refused.
func (m *readModel) expire() {
	revision, err := strconv.ParseUint(m.revision, 10, 64)
	m.must(err)
	m.wire.SetFail(expired(revision))
}

// rest lets everything arrive, and compares all.
func (m *readModel) rest() {
	m.logf("rest")
	m.wire.Hold(false)
	time.Sleep(2 * time.Minute) // virtual: every back-off is over
	// The state of what was never shown stays noted until a list covers it: there is one
	// after what follows.
	m.wire.Hold(true)
	m.must(m.truth.Create(m.Context(), m.object("default", "z")))
	m.record()
	m.expire()
	m.wire.Cut(os.ErrClosed)
	m.wire.Hold(false)
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	for key, states := range m.states {
		m.written[key] = len(states) - 1
	}
	for _, form := range modelForms {
		m.check(m.list(form, query{}))
		for key := range m.states {
			m.check(m.get(form, key, false))
		}
	}
	for form, inf := range m.informers {
		if st := inf.Status(); st.Overlay != 0 || st.Err != nil || st.State != "watching" {
			m.Errorf("in the end the informer in form %s is %+v, want no overlay and no error", form, st)
		}
	}
	if len(m.informers) > 0 {
		want := map[client.ObjectKey]string{}
		for key, states := range m.states {
			if obj := m.visible(states[len(states)-1], false); obj != nil && m.watched(key.Namespace) {
				want[key] = obj.GetResourceVersion()
			}
		}
		if !maps.Equal(want, m.told) {
			m.Errorf("in the end handlers believe in %v, want %v", m.told, want)
		}
	}
	for _, line := range m.wire.Requests() {
		if strings.Contains(line, "fieldSelector=v") || strings.Contains(line, "ownerReferences") {
			m.Errorf("an index is sent to the server: %s", line)
		}
	}
}

// record notes what the server has now.
func (m *readModel) record() {
	list := m.blankList("unstructured").(*unstructured.UnstructuredList)
	m.must(m.truth.List(m.Context(), list))
	m.revision = list.GetResourceVersion()
	now := map[client.ObjectKey]*unstructured.Unstructured{}
	for i := range list.Items {
		now[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	for _, namespace := range modelNamespaces {
		for _, name := range append(slices.Clone(modelNames), "z") {
			key := client.ObjectKey{Namespace: namespace, Name: name}
			states := m.states[key]
			if len(states) == 0 {
				states = append(states, nil)
			}
			last, obj := states[len(states)-1], now[key]
			if (last == nil) != (obj == nil) || obj != nil && obj.GetResourceVersion() != last.GetResourceVersion() {
				states = append(states, obj)
			}
			m.states[key] = states
		}
	}
}

// watched reports whether a namespace is part of what is watched.
func (m *readModel) watched(namespace string) bool {
	namespaces := m.opts.Namespaces
	if m.kind.Namespaces != nil {
		namespaces = m.kind.Namespaces
	}
	return len(namespaces) == 0 || slices.Contains(namespaces, namespace)
}

// visible is a state as reads give it, nil where they give nothing. A read that names
// its namespace goes beyond what is watched: by default it is live.
func (m *readModel) visible(state *unstructured.Unstructured, named bool) client.Object {
	switch {
	case state == nil,
		m.kind.Labels != nil && !m.kind.Labels.Matches(labels.Set(state.GetLabels())),
		!named && !m.watched(state.GetNamespace()):
		return nil
	}
	if f := m.kind.Fields; f != nil {
		color, _, _ := unstructured.NestedString(state.Object, "spec", "color")
		if !f.Matches(fields.Set{"metadata.name": state.GetName(), "spec.color": color}) {
			return nil
		}
	}
	obj := client.Object(state.DeepCopy())
	if !m.kind.KeepManagedFields {
		obj.SetManagedFields(nil)
	}
	if m.kind.Transform != nil {
		obj, _ = transformed(obj)
	}
	return obj
}

// text is what is compared of an object: all that a form has.
func text(obj client.Object, form string) string {
	if obj == nil {
		return "nothing"
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return err.Error()
	}
	content := map[string]any{}
	if err := json.Unmarshal(data, &content); err != nil {
		return err.Error()
	}
	out := map[string]any{}
	for _, path := range [][]string{
		{"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "labels"}, {"metadata", "annotations"},
		{"metadata", "finalizers"}, {"metadata", "deletionTimestamp"}, {"metadata", "managedFields"}, {"data"}, {"spec", "value"}, {"spec", "color"}, {"status", "phase"},
		{"apiVersion"}, {"kind"},
	} {
		if form == "metadata" && path[0] != "metadata" && path[0] != "apiVersion" && path[0] != "kind" {
			continue
		}
		value, found, _ := unstructured.NestedFieldNoCopy(content, path...)
		if m, ok := value.(map[string]any); found && !(ok && len(m) == 0) {
			out[strings.Join(path, ".")] = value
		}
	}
	data, _ = json.Marshal(out)
	return string(data)
}

// query is what a list asks for.
type query struct {
	namespace string
	field     string // of the index
	not       bool
	label     string // value of app
	name      string
	limit     int64
	bound     bool
	live      bool
}

func (q query) matches(obj client.Object) bool {
	return obj != nil && (q.namespace == "" || obj.GetNamespace() == q.namespace) &&
		(q.field == "" || (valueOf(obj) == q.field) != q.not) &&
		(q.label == "" || obj.GetLabels()["app"] == q.label) &&
		(q.name == "" || obj.GetName() == q.name)
}

func (q query) options(revision string) (opts []client.ListOption) {
	if q.namespace != "" {
		opts = append(opts, client.InNamespace(q.namespace))
	}
	switch {
	case q.field != "" && q.not:
		opts = append(opts, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("v", q.field)})
	case q.field != "":
		opts = append(opts, client.MatchingFields{"v": q.field})
	}
	if q.label != "" {
		opts = append(opts, client.MatchingLabels{"app": q.label})
	}
	if q.name != "" {
		opts = append(opts, client.MatchingFields{"metadata.name": q.name})
	}
	if q.limit > 0 {
		opts = append(opts, client.Limit(q.limit))
	}
	if q.bound {
		opts = append(opts, client.AtLeast(revision))
	}
	if q.live {
		opts = append(opts, client.Live)
	}
	return opts
}

// answer is what a read has given: of which objects it tells, and what.
type answer struct {
	what  string
	form  string
	query query
	keys  []client.ObjectKey
	shown map[client.ObjectKey]client.Object
	err   error
}

// reads reads in all forms.
func (m *readModel) reads() {
	for _, form := range modelForms {
		m.check(m.read(form))
	}
}

// read is a random one.
func (m *readModel) read(form string) answer {
	if m.odds(3) {
		return m.get(form, m.key(), m.odds(6))
	}
	q := query{bound: m.odds(8), live: m.odds(8)}
	if m.odds(2) {
		q.namespace = modelNamespaces[m.rnd.IntN(len(modelNamespaces))]
	}
	if m.odds(2) {
		q.field, q.not = strconv.Itoa(m.rnd.IntN(3)), m.odds(4)
		if m.kind.Transform != nil && !q.live {
			q.field = "t-" + q.field
		}
	}
	if m.odds(3) {
		q.label = []string{"x", "y"}[m.rnd.IntN(2)]
	}
	if m.odds(6) {
		q.name = modelNames[m.rnd.IntN(len(modelNames))]
	}
	if m.odds(4) {
		q.limit = 1 + m.rnd.Int64N(3)
	}
	return m.list(form, q)
}

func (m *readModel) get(form string, key client.ObjectKey, bound bool) answer {
	obj := m.blank(form)
	opts := []client.GetOption{}
	if bound {
		opts = append(opts, client.AtLeast(m.revision))
	}
	err := m.client.Get(m.Context(), key, obj, opts...)
	a := answer{
		what: fmt.Sprintf("get %s in form %s, bound %t", key, form, bound), form: form, query: query{namespace: key.Namespace, bound: bound},
		keys: []client.ObjectKey{key}, err: client.IgnoreNotFound(err),
	}
	if err == nil {
		a.shown = map[client.ObjectKey]client.Object{key: obj}
	}
	return a
}

func (m *readModel) list(form string, q query) answer {
	a := answer{what: fmt.Sprintf("list in form %s of %+v", form, q), form: form, query: q, shown: map[client.ObjectKey]client.Object{}}
	for key := range m.states {
		if q.namespace == "" || q.namespace == key.Namespace {
			a.keys = append(a.keys, key)
		}
	}
	next := ""
	for {
		list := m.blankList(form)
		opts := q.options(m.revision)
		if next != "" {
			opts = append(opts, client.Continue(next))
		}
		if a.err = m.client.List(m.Context(), list, opts...); a.err != nil {
			return a
		}
		count := 0
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			a.shown[client.ObjectKeyFromObject(obj)] = obj
			count++
			return nil
		})
		if q.limit > 0 && int64(count) > q.limit {
			a.err = fmt.Errorf("a page of %d", count)
		}
		if next = list.GetContinue(); next == "" {
			return a
		}
	}
}

// check finds, for each object that a read has told of, a state that explains it.
func (m *readModel) check(a answer) {
	m.Helper()
	m.logf("  %s", a.what)
	if a.err != nil {
		m.Errorf("%s: %v", a.what, a.err)
		return
	}
	for key := range a.shown {
		if !slices.Contains(a.keys, key) {
			m.Errorf("%s: shows %s", a.what, key)
		}
	}
	for _, key := range a.keys {
		m.explain(a, key)
	}
}

func (m *readModel) explain(a answer, key client.ObjectKey) {
	m.Helper()
	place := a.form + "/" + key.String()
	states := m.states[key]
	from := max(m.written[key], m.shown[place])
	if a.query.bound || a.query.live {
		from = len(states) - 1
	}
	shown := text(a.shown[key], a.form)
	var wants []string
	for at := from; at < len(states); at++ {
		var obj client.Object
		if a.query.live {
			if states[at] != nil {
				obj = states[at]
			}
		} else {
			obj = m.visible(states[at], a.query.namespace != "")
		}
		if !a.query.matches(obj) {
			obj = nil
		}
		want := text(obj, a.form)
		if want == shown {
			if !a.query.bound && !a.query.live {
				m.shown[place] = at
			}
			return
		}
		wants = append(wants, want)
	}
	m.Errorf("%s: of %s it shows\n  %s\nwant one of\n  %s", a.what, key, shown, strings.Join(wants, "\n  "))
}
