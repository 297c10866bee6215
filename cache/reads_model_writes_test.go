// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

func (m *readModel) key() client.ObjectKey {
	return client.ObjectKey{Namespace: modelNamespaces[m.rnd.IntN(len(modelNamespaces))], Name: modelNames[m.rnd.IntN(len(modelNames))]}
}

func (m *readModel) value() string { return strconv.Itoa(m.rnd.IntN(3)) }

// object is a random one.
func (m *readModel) object(namespace, name string) client.Object {
	metadata := metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": []string{"x", "x", "y"}[m.rnd.IntN(3)]},
		Annotations: map[string]string{"v": m.value(), "drop": "me"},
	}
	if m.odds(4) {
		metadata.Finalizers = []string{"example.com/x"}
	}
	if !m.custom() {
		return &corev1.ConfigMap{ObjectMeta: metadata, Data: map[string]string{"v": m.value(), "drop": "me"}}
	}
	return &widget{ObjectMeta: metadata, Spec: widgetSpec{Value: m.value(), Color: []string{"red", "red", "blue"}[m.rnd.IntN(3)]}}
}

// metadataPatch changes metadata alone: what is read by, selected by, or ends an object.
func (m *readModel) metadataPatch() client.Patch {
	change := fmt.Sprintf(`"annotations":{"v":%q}`, m.value())
	switch m.rnd.IntN(4) {
	case 0:
		change = fmt.Sprintf(`"labels":{"app":%q}`, []string{"x", "y"}[m.rnd.IntN(2)])
	case 1:
		change = `"finalizers":null`
	}
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{`+change+`}}`))
}

// own is a write through the client of the cache.
func (m *readModel) own() {
	key := m.key()
	m.wire.LoseAnswers(m.odds(12))
	what, err := m.write(key)
	m.wire.LoseAnswers(false)
	m.logf("%s %s: %v", what, key, err)
	before := map[client.ObjectKey]int{}
	for k, states := range m.states {
		before[k] = len(states)
	}
	m.record()
	switch {
	case err == nil && what == "delete all": // of what was there
		for k, states := range m.states {
			if len(states) > before[k] {
				m.wroteUntilNow(k)
			}
		}
	case err == nil:
		m.wroteUntilNow(key)
	case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown: // written, but the answer was lost
		if what != "delete all" { // of what the cache had not seen it cannot know
			m.wroteUntilNow(key)
		}
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
	default:
		m.Errorf("%s %s: %v", what, key, err)
	}
}

// wroteUntilNow makes reads show what the server has.
func (m *readModel) wroteUntilNow(key client.ObjectKey) { m.written[key] = len(m.states[key]) - 1 }

func (m *readModel) write(key client.ObjectKey) (what string, err error) {
	ctx := m.Context()
	form := modelForms[m.rnd.IntN(len(modelForms))]
	obj := m.blank(form)
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	switch m.rnd.IntN(10) {
	case 0, 1:
		return "create", m.client.Create(ctx, m.object(key.Namespace, key.Name))
	case 2:
		latest := m.blank("typed")
		if err := m.client.Get(ctx, key, latest, client.Live); err != nil {
			return "update", err
		}
		changed := m.object(key.Namespace, key.Name)
		latest.SetAnnotations(changed.GetAnnotations())
		latest.SetLabels(changed.GetLabels())
		latest.SetFinalizers(nil)
		return "update", m.client.Update(ctx, latest)
	case 3, 4, 5:
		return "patch in form " + form, m.client.Patch(ctx, obj, m.metadataPatch())
	case 6:
		applied := m.blank("unstructured")
		if m.odds(2) {
			applied = m.blank("typed")
		}
		applied.GetObjectKind().SetGroupVersionKind(m.gvk)
		applied.SetNamespace(key.Namespace)
		applied.SetName(key.Name)
		applied.SetAnnotations(map[string]string{"v": m.value()})
		return "apply", m.client.Apply(ctx, applied, client.ForceOwnership)
	case 7:
		if !m.custom() {
			return "create", m.client.Create(ctx, m.object(key.Namespace, key.Name))
		}
		body := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"status":{"phase":%q}}`, m.value())))
		return "patch of status in form " + form, m.client.Status().Patch(ctx, obj, body)
	case 8:
		return "delete in form " + form, m.client.Delete(ctx, obj)
	}
	return "delete all", m.client.DeleteAllOf(ctx, obj, client.InNamespace(key.Namespace))
}

// foreign is a write behind the cache's back.
func (m *readModel) foreign() {
	ctx, key := m.Context(), m.key()
	obj := m.object(key.Namespace, key.Name)
	var err error
	switch m.rnd.IntN(4) {
	case 0:
		err = m.truth.Delete(ctx, obj)
	case 1:
		err = m.truth.Patch(ctx, obj, m.metadataPatch())
	default:
		err = m.truth.Create(ctx, obj)
	}
	m.logf("foreign write of %s: %v", key, err)
	m.record()
}

// meanwhile reads while another goroutine changes metadata: each object once, so that the
// states of all are known in the end.
func (m *readModel) meanwhile() {
	type write struct {
		key   client.ObjectKey
		form  string
		patch client.Patch
	}
	var writes []write
	for _, i := range m.rnd.Perm(len(modelNames))[:2] {
		for _, namespace := range modelNamespaces {
			writes = append(writes, write{client.ObjectKey{Namespace: namespace, Name: modelNames[i]}, modelForms[m.rnd.IntN(len(modelForms))], m.metadataPatch()})
		}
	}
	var (
		wg   sync.WaitGroup
		done []client.ObjectKey
	)
	wg.Go(func() {
		for _, w := range writes {
			obj := m.blank(w.form)
			obj.SetNamespace(w.key.Namespace)
			obj.SetName(w.key.Name)
			switch err := m.client.Patch(m.Context(), obj, w.patch); {
			case err == nil:
				done = append(done, w.key)
			case !apierrors.IsNotFound(err):
				m.Errorf("patch %s: %v", w.key, err)
			}
		}
	})
	var answers []answer
	for range 6 {
		form := modelForms[m.rnd.IntN(len(modelForms))]
		a := m.read(form)
		if !a.query.bound && !a.query.live { // they show what is newest, which is moving
			answers = append(answers, a)
		}
	}
	wg.Wait()
	m.record()
	m.logf("meanwhile writes of %v", done)
	for _, a := range answers {
		m.check(a)
	}
	for _, key := range done {
		m.wroteUntilNow(key)
	}
}
