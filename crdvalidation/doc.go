// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdvalidation tells what is wrong with a CustomResourceDefinition.
//
// It says what kube-apiserver 1.36 says, error by error: the server refuses
// definitions with it, and the generator warns their authors before they are
// applied. A test holds its answers to those of the library of Kubernetes on
// thousands of definitions, most of them broken on purpose.
//
// Definitions come in the internal form that the conversion from v1 makes: what
// all versions have in common stands at the top, and errors name it there. Errors
// come in an order that depends on the definition alone, properties by name.
//
// What every object has, metadata, is left to who checks it for every kind, but
// for the name and the annotation that only definitions have.
//
// An update may keep what is wrong already: rules that came later than some
// stored definition do not make that one impossible to change. [ValidateUpdate]
// works out from the old one what the new one is forgiven.
package crdvalidation
