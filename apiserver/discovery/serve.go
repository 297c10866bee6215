// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Media types of documents.
const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// message is a document that can be encoded in all forms.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// ServeHTTP answers GET requests for discovery documents, by path; a trailing slash is
// ignored. An unknown path is a 404.
func (d *Documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	media, wantsAggregated, ok := negotiate(r.Header.Get("Accept"), len(parts) == 1)
	w.Header().Set("Cache-Control", "no-cache, private")
	if !ok {
		notAcceptable(w)
		return
	}
	if len(parts) == 1 { // the path has both forms
		w.Header().Set("Vary", "Accept")
	}
	var doc message
	found := true
	switch {
	case parts[0] == "api" && len(parts) == 1:
		if wantsAggregated {
			d.core().serve(w, r, media)
			return
		}
		doc = d.versionsDocument()
	case parts[0] == "apis" && len(parts) == 1:
		if wantsAggregated {
			d.named().serve(w, r, media)
			return
		}
		doc = d.groupsDocument()
	case parts[0] == "api" && len(parts) == 2:
		doc, found = d.resourcesDocument("", parts[1])
	case parts[0] == "apis" && len(parts) == 2 && parts[1] != "":
		doc, found = d.groupDocument(parts[1])
	case parts[0] == "apis" && len(parts) == 3 && parts[1] != "":
		doc, found = d.resourcesDocument(parts[1], parts[2])
	default:
		found = false
	}
	if !found {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	write(w, http.StatusOK, doc, media, "", isPretty(r))
}

// serve answers with the aggregated document, or 304 if the client has it.
func (a *aggregated) serve(w http.ResponseWriter, r *http.Request, media string) {
	w.Header().Set("ETag", a.etag)
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == a.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if media == mediaJSON && !isPretty(r) {
		w.Header().Set("Content-Type", mediaJSON+aggregatedType)
		_, _ = w.Write(a.json) // the client may have disconnected
		return
	}
	write(w, http.StatusOK, a.list, media, aggregatedType, isPretty(r))
}

// write encodes a document.
func write(w http.ResponseWriter, status int, doc message, media, parameters string, pretty bool) {
	body, err := encode(doc, media, pretty)
	if err != nil {
		http.Error(w, fmt.Sprintf("encode %T: %v", doc, err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", media+parameters)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}

func encode(doc message, media string, pretty bool) ([]byte, error) {
	switch {
	case media == mediaYAML:
		return yaml.Marshal(doc)
	case media == mediaProtobuf:
		raw, err := doc.Marshal()
		if err != nil {
			return nil, err
		}
		apiVersion, kind := doc.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
		body, err := envelope.Marshal()
		return append([]byte("k8s\x00"), body...), err
	case pretty:
		return json.MarshalIndent(doc, "", "  ")
	default:
		body, err := json.Marshal(doc)
		return append(body, '\n'), err
	}
}

// isPretty reports whether the answer is indented, for people.
func isPretty(r *http.Request) bool {
	if asked := r.URL.Query().Get("pretty"); asked != "" {
		return asked != "0" && asked != "false"
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// negotiate returns the first media type of an Accept header that is supported.
func negotiate(accept string, canAggregate bool) (media string, wantsAggregated, ok bool) {
	if accept == "" {
		return mediaJSON, false, true
	}
	for part := range strings.SplitSeq(accept, ",") {
		name, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		switch name {
		case mediaJSON, mediaYAML, mediaProtobuf:
		case "*/*", "application/*":
			name = mediaJSON
		default:
			continue
		}
		if parameters["as"] == "" && parameters["g"] == "" && parameters["v"] == "" {
			return name, false, true
		}
		asked := schema.GroupVersionKind{Group: parameters["g"], Version: parameters["v"], Kind: parameters["as"]}
		if canAggregate && asked.String() == "apidiscovery.k8s.io/v2, Kind=APIGroupDiscoveryList" {
			return name, true, true
		}
	}
	return "", false, false
}

func notAcceptable(w http.ResponseWriter) {
	status := apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", schema.GroupResource{}, "", "", 0, false).Status()
	write(w, http.StatusNotAcceptable, &metav1.Status{
		TypeMeta: typeMeta("Status"), Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: status.Reason,
		Message: "only the following media types are accepted: " + strings.Join([]string{mediaJSON, mediaYAML, mediaProtobuf}, ", "),
	}, mediaJSON, "", false)
}
