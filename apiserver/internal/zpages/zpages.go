// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package zpages answers /statusz and /flagz: what the process is and how it was started, as
// text for people and, for a client that asks for it, as an object (KEP-4827, KEP-4828).
package zpages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
)

// Component is the name of the process on the pages, as kube-apiserver has it.
const Component = "apiserver"

const group = "config.k8s.io"

// Versions of the objects. Of the first one clients are warned.
const (
	deprecated = "v1alpha1"
	current    = "v1beta1"
)

// maxAccept bounds the part of an Accept header that is parsed, in bytes.
const maxAccept = 4 << 10

// Process is what /statusz tells.
type Process struct {
	Started time.Time
	// GoVersion, and the version of the API and of what it emulates, such as 1.37.
	GoVersion, Version, Emulates string
	// Paths that are served; of those for people the first folders are shown.
	Paths func() []string
}

// page is one of the two.
type page struct {
	kind   string
	text   func(io.Writer)
	fields func() map[string]any
}

// Statusz answers /statusz.
func Statusz(p Process) http.Handler {
	return page{
		kind: "Statusz",
		text: func(w io.Writer) {
			up := int64(time.Since(p.Started).Seconds())
			fmt.Fprintf(w, "\nStarted: %s\nUp: %d hr %02d min %02d sec\nGo version: %s\nBinary version: %s\nEmulation version: %s\nPaths: %s\n",
				p.Started.Format(time.UnixDate), up/3600, up/60%60, up%60, p.GoVersion, p.Version, p.Emulates, strings.Join(folders(p.Paths()), " "))
		},
		fields: func() map[string]any {
			return map[string]any{
				"startTime": metav1.NewTime(p.Started), "uptimeSeconds": max(0, int64(time.Since(p.Started).Seconds())),
				"goVersion": p.GoVersion, "binaryVersion": p.Version, "emulationVersion": p.Emulates, "paths": folders(p.Paths()),
			}
		},
	}
}

// folders are the first folders of paths, in order, without those of the API and of what
// describes it.
func folders(paths []string) []string {
	out := []string{}
	for _, path := range paths {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		switch first {
		case "", "api", "apis", "openapi", "openid", ".well-known":
			continue
		}
		out = append(out, "/"+first)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Flagz answers /flagz with flags and their values. It shows all of them: who calls it
// leaves out what is secret.
func Flagz(flags map[string]string) http.Handler {
	return page{
		kind: "Flagz",
		text: func(w io.Writer) {
			for _, name := range slices.Sorted(maps.Keys(flags)) {
				fmt.Fprintf(w, "%s=%s\n", name, flags[name])
			}
		},
		fields: func() map[string]any {
			if len(flags) == 0 {
				return nil
			}
			return map[string]any{"flags": flags}
		},
	}
}

// ServeHTTP implements [http.Handler].
func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	media, version := p.choose(r.Header.Get("Accept"))
	if media == "" {
		p.refuse(w)
		return
	}
	var body strings.Builder
	if version == "" {
		fmt.Fprintf(&body, "\n%s %s\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n",
			Component, strings.ToLower(p.kind))
		p.text(&body)
		w.Header().Set("Content-Type", media+"; charset=utf-8")
	} else {
		if version == deprecated {
			w.Header().Set("Warning", fmt.Sprintf("299 - \"This version of the %s endpoint is deprecated. Please use a newer version.\"", strings.ToLower(p.kind)))
		}
		text, err := p.object(media, version)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		body.Write(text)
		w.Header().Set("Content-Type", media)
	}
	_, _ = io.WriteString(w, body.String()) // the client may have gone
}

// choose returns the media type of the answer and, unless that is text, the version of the
// object; no media type if nothing that the client accepts is there.
func (p page) choose(accept string) (media, version string) {
	if strings.TrimSpace(accept) == "" {
		return "text/plain", ""
	}
	for _, clause := range goautoneg.ParseAccept(accept[:min(len(accept), maxAccept)]) {
		asked := clause.Type + "/" + clause.SubType
		as, v, g := clause.Params["as"], clause.Params["v"], clause.Params["g"]
		switch asked {
		case "text/plain", "text/*", "*/*":
			if as == "" && v == "" && g == "" {
				return "text/plain", ""
			}
		case negotiation.JSON.ContentType(), negotiation.YAML.ContentType():
			if as == p.kind && g == group && (v == current || v == deprecated) {
				return asked, v
			}
		}
	}
	return "", ""
}

// refuse answers a client that accepts nothing that there is.
func (p page) refuse(w http.ResponseWriter) {
	object := fmt.Sprintf(";g=%s;v=%s;as=%s", group, current, p.kind)
	refused := negotiation.Refused("only the following media types are accepted: " + strings.Join([]string{
		"text/plain", negotiation.JSON.ContentType() + object, negotiation.YAML.ContentType() + object,
	}, ", "))
	var known apierrors.APIStatus
	errors.As(refused, &known) // it is one
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", negotiation.JSON.ContentType())
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may have gone
}

func (p page) object(media, version string) ([]byte, error) {
	all := map[string]any{"kind": p.kind, "apiVersion": group + "/" + version, "metadata": map[string]any{"name": Component}}
	maps.Copy(all, p.fields())
	text, err := json.Marshal(all)
	if err != nil || media == negotiation.JSON.ContentType() {
		return append(text, '\n'), err
	}
	return yaml.JSONToYAML(text)
}
