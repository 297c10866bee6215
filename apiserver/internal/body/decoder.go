// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/typed"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Decoder reads the bodies of one version of a kind.
type Decoder struct {
	// Kind that bodies must have.
	Kind    schema.GroupVersionKind
	Version *resource.Version
	// FieldValidation is the directive of the request for unknown and duplicate fields.
	FieldValidation string
	// EquivalentVersions are other versions of the kind with the same fields; their
	// bodies are accepted too.
	EquivalentVersions []string
	// Limit bounds the JSON of a body in protobuf, in bytes: JSON shows what protobuf does not
	// have. 0: there is no limit.
	Limit int64
	// Known reports whether the server serves a kind, and the bucket of its objects;
	// nil: it serves none.
	Known func(kind schema.GroupVersionKind) (bucket string, ok bool)
}

func (d *Decoder) strict() bool { return d.FieldValidation != metav1.FieldValidationIgnore }

// Decode decodes a request body, defaults and prunes it, and reports unknown and
// duplicate fields as FieldValidation says: as an error, as warnings or not at all.
func (d *Decoder) Decode(r *resource.Request, media negotiation.Media, data []byte) (resource.Object, error) {
	obj, gvk, findings, err := d.decode(media, data)
	if err != nil {
		return nil, d.refuse(gvk, err, data)
	}
	unknown, err := d.Version.Strategy.Default(obj)
	if err != nil {
		return nil, d.refuse(gvk, err, data)
	}
	if d.strict() {
		for _, path := range unknown {
			findings = append(findings, fmt.Errorf("unknown field %q", path))
		}
	}
	if len(findings) > 0 {
		if d.FieldValidation == metav1.FieldValidationStrict {
			return nil, d.refuse(gvk, runtime.NewStrictDecodingError(findings), data)
		}
		Warn(r, findings)
	}
	if gvk.GroupVersion() != d.Kind.GroupVersion() {
		if !slices.Contains(d.EquivalentVersions, gvk.Version) {
			return nil, d.otherVersion(gvk)
		}
		obj.GetObjectKind().SetGroupVersionKind(d.Kind)
	}
	return obj, nil
}

// Warn adds strict decoding errors to the warnings of a request.
func Warn(r *resource.Request, findings []error) {
	for _, f := range findings {
		text := f.Error()
		for _, prefix := range []string{"error converting YAML to JSON: yaml: unmarshal errors:\n", "yaml: unmarshal errors:\n"} {
			text = strings.TrimPrefix(text, prefix)
		}
		for _, line := range strings.Split(text, "\n") {
			r.Warn(strings.TrimSpace(line))
		}
	}
}

