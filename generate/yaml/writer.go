// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml

import (
	"maps"
	"slices"
)

// Writer writes a document entry by entry. The zero value is an empty one.
type Writer struct {
	Out []byte // the document so far
}

// Open writes a key whose value is written at a further column.
func (w *Writer) Open(column int, key string) {
	w.Out = append(Key(w.Out, column, key), '\n')
}

// String writes a text.
func (w *Writer) String(column int, key, text string) {
	w.Out = String(Key(w.Out, column, key), column, text)
}

// Value writes what [Value] takes.
func (w *Writer) Value(column int, key string, value any) {
	w.Out = Value(Key(w.Out, column, key), column, value)
}

// Item writes an item of the sequence that a key at the column opened.
func (w *Writer) Item(column int, value any) { w.Out = Item(w.Out, column, value) }

// Strings writes a sequence of texts; nothing if there are none.
func (w *Writer) Strings(column int, key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	w.Open(column, key)
	for _, text := range texts {
		w.Item(column, text)
	}
}

// Map writes texts by their keys; nothing if there are none.
func (w *Writer) Map(column int, key string, texts map[string]string) {
	if len(texts) == 0 {
		return
	}
	w.Open(column, key)
	for _, name := range slices.SortedFunc(maps.Keys(texts), Compare) {
		w.String(column+2, name, texts[name])
	}
}
