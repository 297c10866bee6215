// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genname names objects that ask for it with metadata.generateName.
package genname

import "github.com/steer-dev/steer/apiserver/resource"

// Lengths of generated names, in bytes.
const (
	maxNameLength   = 63
	suffixLength    = 5
	maxPrefixLength = maxNameLength - suffixLength
)

// MaxAttempts is how many names are tried.
const MaxAttempts = 8

// Wanted reports whether a name is to be generated for an object.
func Wanted(obj resource.Object) bool {
	return obj.GetName() == "" && obj.GetGenerateName() != ""
}

// Set names an object that wants it. suffix returns a random text of a length.
func Set(obj resource.Object, suffix func(length int) string) {
	if Wanted(obj) {
		prefix := obj.GetGenerateName()
		obj.SetName(prefix[:min(len(prefix), maxPrefixLength)] + suffix(suffixLength))
	}
}

// Try calls create for a new object; again, with another copy of it, while a name that is
// generated is taken.
func Try(obj resource.Object, create func(obj resource.Object) (taken bool, err error)) error {
	generated := Wanted(obj)
	for attempt := 1; ; attempt++ {
		candidate := obj
		if generated && attempt < MaxAttempts {
			candidate = obj.DeepCopyObject().(resource.Object)
		}
		if taken, err := create(candidate); !taken || !generated || attempt == MaxAttempts {
			return err
		}
	}
}
