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

// Known remembers accounts, so that the Pods of one do not decode it each. The zero
// value is ready; it is safe for concurrent use.
type Known struct {
	mu       sync.Mutex
	accounts map[string]knownAccount // by namespace and name
}

// knownAccount is one version of an account.
type knownAccount struct {
	modified storage.Revision
	account  *corev1.ServiceAccount
}

// mostKnown bounds what is remembered; accounts that are gone stay until then.
const mostKnown = 256

// read reads an account, which is shared and must not be changed.
func (k *Known) read(view storage.View, namespace, name string) (*corev1.ServiceAccount, error) {
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
	k.mu.Lock()
	known, ok := k.accounts[key.Name]
	k.mu.Unlock()
	if ok && known.modified == rec.Modified {
		return known.account, nil
	}
	account := &corev1.ServiceAccount{}
	if err := read(view, gr, namespace, name, account); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.accounts == nil || len(k.accounts) >= mostKnown {
		k.accounts = map[string]knownAccount{}
	}
	k.accounts[key.Name] = knownAccount{rec.Modified, account}
	return account, nil
}
