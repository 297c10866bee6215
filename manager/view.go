// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// View is a [Manager] as the controllers see it that need some kinds otherwise than
// the others: with a transform, a selection, or namespaces of their own. It is made by
// [Manager.View], and is safe for concurrent use.
type View struct {
	*Manager
	copies *cache.Cache
	client client.Client
}

var _ controller.Manager = (*View)(nil)

// View returns the manager with informers of its own for the given kinds. Controllers
// that are added to it watch and read these kinds there, and all others where the
// manager has them:
//
//	slim, err := m.View(cache.KindOptions{Object: &corev1.Secret{}, Transform: dropData})
//	err = controller.Add(slim, &Reconciler{Client: slim.Client()})
//
// A view costs a watch and a copy of its kinds. It may be made before the manager
// starts or while it runs, lives as long as the manager, and reads see the writes of
// all its clients. In the metrics of informers its name is that of the resource with
// "-view-1", "-view-2" and so on, in the order in which views are made.
//
// Metadata alone needs no View: it is held beside the whole objects, or shared with
// them, by the form that is asked for; see [controller.OwnsKind].
func (m *Manager) View(kinds ...cache.KindOptions) (*View, error) {
	copies, err := m.cache.View(kinds...)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	v := &View{Manager: m, copies: copies, client: cache.NewClient(m.direct, copies)}
	if m.opts.WrapClient != nil {
		v.client = m.opts.WrapClient(v.client)
	}
	return v, nil
}

// Client is like that of the manager, and reads what the view holds from there.
func (v *View) Client() client.Client { return v.client }

// Cache of what the controllers of the view read.
func (v *View) Cache() *cache.Cache { return v.copies }

// Deps implements controller.Manager.
func (v *View) Deps() controller.Deps {
	deps := v.Manager.Deps()
	deps.Client, deps.Informers = v.client, v.copies
	deps.Metrics = func(c controller.ControllerInfo) (controller.Instruments, error) { return v.measure(c, v.copies) }
	return deps
}
