// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// gzipAbove is the size from which answers are compressed for those who can
// read it.
const gzipAbove = 128 << 10

// body is an answer made of pieces that others own.
type body struct {
	parts [][]byte
	size  int
}

func (b *body) add(p []byte) {
	if len(p) > 0 {
		b.parts = append(b.parts, p)
		b.size += len(p)
	}
}

func (b *body) addString(s string) { b.add([]byte(s)) }

func (b *body) bytes() []byte {
	if len(b.parts) == 1 {
		return b.parts[0]
	}
	return bytes.Join(b.parts, nil)
}

// copyBuffers are for gathering pieces, so that small ones do not reach the
// connection one by one. They belong to one answer at a time.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails for bad levels only
	return w
}}

// send writes an answer.
func (s *Server) send(w *responseWriter, req *Request, code int, contentType string, b *body) error {
	h := w.Header()
	h.Set("Content-Type", contentType)
	if b.size > gzipAbove && acceptsGzip(req.http) {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		w.WriteHeader(code)
		z := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(z)
		z.Reset(w)
		if err := b.writeTo(z); err != nil {
			return nil // the client is gone; nobody is left to tell
		}
		_ = z.Close()
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(b.size))
	w.WriteHeader(code)
	if req.http.Method != http.MethodHead {
		_ = b.writeTo(w)
	}
	return nil
}

func (b *body) writeTo(w io.Writer) error {
	if len(b.parts) == 1 {
		_, err := w.Write(b.parts[0])
		return err
	}
	buffer := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buffer)
	gathered := buffer[:0]
	for _, p := range b.parts {
		if len(gathered)+len(p) > len(buffer) {
			if _, err := w.Write(gathered); err != nil {
				return err
			}
			gathered = buffer[:0]
		}
		if len(p) > len(buffer) {
			if _, err := w.Write(p); err != nil {
				return err
			}
			continue
		}
		gathered = append(gathered, p...)
	}
	_, err := w.Write(gathered)
	return err
}

func acceptsGzip(r *http.Request) bool {
	for _, token := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}

// sendJSON writes JSON in the text form that was chosen.
func (s *Server) sendJSON(w *responseWriter, req *Request, code int, choice negotiate.Choice, b *body) error {
	switch {
	case choice.Media == negotiate.YAML:
		text, err := yaml.JSONToYAML(b.bytes())
		if err != nil {
			return err
		}
		b = &body{parts: [][]byte{text}, size: len(text)}
	case choice.Pretty:
		var indented bytes.Buffer
		if err := json.Indent(&indented, b.bytes(), "", "  "); err != nil {
			return err
		}
		b = &body{parts: [][]byte{indented.Bytes()}, size: indented.Len()}
	default:
		b.addString("\n")
	}
	return s.send(w, req, code, choice.Media.ContentType(), b)
}

// answerStatus writes a Status.
func (s *Server) answerStatus(w *responseWriter, req *Request, code int, status *metav1.Status) {
	choice, err := negotiate.Output(req.http, negotiate.Offer{Protobuf: true})
	if err != nil {
		choice = negotiate.Choice{}
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if choice.Media == negotiate.Protobuf {
		raw, err := status.Marshal()
		if err == nil {
			b := &body{}
			b.add(wire.Envelope("v1", "Status", raw))
			_ = s.send(w, req, code, choice.Media.ContentType(), b)
			return
		}
	}
	raw, err := json.Marshal(status)
	if err != nil {
		http.Error(w, status.Message, code)
		return
	}
	b := &body{}
	b.add(raw)
	_ = s.sendJSON(w, req, code, choice, b)
}
