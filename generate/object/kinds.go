// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import "go/types"

// byReference reports whether assignment shares what the type holds.
func byReference(t types.Type) bool {
	switch t.(type) {
	case *types.Slice, *types.Map, *types.Pointer:
		return true
	}
	return false
}

// shallow reports whether assignment is a copy.
func shallow(t types.Type) bool {
	switch t := t.(type) {
	case *types.Basic:
		return t.Kind() != types.Invalid && t.Kind() != types.UnsafePointer
	case *types.Named:
		return shallow(t.Underlying())
	case *types.Struct:
		for field := range t.Fields() {
			if !shallow(field.Type()) {
				return false
			}
		}
		return true
	}
	return false
}

// declaredStruct reports whether a type is a struct that can have methods.
func declaredStruct(t types.Type) bool {
	_, unnamed := types.Unalias(t).(*types.Struct)
	_, isStruct := t.Underlying().(*types.Struct)
	return isStruct && !unnamed
}

// returnsPointer reports whether the DeepCopy method that will be written for a
// type returns a pointer.
func returnsPointer(t types.Type) bool {
	switch t := t.(type) {
	case *types.Pointer:
		return returnsPointer(t.Elem())
	case *types.Map, *types.Slice:
		return false
	case *types.Named:
		return returnsPointer(t.Underlying())
	}
	return true
}

// method returns the signature of a type's own method, nil if it has none;
// methods of embedded types do not count.
func (w *writer) method(t types.Type, name string) *types.Signature {
	obj, index, _ := types.LookupFieldOrMethod(t, true, w.pkg.Types, name)
	fn, ok := obj.(*types.Func)
	if !ok || len(index) != 1 {
		return nil
	}
	return fn.Signature()
}

// generic reports whether a type is an instance of a generic type.
func generic(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.TypeArgs().Len() > 0
}

// copyMethod reports whether a type has DeepCopy, and whether that takes and
// returns a pointer.
func (w *writer) copyMethod(t types.Type) (has, pointer bool) {
	has, pointer = w.ownCopy(t)
	return has && (!generic(t) || w.ownInto(t)), pointer
}

// intoMethod reports whether a type has DeepCopyInto. An instance of a generic type,
// for which nothing is going to be written, must have both methods to count.
func (w *writer) intoMethod(t types.Type) bool {
	if generic(t) {
		has, _ := w.ownCopy(t)
		return has && w.ownInto(t)
	}
	return w.ownInto(t)
}

func (w *writer) ownCopy(t types.Type) (has, pointer bool) {
	s := w.method(t, "DeepCopy")
	if s == nil || s.Params().Len() != 0 || s.Results().Len() != 1 {
		return false, false
	}
	recv, result := s.Recv().Type(), s.Results().At(0).Type()
	if !types.Identical(recv, result) {
		return false, false
	}
	_, pointer = recv.(*types.Pointer)
	return true, pointer
}

func (w *writer) ownInto(t types.Type) bool {
	s := w.method(t, "DeepCopyInto")
	if s == nil || s.Params().Len() != 1 || s.Results().Len() != 0 {
		return false
	}
	param, ok := s.Params().At(0).Type().(*types.Pointer)
	if !ok {
		return false
	}
	recv := s.Recv().Type()
	if pointer, ok := recv.(*types.Pointer); ok {
		recv = pointer.Elem()
	}
	return types.Identical(param.Elem(), recv)
}

// hasAny reports whether a type has either method; the other will exist once the
// code is written.
func (w *writer) hasAny(t types.Type) bool {
	has, _ := w.copyMethod(t)
	return has || w.intoMethod(t)
}
