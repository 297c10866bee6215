// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// Writer knows what was sent, and sends the warnings with the headers.
type Writer struct {
	http.ResponseWriter
	// Warnings that go with the headers.
	Warnings Warnings
	// Code that was sent; 0 before.
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

// Unwrap gives http.ResponseController the writer beneath.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Bounds of the warnings of one answer, in runes.
const (
	maxWarnings = 4096
	maxWarning  = 256
)

// Warnings are the texts of an answer's warnings.
type Warnings interface{ Texts() []string }

// sendWarnings puts warnings into headers; when they are too long together, long
// ones are cut, and when that is not enough, the last ones are left out.
func sendWarnings(h http.Header, texts []string) {
	runes := 0
	for _, text := range texts {
		runes += utf8.RuneCountInString(text)
	}
	sent := 0
	for _, text := range texts {
		if runes > maxWarnings {
			if cut := []rune(text); len(cut) > maxWarning {
				text = string(cut[:maxWarning])
			}
		}
		if sent += utf8.RuneCountInString(text); sent > maxWarnings {
			return
		}
		h.Add("Warning", "299 - "+quoteWarning(text))
	}
}

// quoteWarning makes an HTTP quoted-string of a text.
func quoteWarning(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 2 + strings.Count(text, `"`) + strings.Count(text, `\`))
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
