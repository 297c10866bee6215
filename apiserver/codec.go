// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// decode reads JSON that this server has written as a version.
func decode(v *resource.Version, value []byte) (resource.Object, error) {
	if v.New == nil {
		content, plain := wire.Unmarshal(value)
		if plain {
			return &unstructured.Unstructured{Object: content}, nil
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(value, &content); err != nil {
			return nil, err
		}
		return &unstructured.Unstructured{Object: content}, nil
	}
	obj := v.New()
	return obj, kjson.UnmarshalCaseSensitivePreserveInts(value, obj)
}

// decodeStored reads a record and tells the version that it is then in.
func (in *installed) decodeStored(rec *storage.Record) (resource.Object, *resource.Version, error) {
	apiVersion := wire.String(rec.Value, "apiVersion")
	if a := in.Storage.Alias; a != nil && a.Kind.GroupVersion().String() == apiVersion {
		kept := a.New()
		if err := kjson.UnmarshalCaseSensitivePreserveInts(rec.Value, kept); err != nil {
			return nil, nil, apierrors.NewInternalError(fmt.Errorf("decode %s: %w", rec.Key, err))
		}
		obj := a.Load(kept)
		obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind(in.Storage.Version))
		return obj, in.versions[in.Storage.Version], nil
	}
	for i := range in.Versions {
		v := &in.Versions[i]
		if in.APIVersion(v) != apiVersion {
			continue
		}
		obj, err := decode(v, rec.Value)
		if err != nil {
			return nil, nil, apierrors.NewInternalError(fmt.Errorf("decode %s: %w", rec.Key, err))
		}
		return obj, v, nil
	}
	return nil, nil, apierrors.NewInternalError(fmt.Errorf("%s is stored in version %q, which %s no longer has: serve it again, or migrate the object", rec.Key, apiVersion, in.Kind))
}

// readBody returns the body of a request, within the limit.
func (s *Server) readBody(req *request) ([]byte, error) {
	defer func() { _ = req.http.Body.Close() }()
	limit := s.limits.BodyBytes
	var from io.Reader = req.http.Body
	if limit > 0 {
		from = io.LimitReader(from, limit+1)
	}
	size := req.http.ContentLength
	if size < 0 || limit > 0 && size > limit {
		size = 512
	}
	buffer := make([]byte, 0, size+1)
	for {
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", tooLarge.Limit))
			}
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the body could not be read: %v", err))
		}
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
	}
	if limit > 0 && int64(len(buffer)) > limit {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
	}
	return buffer, nil
}

// decoder reads the bodies of one kind.
type decoder struct {
	kind schema.GroupVersionKind
	v    *resource.Version
	// directive is the fieldValidation of the request.
	directive string
	// alike are other versions in which bodies say the same.
	alike []string
	// known tells whether the server has a kind, and where it keeps the objects.
	known func(schema.GroupVersionKind) (bucket string, ok bool)
}

// decoder of bodies of a version; fieldValidation is what the request asks for.
func (s *Server) decoder(in *installed, v *resource.Version, fieldValidation string) *decoder {
	return &decoder{kind: in.GroupVersionKind(v.Name), v: v, directive: directive(fieldValidation), alike: in.alike, known: s.known}
}

func (d *decoder) strict() bool { return d.directive != metav1.FieldValidationIgnore }

// body decodes a request body, brings it into shape, and answers its unknown
// and duplicate fields as the directive says.
func (d *decoder) body(req *request, media negotiate.Media, data []byte) (resource.Object, error) {
	obj, gvk, findings, err := d.decode(media, data)
	if err != nil {
		return nil, d.refuse(gvk, err, data)
	}
	unknown, err := d.v.Strategy.Normalize(obj)
	if err != nil {
		return nil, d.refuse(gvk, err, data)
	}
	if d.strict() {
		for _, path := range unknown {
			findings = append(findings, fmt.Errorf("unknown field %q", path))
		}
	}
	if len(findings) > 0 {
		if d.directive == metav1.FieldValidationStrict {
			return nil, d.refuse(gvk, runtime.NewStrictDecodingError(findings), data)
		}
		warnFindings(req, findings)
	}
	if gvk.GroupVersion() != d.kind.GroupVersion() {
		if !slices.Contains(d.alike, gvk.Version) {
			return nil, d.otherVersion(gvk)
		}
		obj.GetObjectKind().SetGroupVersionKind(d.kind)
	}
	return obj, nil
}

// warnFindings turns what strict decoding found into warnings.
func warnFindings(req *request, findings []error) {
	for _, f := range findings {
		text := f.Error()
		for _, prefix := range []string{"error converting YAML to JSON: yaml: unmarshal errors:\n", "yaml: unmarshal errors:\n"} {
			text = strings.TrimPrefix(text, prefix)
		}
		for _, line := range strings.Split(text, "\n") {
			req.Warn(strings.TrimSpace(line))
		}
	}
}

