// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// gzipAbove is the size in bytes from which answers are compressed if the client
// accepts gzip.
const gzipAbove = 128 << 10

// Body is an answer that consists of byte slices owned by others, such as cached
// encodings.
type Body struct {
	begin []byte
	parts [][]byte
	size  int
	few   [few][]byte // backing array of parts for answers with one object
}

// few pieces are written one by one instead of being copied together.
const few = 2

// NewBody returns an empty body with capacity for some pieces.
func NewBody(pieces int) *Body {
	if pieces > few {
		return &Body{parts: make([][]byte, 0, pieces)}
	}
	b := &Body{}
	b.parts = b.few[:0]
	return b
}

// Begin sets the first piece, after the others were added.
func (b *Body) Begin(p []byte) {
	b.size += len(p) - len(b.begin)
	b.begin = p
}

// Len is the size in bytes so far.
func (b *Body) Len() int { return b.size }

// Add appends a piece.
func (b *Body) Add(p []byte) {
	if len(p) > 0 {
		b.parts = append(b.parts, p)
		b.size += len(p)
	}
}

// AddPieces appends the pieces of an encoded object.
func (b *Body) AddPieces(r wire.Pieces) {
	b.Add(r.Head)
	for _, p := range r.Rest {
		b.Add(p)
	}
}

// AddString appends a string.
func (b *Body) AddString(s string) { b.Add([]byte(s)) }

// Bytes returns the answer as one slice, which may be memory of others.
func (b *Body) Bytes() []byte {
	if len(b.parts) == 1 && len(b.begin) == 0 {
		return b.parts[0]
	}
	return append(slices.Clone(b.begin), bytes.Join(b.parts, nil)...)
}

// copyBuffers collect small pieces before they are written to the connection. A buffer
// belongs to one answer at a time.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // fails for an invalid level only
	return w
}}

// Send writes an answer, compressed if it is large and the client accepts that.
func Send(w *Writer, r *http.Request, code int, contentType string, b *Body) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	if b.size > gzipAbove && acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		w.WriteHeader(code)
		z := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(z)
		z.Reset(w)
		if b.writeTo(z) == nil { // else the client has disconnected
			_ = z.Close()
		}
		return
	}
	h.Set("Content-Length", strconv.Itoa(b.size))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_ = b.writeTo(w)
	}
}

func (b *Body) writeTo(w io.Writer) error {
	if len(b.parts) <= few && len(b.begin) == 0 {
		for _, p := range b.parts {
			if _, err := w.Write(p); err != nil {
				return err
			}
		}
		return nil
	}
	buffer := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buffer)
	gathered := append(buffer[:0], b.begin...)
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

// SendJSON writes JSON in the negotiated form: compact, indented or as YAML.
func SendJSON(w *Writer, r *http.Request, code int, choice negotiation.Choice, b *Body) error {
	switch {
	case choice.Media == negotiation.YAML:
		text, err := yaml.JSONToYAML(b.Bytes())
		if err != nil {
			return err
		}
		b = &Body{parts: [][]byte{text}, size: len(text)}
	case choice.Pretty:
		var indented bytes.Buffer
		if err := json.Indent(&indented, b.Bytes(), "", "  "); err != nil {
			return err
		}
		b = &Body{parts: [][]byte{indented.Bytes()}, size: indented.Len()}
	default:
		b.AddString("\n")
	}
	Send(w, r, code, choice.Media.ContentType(), b)
	return nil
}

// SendStatus writes a Status in a form that the client accepts, or as JSON.
func SendStatus(w *Writer, r *http.Request, code int, status *metav1.Status) {
	choice, err := negotiation.Output(r, negotiation.Offer{Protobuf: true})
	if err != nil {
		choice = negotiation.Choice{}
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if choice.Media == negotiation.Protobuf {
		raw, err := status.Marshal()
		if err == nil {
			b := NewBody(few)
			b.Add(wire.Envelope("v1", "Status", raw))
			Send(w, r, code, choice.Media.ContentType(), b)
			return
		}
	}
	raw, err := json.Marshal(status)
	if err != nil {
		http.Error(w, status.Message, code)
		return
	}
	b := NewBody(few)
	b.Add(raw)
	_ = SendJSON(w, r, code, choice, b)
}

// timedOut is the Status of a request whose time limit has passed, as kube-apiserver writes
// it: it names no kind, and its media type is that of text. client-go makes a message of
// its own of it: "the server was unable to return a response in the time allotted, ...".
const timedOut = `{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}`

// SendTimedOut answers a request whose time limit has passed.
func SendTimedOut(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusGatewayTimeout)
	_, _ = io.WriteString(w, timedOut+"\n") // the client may have gone
}
