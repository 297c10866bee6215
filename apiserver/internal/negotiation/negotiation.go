// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package negotiation chooses the media type of an answer from the Accept header and the
// media type of a body from the Content-Type header.
package negotiation

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Media is the encoding of a body.
type Media int

// The encodings, in the order of preference.
const (
	JSON Media = iota
	YAML
	Protobuf
)

// ContentType returns the media type of an encoding.
func (m Media) ContentType() string {
	switch m {
	case YAML:
		return "application/yaml"
	case Protobuf:
		return "application/vnd.kubernetes.protobuf"
	}
	return "application/json"
}

func (m Media) subtype() string { return strings.TrimPrefix(m.ContentType(), "application/") }

// Shape is the form in which objects are answered.
type Shape int

// The shapes.
const (
	Whole Shape = iota
	Table
	Metadata
	MetadataList
)

// Choice is the outcome of a negotiation.
type Choice struct {
	Media Media
	Shape Shape
	// MetaVersion of tables and metadata: v1 or v1beta1.
	MetaVersion string
	// Pretty asks for indentation.
	Pretty bool
}

// WholeProtobuf reports whether whole objects are encoded as protobuf.
func (c Choice) WholeProtobuf() bool { return c.Media == Protobuf && c.Shape == Whole }

// MetaAPIVersion returns the apiVersion of tables and metadata.
func (c Choice) MetaAPIVersion() string { return metav1.GroupName + "/" + c.MetaVersion }

// Offer is what an endpoint supports.
type Offer struct {
	// Protobuf of whole objects; that of metadata always exists.
	Protobuf bool
	// Shapes allows tables and metadata.
	Shapes bool
	// NoTable excludes tables: answers to creations have none.
	NoTable bool
	// Stream is set for watches, which have no YAML.
	Stream bool
}

// Output chooses the form of an answer. The error is a 406 Status.
func Output(r *http.Request, offer Offer) (Choice, error) {
	header := r.Header.Get("Accept")
	if media, ok := usual(header, offer); ok {
		return Choice{Media: media, Pretty: pretty(r)}, nil
	}
	return chosen(r, header, offer)
}

// usual returns the choice for the exact headers that common clients send, without
// parsing.
func usual(header string, offer Offer) (Media, bool) {
	switch header {
	case "", "application/json", "application/json, */*":
		return JSON, true
	case "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json":
		return Protobuf, offer.Protobuf
	}
	return JSON, false
}

// maxAccept bounds the part of an Accept header that is parsed, in bytes: parsing
// happens before authentication and costs fifty times the length.
const maxAccept = 4 << 10

func chosen(r *http.Request, header string, offer Offer) (Choice, error) {
	for _, clause := range goautoneg.ParseAccept(header[:min(len(header), maxAccept)]) {
		for _, media := range []Media{JSON, YAML, Protobuf} {
			if !(clause.Type == "application" && (clause.SubType == media.subtype() || clause.SubType == "*") ||
				clause.Type == "*" && clause.SubType == "*") {
				continue
			}
			choice, ok := accept(clause.Params, media, offer)
			if !ok {
				continue
			}
			if offer.Stream && media == YAML {
				return Choice{}, NotAcceptable(offer)
			}
			choice.Pretty = choice.Pretty || pretty(r)
			return choice, nil
		}
	}
	offer.Stream = false // the form of the objects is looked at first, that of the stream is not reached
	return Choice{}, NotAcceptable(offer)
}

func accept(params map[string]string, media Media, offer Offer) (Choice, bool) {
	choice := Choice{Media: media, Pretty: params["pretty"] == "1"}
	if stream := params["stream"]; stream != "" && (stream != "watch" || media == YAML) {
		return choice, false
	}
	_, as := params["as"]
	_, g := params["g"]
	_, v := params["v"]
	if !as && !g && !v {
		return choice, media != Protobuf || offer.Protobuf
	}
	choice.MetaVersion = params["v"]
	if !offer.Shapes || params["g"] != metav1.GroupName || choice.MetaVersion != "v1" && choice.MetaVersion != "v1beta1" {
		return choice, false
	}
	switch params["as"] {
	case "Table":
		choice.Shape = Table
		return choice, media != Protobuf && !offer.NoTable
	case "PartialObjectMetadata":
		choice.Shape = Metadata
		return choice, true
	case "PartialObjectMetadataList":
		choice.Shape = MetadataList
		return choice, true
	}
	return choice, false
}

// pretty reports whether a request asks for indentation, or comes from a client that
// shows the answer to a person.
func pretty(r *http.Request) bool {
	if r.URL != nil && strings.Contains(r.URL.RawQuery, "pretty") {
		if values, err := url.ParseQuery(r.URL.RawQuery); err == nil && values.Get("pretty") != "" {
			asked, _ := strconv.ParseBool(values.Get("pretty"))
			return asked
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// Input returns the encoding of a body. The error is a 415 Status.
func Input(contentType string, offer Offer) (Media, error) {
	switch contentType { // the exact values that clients send
	case "", JSON.ContentType():
		return JSON, nil
	}
	if parsed, _, err := mime.ParseMediaType(contentType); err == nil {
		for _, media := range []Media{JSON, YAML, Protobuf} {
			if parsed == media.ContentType() && (media != Protobuf || offer.Protobuf) {
				return media, nil
			}
		}
	}
	return JSON, Unsupported(Accepted(offer))
}

// NotAcceptable is the 406 of an endpoint.
func NotAcceptable(offer Offer) error {
	return Refused("only the following media types are accepted: " + strings.Join(Accepted(offer), ", "))
}

// Refused is a 406 with a message.
func Refused(message string) error {
	return status(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, message)
}

// Unsupported is the 415 of an endpoint that accepts some media types.
func Unsupported(types []string) error {
	return status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(types, ", "))
}

func Accepted(offer Offer) []string {
	var types []string
	for _, media := range []Media{JSON, YAML, Protobuf} {
		switch {
		case media == YAML && offer.Stream:
		case offer.Stream:
			types = append(types, media.ContentType()+";stream=watch")
		default:
			types = append(types, media.ContentType())
		}
	}
	return types
}

func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}
