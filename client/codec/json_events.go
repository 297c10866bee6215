// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

type jsonEvents struct {
	dec *json.Decoder
	d   *itemDecoder
}

func newJSONEvents(r io.Reader, d *itemDecoder) *jsonEvents {
	return &jsonEvents{json.NewDecoder(r), d}
}

func (j *jsonEvents) next() (watch.Event, error) {
	var e metav1.WatchEvent
	if err := j.dec.Decode(&e); err != nil {
		return watch.Event{}, err
	}
	eventType := watch.EventType(e.Type)
	if eventType == watch.Error {
		status := &metav1.Status{}
		return watch.Event{Type: eventType, Object: status}, unmarshalJSON(e.Object.Raw, status)
	}
	obj := j.d.newItem()
	var target any = obj
	if u, ok := obj.(runtime.Unstructured); ok {
		content := map[string]any{}
		if err := unmarshalJSON(e.Object.Raw, &content); err != nil {
			return watch.Event{}, fmt.Errorf("decode %s: %w", j.d.gvk.Kind, err)
		}
		u.SetUnstructuredContent(content)
	} else if err := unmarshalJSON(e.Object.Raw, target); err != nil {
		return watch.Event{}, fmt.Errorf("decode %s: %w", j.d.gvk.Kind, err)
	}
	j.d.finish(obj)
	return watch.Event{Type: eventType, Object: obj}, nil
}
