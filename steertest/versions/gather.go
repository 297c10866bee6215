// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/steer-dev/steer/trace"
)

// Gather makes a file of what a server of Steer has: all objects, their versions by its
// notes, the newest first until they take so many bytes, and the notes. Values of Secrets are
// replaced by digests with a key that is thrown away, so that a change is seen.
func (s *Server) Gather(ctx context.Context, most int) (*File, error) {
	f := &File{resources: s.resources, versions: map[trace.Object][]version{}}
	hide := hider()
	current, missing := s.All(ctx, "")
	f.Missing = missing
	for _, o := range current {
		revision := revisionOf(o.Content)
		f.From = max(f.From, revision)
		if err := f.add(o.Object, revision, hide(o)); err != nil {
			return nil, err
		}
	}
	f.notes, _ = s.Notes(ctx) // none: the versions that are there now are all
	oldest := map[trace.Object]int64{}
	for i := len(f.notes) - 1; i >= 0; i-- {
		n := &f.notes[i]
		r, served := s.named(n.Group, n.Resource)
		if !served || n.Resource == "events" {
			continue
		}
		object, revision := trace.Object{Group: r.GVK.Group, Kind: r.GVK.Kind, Namespace: n.Namespace, Name: n.Name}, int64(n.Revision)
		if f.bytes > most {
			f.Missing = append(f.Missing, fmt.Sprintf("versions before %d: a file has %d MiB of them", revision+1, most>>20))
			return f, s.before(ctx, f, hide, oldest)
		}
		if err := s.version(ctx, f, hide, object, revision); errors.Is(err, ErrForgotten) {
			return f, s.before(ctx, f, hide, oldest)
		} else if err != nil {
			return nil, err
		}
		oldest[object], f.From = revision, min(f.From, revision)
	}
	if len(f.notes) > 0 {
		f.From = max(int64(f.notes[0].Revision)-1, 1)
	}
	return f, s.before(ctx, f, hide, oldest)
}

// version adds what a revision made of an object.
func (s *Server) version(ctx context.Context, f *File, hide func(Object) map[string]any, object trace.Object, revision int64) error {
	if f.has(object, revision) {
		return nil
	}
	content, err := s.At(ctx, object, revision)
	if err != nil {
		return err
	}
	return f.add(object, revision, hide(Object{object, content}))
}

// before adds the versions that the oldest writes replaced.
func (s *Server) before(ctx context.Context, f *File, hide func(Object) map[string]any, oldest map[trace.Object]int64) error {
	for object, revision := range oldest {
		if revision <= 1 {
			continue
		}
		content, err := s.At(ctx, object, revision-1)
		switch {
		case errors.Is(err, ErrForgotten):
			f.From = max(f.From, revision)
		case err != nil:
			return err
		case content != nil && !f.has(object, revisionOf(content)):
			if err := f.add(object, revisionOf(content), hide(Object{object, content})); err != nil {
				return err
			}
		}
	}
	f.sort()
	return nil
}

// hider returns what replaces the values of Secrets: data, and annotations, which may have
// what was applied last.
func hider() func(Object) map[string]any {
	var key [32]byte
	_, _ = rand.Read(key[:]) // it does not fail
	digest := func(values any) {
		fields, _ := values.(map[string]any)
		for name, value := range fields {
			text, _ := json.Marshal(value) // it was read from JSON
			sum := hmac.New(sha256.New, key[:])
			_, _ = sum.Write(text)
			fields[name] = "hidden " + hex.EncodeToString(sum.Sum(nil)[:6])
		}
	}
	return func(o Object) map[string]any {
		if o.Group == "" && o.Kind == "Secret" {
			digest(o.Content["data"])
			digest(o.Content["stringData"])
			metadata, _ := o.Content["metadata"].(map[string]any)
			digest(metadata["annotations"])
		}
		return o.Content
	}
}
