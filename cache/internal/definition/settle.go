// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"

	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

// What an own write has done is sometimes known to the server alone: its answer had only
// the metadata, or did not arrive. A list first asks for those objects, one by one, and
// for all objects if there are more than maxKeys of them, or others still after
// maxRounds.
const (
	maxKeys   = 8
	maxRounds = 3
)

// SettleGet is the object at key, of which only the server knows; kept is told.
func (d *Definition) SettleGet(ctx context.Context, live client.Reader, kept *store.Store, key client.ObjectKey) (client.Object, error) {
	mark := kept.Mark()
	obj, revision, err := d.Fetch(ctx, live, key)
	if err != nil {
		return nil, err
	}
	if revision == "" {
		// A NotFound has no revision, but a list of nothing has. Without it the reads of
		// key go on going to the server.
		if listed, at, err := d.FetchListed(ctx, live, key); err == nil {
			obj, revision = listed, at
		}
	}
	kept.Resolve(key, mark, obj, revision)
	return obj, nil
}

// SettleList answers a list for which the server must be asked; kept is told.
func (d *Definition) SettleList(ctx context.Context, live client.Reader, kept *store.Store, o *client.ListOptions) (Answer, error) {
	answer, ok := d.settleKeys(ctx, live, kept, o)
	var err error
	if !ok {
		answer, err = d.settleAll(ctx, live, kept, o)
	}
	answer.How = store.Unknown
	return answer, err
}

// settleKeys asks for single objects; false means that this does not lead to an answer.
func (d *Definition) settleKeys(ctx context.Context, live client.Reader, kept *store.Store, o *client.ListOptions) (Answer, bool) {
	for range maxRounds {
		keys := kept.UnknownKeys(o.Namespace)
		if len(keys) > maxKeys {
			break
		}
		for _, key := range keys {
			if _, err := d.SettleGet(ctx, live, kept, key); err != nil {
				return Answer{}, false
			}
		}
		if answer, err := d.Query(kept, o); err == nil && answer.How != store.Unknown {
			return answer, true
		}
	}
	return Answer{}, false
}

// settleAll asks for all objects of the namespace.
func (d *Definition) settleAll(ctx context.Context, live client.Reader, kept *store.Store, o *client.ListOptions) (Answer, error) {
	mark := kept.Mark()
	listed, err := d.FetchAll(ctx, live, &client.ListOptions{Namespace: o.Namespace})
	if err != nil {
		return Answer{}, err
	}
	for _, key := range kept.UnknownKeys(o.Namespace) {
		obj, revision := stateAt(listed, key)
		kept.Resolve(key, mark, obj, revision)
	}
	// What the watch has shown of other objects stays what is read, where all is known.
	if answer, err := d.Query(kept, o); err != nil || answer.How != store.Unknown {
		return answer, err
	}
	return d.Query(listed, o)
}
