// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Swagger is a document of version 2 of another server. It is not changed.
type Swagger struct {
	document *spec.Swagger
	// hash of the text that it was read from.
	hash string
}

// Elsewhere is what another server says about a version of a group.
type Elsewhere struct {
	// Path such as "apis/example.com/v1".
	Path string
	// Documents of version 3 are all that the server has, by path, with their URLs relative to this
	// server, and Handler answers requests for them. Of one path there is one document: that of the
	// entry whose Path it is, else that of this server, else that of the first entry.
	Documents map[string]string
	Handler   http.Handler
	// Swagger describes the version, and maybe others. nil: there is no such document.
	Swagger *Swagger
	// Convert makes a document of version 3 of Swagger.
	Convert bool
}

// errNoSwagger is the error of a document that is not of version 2.
var errNoSwagger = errors.New("the document is not of version 2 of OpenAPI")

// ParseSwagger reads a document of version 2. It returns last if that is the same document. What
// cannot be merged with other documents is refused. last may be nil.
func ParseSwagger(data []byte, last *Swagger) (s *Swagger, err error) {
	hash := sum(data)
	if last != nil && last.hash == hash {
		return last, nil
	}
	defer func() {
		if v := recover(); v != nil { // references that lead nowhere, and the like
			s, err = nil, fmt.Errorf("a document of OpenAPI cannot be read: %v", v)
		}
	}()
	s = &Swagger{document: &spec.Swagger{}, hash: hash}
	if err := json.Unmarshal(data, s.document); err != nil {
		return nil, fmt.Errorf("a document of OpenAPI cannot be read: %w", err)
	}
	if s.document.Swagger != "2.0" {
		return nil, errNoSwagger
	}
	if err := aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(&spec.Swagger{}, s.of("")); err != nil {
		return nil, fmt.Errorf("a document of OpenAPI cannot be merged: %w", err)
	}
	openapiconv.ConvertV2ToV3(s.document)
	return s, nil
}

// of returns the part of the document that describes a version, by its path.
func (s *Swagger) of(path string) *spec.Swagger {
	return aggregator.FilterSpecByPathsWithoutSideEffects(s.document, []string{"/" + strings.TrimSuffix(path, "/") + "/"})
}

// merge returns a document with those of other servers. A definition that an earlier document has
// with other content gets a number behind its name. A document that cannot be merged is left out.
func merge(own any, others []Elsewhere) (any, error) {
	var merged *spec.Swagger
	for _, e := range others {
		if e.Swagger == nil {
			continue
		}
		if merged == nil {
			data, err := json.Marshal(own)
			if err != nil {
				return nil, err
			}
			merged = &spec.Swagger{}
			if err := json.Unmarshal(data, merged); err != nil {
				return nil, err
			}
		}
		before := *merged
		if !mergeOne(merged, e) {
			*merged = before
		}
	}
	if merged == nil {
		return own, nil
	}
	return merged, nil
}

// mergeOne merges the document of another server, and reports whether that could be done.
func mergeOne(into *spec.Swagger, e Elsewhere) (ok bool) {
	defer func() {
		if recover() != nil { // see ParseSwagger
			ok = false
		}
	}()
	return aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(into, e.Swagger.of(e.Path)) == nil
}