// decode decodes a body without validating it.
func (d *Decoder) decode(media negotiation.Media, data []byte) (_ resource.Object, gvk schema.GroupVersionKind, findings []error, err error) {
	if media == negotiation.Protobuf {
		obj, gvk, err := d.proto(data)
		if err != nil || d.Version.NewMessage == nil {
			return obj, gvk, nil, err
		}
		if data, err = json.Marshal(obj); err != nil {
			return nil, gvk, nil, err
		}
		if d.Limit > 0 && int64(len(data)) > d.Limit {
			return nil, gvk, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", d.Limit))
		}
	}
	if media == negotiation.YAML {
		text := data
		if data, err = yaml.YAMLToJSON(text); err != nil {
			return nil, gvk, nil, err
		}
		if d.strict() {
			if _, err := yaml.YAMLToJSONStrict(text); err != nil {
				findings = append(findings, err)
			}
		}
	}
	obj := d.Version.NewObject()
	more, decodeErr := d.json(data, obj)
	gvk, err = kindOf(data, obj, decodeErr)
	if err != nil {
		return nil, gvk, nil, err
	}
	if d.Version.Typed() {
		gvk = withDefaults(gvk, d.Kind)
		if gvk.Kind != d.Kind.Kind || gvk.Group != d.Kind.Group {
			return nil, gvk, nil, d.mismatch(gvk)
		}
	}
	if decodeErr != nil {
		return nil, gvk, nil, decodeErr
	}
	if !d.Version.Typed() && gvk.Kind == "" {
		return nil, gvk, nil, runtime.NewMissingKindErr(string(data))
	}
	if d.Version.Typed() {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return obj, gvk, append(findings, more...), nil
}

// json decodes JSON into an object.
func (d *Decoder) json(data []byte, obj resource.Object) (findings []error, err error) {
	if custom, ok := obj.(*resource.Doc); ok {
		if read, plain := doc.ParseFast(data); plain {
			*custom = *read
			return nil, nil
		}
		var content map[string]any
		findings, err = d.byLibrary(data, &content)
		custom.SetContent(content)
		return findings, err
	}
	if typed.DecodeFast(data, obj) {
		return nil, nil
	}
	reflect.ValueOf(obj).Elem().SetZero() // some fields may be set already
	return d.byLibrary(data, obj)
}

func (d *Decoder) byLibrary(data []byte, into any) (findings []error, err error) {
	if d.strict() {
		return kjson.UnmarshalStrict(data, into)
	}
	return nil, kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// kindOf returns the kind that a body claims to be. For a body that could not be
// decoded it is read separately, because the error message names it.
func kindOf(data []byte, obj resource.Object, decodeErr error) (gvk schema.GroupVersionKind, err error) {
	var meta metav1.TypeMeta
	custom, isCustom := obj.(*resource.Doc)
	kind, kindOK := "", false
	apiVersion, versionOK := "", false
	if isCustom && decodeErr == nil {
		kind, kindOK = stringField(custom.Member("kind"))
		apiVersion, versionOK = stringField(custom.Member("apiVersion"))
	}
	switch {
	case kindOK && versionOK:
		meta = metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
	case !isCustom && decodeErr == nil:
		meta.APIVersion, meta.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	default:
		var read struct {
			APIVersion string `json:"apiVersion,omitempty"`
			Kind       string `json:"kind,omitempty"`
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &read); err != nil {
			return gvk, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
		}
		meta = metav1.TypeMeta{Kind: read.Kind, APIVersion: read.APIVersion}
	}
	gv, err := schema.ParseGroupVersion(meta.APIVersion)
	return gv.WithKind(meta.Kind), err
}

// stringField returns a field that is a string or absent; ok is false for any other
// type.
func stringField(field doc.Value) (value string, ok bool) {
	if !field.Exists() {
		return "", true
	}
	return field.String()
}

func (d *Decoder) proto(data []byte) (resource.Object, schema.GroupVersionKind, error) {
	rest, ok := wire.Enveloped(data)
	if !ok {
		return nil, schema.GroupVersionKind{}, errors.New("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	}
	unknown := &runtime.Unknown{}
	if err := unknown.Unmarshal(rest); err != nil {
		return nil, schema.GroupVersionKind{}, err
	}
	gvk := withDefaults(unknown.GroupVersionKind(), d.Kind)
	if gvk.Kind != d.Kind.Kind || gvk.Group != d.Kind.Group {
		return nil, gvk, d.mismatch(gvk)
	}
	obj := d.Version.NewProtobuf()
	m, ok := obj.(interface{ Unmarshal([]byte) error })
	if !ok {
		return nil, gvk, fmt.Errorf("%s has no protobuf form", gvk.Kind)
	}
	if err := m.Unmarshal(unknown.Raw); err != nil {
		return nil, gvk, err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, gvk, nil
}

func withDefaults(gvk, usual schema.GroupVersionKind) schema.GroupVersionKind {
	if gvk.Kind == "" {
		gvk.Kind = usual.Kind
	}
	if gvk.Version == "" && gvk.Group == "" {
		gvk.Group, gvk.Version = usual.Group, usual.Version
	}
	if gvk.Version == "" && gvk.Group == usual.Group {
		gvk.Version = usual.Version
	}
	return gvk
}

// schemeName is the Go file that kube-apiserver's messages name for an unregistered
// kind.
const schemeName = "pkg/runtime/scheme.go:111"

// mismatch returns the error for a body of another kind than Kind.
func (d *Decoder) mismatch(gvk schema.GroupVersionKind) error {
	if d.Known == nil {
		return runtime.NewNotRegisteredErrForKind(schemeName, gvk)
	}
	bucket, ok := d.Known(gvk)
	if !ok {
		return runtime.NewNotRegisteredErrForKind(schemeName, gvk)
	}
	if own, _ := d.Known(d.Kind); own == bucket && bucket != "" {
		return d.otherVersion(gvk)
	}
	return d.inconvertible(gvk.Version, gvk)
}

// inconvertible returns the error for a kind that kube-apiserver cannot convert to
// Kind.
func (d *Decoder) inconvertible(from string, gvk schema.GroupVersionKind) error {
	return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", from, gvk.Kind, schemePackage(d.Kind.Group), d.Kind.Kind)
}

// schemePackage returns the Go package that kube-apiserver's messages name for a group.
func schemePackage(group string) string {
	if group == "" {
		return "core"
	}
	name, _, _ := strings.Cut(group, ".")
	return name
}

// otherVersion is the 400 for a body that belongs to another path.
func (d *Decoder) otherVersion(gvk schema.GroupVersionKind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", gvk.GroupVersion(), d.Kind.GroupVersion()))
}

// refuse is the 400 for a body that cannot be decoded.
func (d *Decoder) refuse(gvk schema.GroupVersionKind, err error, data []byte) error {
	if apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) { // it has its message already
		return err
	}
	if gvk.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, d.Kind.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", d.Kind.Kind, err, summary(data)))
}

// summary returns the beginning of a body for an error message.
func summary(data []byte) string {
	const most = 30
	if len(data) == 0 {
		return "<empty>"
	}
	end, more := len(data), ""
	if end > most {
		end, more = most, " ..."
	}
	if data[0] == '{' {
		return string(data[:end]) + more
	}
	return hex.EncodeToString(data[:end]) + more
}
