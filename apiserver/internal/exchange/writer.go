// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"net/http"
	"strings"
)

// Writer records the status code and sends warnings with the headers.
type Writer struct {
	http.ResponseWriter
	// Warnings that go with the headers.
	Warnings Warnings
	// Code that was sent; 0 before the headers.
	Code int
	// Deadlines of the exchange; nil for none.
	Deadlines *Deadlines
}

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(code int) {
	if w.Code == 0 && code >= 200 {
		w.Code = code
		sendWarnings(w.Header(), w.Warnings.Texts())
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (int, error) {
	if w.Code == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.Deadlines.Writing()
	defer w.Deadlines.Written()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *Writer) Flush() {
	w.Deadlines.Writing()
	defer w.Deadlines.Written()
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Warnings are the texts of an answer's warnings, which have no control characters.
type Warnings interface{ Texts() []string }

// sendWarnings adds warnings to headers.
func sendWarnings(h http.Header, texts []string) {
	for _, text := range texts {
		h.Add("Warning", "299 - "+quoteWarning(text))
	}
}

// quoteWarning returns a text as an HTTP quoted-string.
func quoteWarning(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2 + strings.Count(text, `"`) + strings.Count(text, `\`))
	b.WriteByte('"')
	for _, r := range text {
		if r == '"' || r == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	b.WriteByte('"')
	return b.String()
}
