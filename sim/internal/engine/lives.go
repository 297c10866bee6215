// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/internal/driven"
)

// lives follows the objects of a run.
type lives struct {
	open map[string]Life // by key
	over []Life
}

// change notes that an actor has created or deleted an object.
func (l *lives) change(actor string, c driven.Change) {
	if l.open == nil {
		l.open = map[string]Life{}
	}
	life := l.open[c.Key]
	if c.Object == nil {
		l.open[c.Key] = Life{Created: c.Created, CreatedBy: actor}
		return
	}
	life.Object, life.Created = c.Object, c.Created
	life.Deleted, life.DeletedBy = c.Deleted, actor
	delete(l.open, c.Key)
	l.over = append(l.over, life)
}

// all are the lives, those that are over first; what is there is given by its keys.
func (l *lives) all(objects map[string]*unstructured.Unstructured) []Life {
	out := slices.Clone(l.over)
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		life := l.open[key]
		life.Object = objects[key]
		out = append(out, life)
	}
	return out
}

// observe notes what an actor has created and deleted.
func (e *engine) observe(ctx context.Context, actor string) {
	changes, err := e.env.Changes(context.WithoutCancel(ctx))
	if err != nil {
		e.trouble(Broken, fmt.Sprintf("follow what is written: %v", err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range changes {
		e.lives.change(actor, c)
	}
}
