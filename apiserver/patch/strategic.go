// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// strategicPatch is a merge patch that merges lists by the keys in the tags of
// the object's Go type.
type strategicPatch struct {
	findings
	body   map[string]any
	schema strategicpatch.LookupPatchMeta
}

func parseStrategic(body []byte, o Options) (Patch, error) {
	p := &strategicPatch{schema: o.Schema}
	var err error
	if p.body, p.findings, err = decodeObject(body, o.Strict); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return p, nil
}

func (p *strategicPatch) Apply(doc map[string]any) (out map[string]any, err error) {
	// The library does not check the types of list elements and panics on a patch such
	// as {"finalizers": [null]}; that is a patch which does not fit.
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, unprocessable(fmt.Errorf("the strategic merge patch does not fit the type of the object: %v", r))
		}
	}()
	// The merge works in place, and removes directives from the patch.
	out, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(runtime.DeepCopyJSON(doc), runtime.DeepCopyJSON(p.body), p.schema)
	if err != nil {
		return nil, strategicError(err)
	}
	return out, nil
}

// ApplyDoc implements [Patch]. Only a Go type has the tags that these patches need.
func (p *strategicPatch) ApplyDoc(*doc.Doc) (*doc.Doc, error) { return nil, unsupported(Options{}) }
