// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/storage"
)

// AccountCache keeps decoded accounts, so that the Pods of one do not decode it each. The zero
// value is ready; it is safe for concurrent use.
type AccountCache struct {
	mu       sync.Mutex
	accounts map[string]cachedAccount // by namespace and name
}

// cachedAccount is one version of an account.
type cachedAccount struct {
	modified storage.Revision
	account  *corev1.ServiceAccount
}

// mostCached bounds what is remembered; accounts that are gone stay until then.
const mostCached = 256

// version returns the account that a record holds if it is remembered, or nil.
func (k *AccountCache) version(rec *storage.Record) *corev1.ServiceAccount {
	if k == nil || rec == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.accounts[rec.Key.Name]; ok && known.modified == rec.Modified {
		return known.account
	}
	return nil
}

// read reads an account, which is shared and must not be changed.
func (k *AccountCache) read(view storage.View, namespace, name string) (*corev1.ServiceAccount, error) {
	gr := schema.GroupResource{Resource: accounts}
	if k == nil {
		account := &corev1.ServiceAccount{}
		return account, read(view, gr, namespace, name, account)
	}
	key := storage.Key{Bucket: accounts, Name: namespace + "/" + name}
	rec := view.Get(key)
	if rec == nil {
		return nil, apierrors.NewNotFound(gr, name)
	}
	if account := k.version(rec); account != nil {
		return account, nil
	}
	account := &corev1.ServiceAccount{}
	if err := read(view, gr, namespace, name, account); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.accounts == nil || len(k.accounts) >= mostCached {
		k.accounts = map[string]cachedAccount{}
	}
	k.accounts[key.Name] = cachedAccount{rec.Modified, account}
	return account, nil
}
