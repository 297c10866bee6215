// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdvalidation validates CustomResourceDefinitions.
//
// It returns the errors of kube-apiserver 1.37, one for one: the server refuses
// definitions with it, and the generator warns their authors before they are applied. A
// test compares it with the library of Kubernetes on thousands of definitions, most of
// them broken on purpose.
//
// Definitions are in the internal form that the conversion from v1 makes: what all
// versions have in common is at the top, and errors name it there. The order of errors
// depends on the definition alone; properties are sorted by name.
//
// Object metadata is validated by the caller, as for every kind, except for the name
// and the annotation that only definitions have.
//
// An update may keep errors of the old definition: rules that were added later do not
// make a stored definition immutable. [ValidateUpdate] determines from the old
// definition which errors the new one may have.
package crdvalidation
