// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/internal/derived"
	"github.com/steer-dev/steer/storage"
)

// configurations are the stored configurations of one kind. They are in force with the
// answer of their write. Those that stay the same are not compiled again.
type configurations struct {
	index *derived.Value[*match.Index[*hook]]
}

func newConfigurations[T any](store storage.Viewer, d *match.Deps, bucket string, compile func(*T) []*hook) configurations {
	compiled := derived.NewVersions(bucket, func(rec *storage.Record, _ []*hook) ([]*hook, error) {
		obj := new(T)
		if err := json.Unmarshal(rec.Value, obj); err != nil {
			return nil, err
		}
		return compile(obj), nil
	})
	return configurations{derived.New(store, func(view storage.View, _ *match.Index[*hook]) (*match.Index[*hook], error) {
		hooks, err := compiled.Read(view)
		if err != nil {
			return nil, err
		}
		all := slices.Concat(hooks...)
		for i, h := range all {
			placed := *h
			placed.position, all[i] = i, &placed
		}
		return match.NewIndex(d, all, func(h *hook) *match.Constraints { return h.constraints }), nil
	}, bucket)}
}

// current returns the index of all hooks, in the order in which they are called.
func (c *configurations) current() (*match.Index[*hook], error) {
	index, err := c.index.Get()
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("admission: %w", err))
	}
	return index, nil
}
