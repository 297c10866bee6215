// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/steer-dev/steer/storage"
)

var ctx = context.Background()

func ExampleMemory() {
	s := storage.NewMemory(storage.MemoryOptions{})
	defer s.Close()

	// The store inserts the revision that it assigns.
	key := storage.Key{Bucket: "example.com/widgets", Name: "default/one"}
	one, err := s.Commit(ctx, storage.Write{
		Key: key, Value: []byte(`{"resourceVersion":"","size":1}`), Stamp: len(`{"resourceVersion":"`), Expect: storage.Absent,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(one.Value))

	// A change names the revision that it was computed from.
	change := storage.Write{Key: key, Value: []byte(`{"size":2}`), Expect: one.Modified}
	if _, err := s.Commit(ctx, change); err != nil {
		log.Fatal(err)
	}
	_, err = s.Commit(ctx, change)
	fmt.Println(errors.Is(err, storage.ErrConflict), err)

	// Old revisions stay readable for some minutes.
	then, err := s.View(ctx, one.Modified)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(then.Get(key).Value))
	// Output:
	// {"resourceVersion":"1","size":1}
	// true storage: change example.com/widgets/default/one expected at revision 1: it is at revision 2
	// {"resourceVersion":"1","size":1}
}

func ExampleCursor() {
	s := storage.NewMemory(storage.MemoryOptions{})
	defer s.Close()

	// List, then watch from the revision of the list: nothing is missed.
	view, err := s.View(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	cursor, err := s.Watch(storage.Range{Bucket: "example.com/widgets", Prefix: "default/"}, view.Revision())
	if err != nil {
		log.Fatal(err)
	}
	defer cursor.Close()

	for _, name := range []string{"default/one", "other/one", "default/two"} {
		s.Commit(ctx, storage.Write{Key: storage.Key{Bucket: "example.com/widgets", Name: name}, Value: []byte("v")})
	}
	batch, err := cursor.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range batch.Events {
		fmt.Println(event.Record.Modified, event.Record.Key)
	}
	fmt.Println("complete up to revision", batch.Revision)
	// Output:
	// 1 example.com/widgets/default/one
	// 3 example.com/widgets/default/two
	// complete up to revision 3
}

func ExampleSave() {
	s := storage.NewMemory(storage.MemoryOptions{})
	defer s.Close()
	key := storage.Key{Bucket: "example.com/widgets", Name: "default/one"}
	s.Commit(ctx, storage.Write{Key: key, Value: []byte("kept")})

	view, err := s.View(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	var stream bytes.Buffer
	if err := storage.Save(ctx, &stream, view); err != nil {
		log.Fatal(err)
	}
	loaded, err := storage.Load(&stream)
	if err != nil {
		log.Fatal(err)
	}
	// A store that begins with a view shares its records: this is a fork, too.
	copied := storage.NewMemory(storage.MemoryOptions{From: loaded})
	defer copied.Close()
	fmt.Println(string(loaded.Get(key).Value), loaded.Revision())
	// Output: kept 1
}
