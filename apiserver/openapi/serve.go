// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
)

// Media types of the protobuf forms; clients use the old ones, with an at sign.
const (
	protobufV2    = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	protobufV2Old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	protobufV3    = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	protobufV3Old = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// document is a built document in its encodings.
type document struct {
	json     []byte
	err      error
	protobuf func() ([]byte, error)
}

// newDocument encodes content. parse reads the encoded form, for the protobuf form.
func newDocument(content any, parse func([]byte) (proto.Message, error)) *document {
	d := &document{}
	d.json, d.err = json.Marshal(content)
	d.protobuf = sync.OnceValues(func() ([]byte, error) {
		parsed, err := parse(d.json)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(parsed)
	})
	return d
}

func parseV2(data []byte) (proto.Message, error) { return openapi_v2.ParseDocument(data) }

func parseV3(data []byte) (proto.Message, error) { return openapi_v3.ParseDocument(data) }

// ServeHTTP answers GET requests for /openapi/v2, /openapi/v3 and the paths below it.
// An unknown path is a 404.
func (d *Documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache, private")
	below, isV3 := strings.CutPrefix(r.URL.Path, "/openapi/v3")
	switch {
	case r.URL.Path == "/openapi/v2":
		serve(w, r, d.merged, d.etag(), protobufV2, protobufV2Old)
	case isV3 && below == "":
		d.index(w)
	case isV3:
		p := strings.TrimPrefix(below, "/")
		if o, elsewhere := d.others[p]; elsewhere {
			o.handler.ServeHTTP(w, r)
			return
		}
		v := d.own(p)
		if v == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		d.versioned(w, r, v)
	default:
		http.Error(w, "404 page not found", http.StatusNotFound)
	}
}

// index lists the documents of version 3 with their fingerprints.
func (d *Documents) index(w http.ResponseWriter) {
	paths := map[string]any{}
	for p, v := range d.roots {
		paths[p] = map[string]string{"serverRelativeURL": "/openapi/v3/" + p + "?hash=" + v.fingerprint()}
	}
	for p, v := range d.versions {
		paths[p] = map[string]string{"serverRelativeURL": "/openapi/v3/" + p + "?hash=" + v.fingerprint()}
	}
	for p, v := range d.converted {
		paths[p] = map[string]string{"serverRelativeURL": "/openapi/v3/" + p + "?hash=" + v.fingerprint()}
	}
	for p, o := range d.others {
		paths[p] = map[string]string{"serverRelativeURL": o.url}
	}
	body, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(body) // the client may have disconnected
}

// versioned answers with the document of a group version. A request with its hash is
// cacheable forever; one with another hash is redirected.
func (d *Documents) versioned(w http.ResponseWriter, r *http.Request, v *groupVersion) {
	current := v.fingerprint()
	if asked := r.URL.Query().Get("hash"); asked != "" {
		if asked != current {
			w.Header().Set("ETag", fmt.Sprintf("%q", current))
			w.Header().Set("Location", r.URL.Path+"?hash="+current)
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC1123))
	}
	serve(w, r, v.document, current, protobufV3, protobufV3Old)
}

// serve answers with a document in a form that the client accepts, or with 304 if the
// client has it. Only otherwise is the document built.
func serve(w http.ResponseWriter, r *http.Request, build func() *document, etag, protobuf, old string) {
	h := w.Header()
	h.Add("Vary", "Accept")
	media := negotiate(r.Header.Get("Accept"), protobuf, old)
	if media == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	h.Set("ETag", fmt.Sprintf("%q", etag))
	if r.Header.Get("If-None-Match") == h.Get("ETag") {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	doc := build()
	body, err := doc.json, doc.err
	if err == nil && media == protobuf {
		body, err = doc.protobuf()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", media)
	_, _ = w.Write(body) // the client may have disconnected
}

// negotiate returns the form of a document, empty if the client accepts none.
func negotiate(accept, protobuf, old string) string {
	if accept == "" {
		return mediaJSON
	}
	for part := range strings.SplitSeq(accept, ",") {
		part = strings.TrimSpace(part)
		name, _, err := mime.ParseMediaType(part)
		if err != nil { // the old names have a character that media types must not have
			name, _, _ = strings.Cut(part, ";")
		}
		switch name {
		case mediaJSON, "*/*", "application/*":
			return mediaJSON
		case protobuf, old:
			return protobuf
		}
	}
	return ""
}