// decode reads a body without judging it.
func (d *decoder) decode(media negotiate.Media, data []byte) (_ resource.Object, gvk schema.GroupVersionKind, findings []error, err error) {
	if media == negotiate.Protobuf {
		obj, gvk, err := d.proto(data)
		return obj, gvk, nil, err
	}
	if media == negotiate.YAML {
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
	obj := d.v.NewObject()
	more, decodeErr := d.json(data, obj)
	gvk, err = kindOf(data, obj, decodeErr)
	if err != nil {
		return nil, gvk, nil, err
	}
	if d.v.Typed() {
		gvk = withDefaults(gvk, d.kind)
		if gvk.Kind != d.kind.Kind || gvk.Group != d.kind.Group {
			return nil, gvk, nil, d.mismatch(gvk)
		}
	}
	if decodeErr != nil {
		return nil, gvk, nil, decodeErr
	}
	if !d.v.Typed() && gvk.Kind == "" {
		return nil, gvk, nil, runtime.NewMissingKindErr(string(data))
	}
	if d.v.Typed() {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return obj, gvk, append(findings, more...), nil
}

// json decodes JSON into an object.
func (d *decoder) json(data []byte, obj resource.Object) (findings []error, err error) {
	var into any = obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if content, plain := wire.Unmarshal(data); plain {
			u.Object = content
			return nil, nil
		}
		into = &u.Object
	}
	if d.strict() {
		return kjson.UnmarshalStrict(data, into)
	}
	return nil, kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// kindOf returns the kind that a body says it is. Of one that could not be
// decoded it is read apart, because its refusal names it.
func kindOf(data []byte, obj resource.Object, decodeErr error) (gvk schema.GroupVersionKind, err error) {
	var meta metav1.TypeMeta
	u, custom := obj.(*unstructured.Unstructured)
	kind, kindOK := "", false
	apiVersion, versionOK := "", false
	if custom && decodeErr == nil {
		kind, kindOK = stringField(u.Object, "kind")
		apiVersion, versionOK = stringField(u.Object, "apiVersion")
	}
	switch {
	case kindOK && versionOK:
		meta = metav1.TypeMeta{Kind: kind, APIVersion: apiVersion}
	case !custom && decodeErr == nil:
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

// stringField returns a field that is a string or absent.
func stringField(content map[string]any, name string) (value string, ok bool) {
	v, present := content[name]
	if !present {
		return "", true
	}
	value, ok = v.(string)
	return value, ok
}

func (d *decoder) proto(data []byte) (resource.Object, schema.GroupVersionKind, error) {
	rest, ok := wire.Enveloped(data)
	if !ok {
		return nil, schema.GroupVersionKind{}, errors.New("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
	}
	unknown := &runtime.Unknown{}
	if err := unknown.Unmarshal(rest); err != nil {
		return nil, schema.GroupVersionKind{}, err
	}
	gvk := withDefaults(unknown.GroupVersionKind(), d.kind)
	if gvk.Kind != d.kind.Kind || gvk.Group != d.kind.Group {
		return nil, gvk, d.mismatch(gvk)
	}
	obj := d.v.NewObject()
	m, ok := obj.(protoMarshaler)
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

// schemeName is what messages call the place where kinds are known.
const schemeName = "pkg/runtime/scheme.go:111"

// mismatch tells that a body is of another kind.
func (d *decoder) mismatch(gvk schema.GroupVersionKind) error {
	if d.known == nil {
		return runtime.NewNotRegisteredErrForKind(schemeName, gvk)
	}
	bucket, ok := d.known(gvk)
	if !ok {
		return runtime.NewNotRegisteredErrForKind(schemeName, gvk)
	}
	if own, _ := d.known(d.kind); own == bucket && bucket != "" {
		return d.otherVersion(gvk)
	}
	home := "core"
	if d.kind.Group != "" {
		home, _, _ = strings.Cut(d.kind.Group, ".")
	}
	return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", gvk.Version, gvk.Kind, home, d.kind.Kind)
}

// known tells whether anything of a kind is served, and in which bucket its
// objects are.
func (s *Server) known(gvk schema.GroupVersionKind) (bucket string, ok bool) {
	for _, in := range s.table.Load().resources {
		if in.Group == gvk.Group && in.Kind == gvk.Kind && in.versions[gvk.Version] != nil {
			return in.Storage.Bucket, true
		}
	}
	return "", false
}

// otherVersion is the 400 for a body that could be used at another path.
func (d *decoder) otherVersion(gvk schema.GroupVersionKind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", gvk.GroupVersion(), d.kind.GroupVersion()))
}

// refuse is the 400 for a body that cannot be used.
func (d *decoder) refuse(gvk schema.GroupVersionKind, err error, data []byte) error {
	if apierrors.IsBadRequest(err) { // said already
		return err
	}
	if gvk.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, d.kind.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", d.kind.Kind, err, summary(data)))
}

// summary shows the beginning of a body.
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

// seal encodes an object for the store: in the storage version, with the place
// for its revision. It takes the object over.
func (s *Server) seal(ctx context.Context, in *installed, v *resource.Version, obj resource.Object) (value []byte, stamp int, err error) {
	obj.SetSelfLink("")
	if v.Name != in.Storage.Version {
		converted, err := in.convert(ctx, []resource.Object{obj}, in.versions[in.Storage.Version])
		if err != nil {
			return nil, 0, err
		}
		obj = converted[0]
		if _, err := in.versions[in.Storage.Version].Strategy.Normalize(obj); err != nil {
			return nil, 0, apierrors.NewInternalError(fmt.Errorf("convert %s %q to the storage version: %w", in.Kind, obj.GetName(), err))
		}
	}
	if a := in.Storage.Alias; a != nil {
		obj = a.Save(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(in.StoredKind())
	obj.SetResourceVersion(wire.Placeholder)
	encoded, err := encode(obj)
	if err != nil {
		return nil, 0, apierrors.NewInternalError(fmt.Errorf("encode %s %q: %w", in.Kind, obj.GetName(), err))
	}
	return wire.Open(encoded)
}

// transientRevision marks records that no store has seen; nothing about them is
// worth remembering.
const transientRevision storage.Revision = 1<<63 - 1

// transient makes a record of an object that is not, or not yet, in the store:
// the answer of a dry run or a backend.
func (s *Server) transient(in *installed, v *resource.Version, obj resource.Object) (*storage.Record, error) {
	obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind(v.Name))
	value, err := encode(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &storage.Record{Value: value, Modified: transientRevision}, nil
}
