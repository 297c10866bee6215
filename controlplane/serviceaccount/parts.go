// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/namespace"
	"github.com/steer-dev/steer/storage"
)

// Component returns the subresource token of ServiceAccounts, and the documents by which others
// verify tokens. keySet returns the URL at which others find the keys.
func (t *Tokens) Component(d component.Deps, keySet func() string) component.Component {
	configuration, keys := t.Configuration(keySet), t.KeySet()
	return component.Component{
		Name:   "tokens of service accounts",
		Extend: []component.Extension{{Resource: accounts, Subresources: []resource.Subresource{t.subresource()}}},
		Handlers: map[string]http.Handler{
			ConfigurationPath: configuration, ConfigurationPath + "/": configuration,
			KeySetPath: keys, KeySetPath + "/": keys,
		},
		Health: component.Hooks(d.Progress.Booted, "start-legacy-token-tracking-controller"),
	}
}

// Plugin returns the admission plugin ServiceAccount. It waits for the ServiceAccount "default" of
// new namespaces also where another process makes that, as kube-apiserver does.
func Plugin(d component.Deps) component.Component {
	return component.Plugin("ServiceAccount", Admission{Store: d.Store, Suffix: d.Entropy.Suffix, Cache: &AccountCache{}, Patience: Settling}, "pods")
}

// Component returns the controller. What it keeps is also there when the creation of a
// namespace returns, and in the namespaces that every cluster has when the server starts.
//
// A request that is not carried out does not fail the creation of the namespace: the
// controller sends it again.
func (k *NamespaceObject) Component(d component.Deps) component.Component {
	out := component.Controller(k)
	out.Extend = []component.Extension{{Resource: namespaces, Committed: func(ctx context.Context, change resource.Change) error {
		ns, ok := change.Object.(*corev1.Namespace)
		if !ok || change.Old != nil || change.Deleted {
			return nil
		}
		if request, err := k.Request(ns.Name); err == nil {
			_ = d.Send(ctx, request) // the controller sends it again
		}
		return nil
	}}}
	out.Boot = func(view storage.View, now time.Time) (writes []storage.Write, _ []step.Request, _ error) {
		for _, name := range namespace.System() {
			if view.Get(storage.Key{Bucket: namespaces, Name: name}) != nil {
				continue // the controller looks after what it has
			}
			c, err := k.Creation(name, d.Entropy.UID(), now)
			if err != nil {
				return nil, nil, err
			}
			writes = append(writes, c.Write())
		}
		return writes, nil, nil
	}
	return out
}

// subresource returns the subresource token.
func (t *Tokens) subresource() resource.Subresource {
	token := requestKind()
	token.Backend = requests{t}
	return token
}
