// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"time"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/internal/jsontext"
)

// fastMetadata reports whether the metadata of an object certainly has the form that
// decoding and encoding it would give it: known fields of their types, nothing empty that
// would be left out, times in UTC and whole seconds.
//
//steer:fast decode
func fastMetadata(d *resource.Doc) bool {
	metadata, ok := doc.Metadata(d)
	if !ok {
		return false
	}
	if record := doc.ManagedFields(d); record.Exists() {
		if text, ok := record.Text(); !ok || !canonicalRecord(text) {
			return false
		}
	}
	for name, value := range metadata {
		ok := false
		switch name {
		case "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion":
			ok = someText(value)
		case "generation":
			n, is := value.(int64)
			ok = is && n != 0
		case "creationTimestamp", "deletionTimestamp":
			text, is := value.(string)
			ok = is && canonicalTime(text)
		case "deletionGracePeriodSeconds":
			_, ok = value.(int64)
		case "labels", "annotations":
			ok = someTexts(value)
		case "finalizers":
			ok = everyOf(value, func(item any) bool { _, is := item.(string); return is })
		case "ownerReferences":
			ok = everyOf(value, canonicalOwner)
		}
		if !ok {
			return false
		}
	}
	return true
}

func someText(value any) bool {
	text, ok := value.(string)
	return ok && text != ""
}

func someTexts(value any) bool {
	texts, ok := value.(map[string]any)
	if !ok || len(texts) == 0 {
		return false
	}
	for _, text := range texts {
		if _, ok := text.(string); !ok {
			return false
		}
	}
	return true
}

// everyOf reports whether a value is a list with elements that all pass.
func everyOf(value any, pass func(any) bool) bool {
	list, ok := value.([]any)
	if !ok || len(list) == 0 {
		return false
	}
	for _, item := range list {
		if !pass(item) {
			return false
		}
	}
	return true
}

func canonicalTime(text string) bool {
	if len(text) != len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
		return false
	}
	t, err := time.Parse(time.RFC3339, text)
	return err == nil && !t.IsZero()
}

// canonicalOwner passes owner references with the four fields that are always
// written.
func canonicalOwner(value any) bool {
	owner, ok := value.(map[string]any)
	if !ok {
		return false
	}
	texts := 0
	for name, member := range owner {
		switch name {
		case "apiVersion", "kind", "name", "uid":
			_, ok = member.(string)
			texts++
		case "controller", "blockOwnerDeletion":
			_, ok = member.(bool)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return texts == 4
}

// canonicalRecord passes managedFields that have entries.
func canonicalRecord(record jsontext.Text) bool {
	if record[0] != '[' || record == "[]" {
		return false
	}
	for r := record.Reader(); r.Element(); {
		if r.Kind() != '{' {
			return false
		}
		for name, ok := r.Member(); ok; name, ok = r.Member() {
			switch name {
			case "manager", "operation", "apiVersion", "fieldsType", "subresource":
				ok = r.Kind() == '"' && r.Text() != ""
			case "time":
				ok = r.Kind() == '"' && canonicalTime(r.Text())
			case "fieldsV1":
				ok = onlyObjects(&r)
			default:
				return false
			}
			if !ok {
				return false
			}
		}
	}
	return true
}

// onlyObjects reports whether a value consists of objects alone, as sets of fields
// do.
func onlyObjects(r *jsontext.Reader) bool {
	if r.Kind() != '{' {
		return false
	}
	for _, ok := r.Member(); ok; _, ok = r.Member() {
		if !onlyObjects(r) {
			return false
		}
	}
	return true
}
