// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Apply implements [Patch].
func (p *strategicPatch) Apply(d *doc.Doc) (*doc.Doc, error) {
	names := slices.Collect(maps.Keys(p.body))
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "$") }) {
		names = nil // a directive is about the whole object
	}
	return decoded(d, names, len(names) == 0 || namesManagedFields(p.body), p.change)
}

// change merges the patch into decoded JSON, in place.
func (p *strategicPatch) change(content map[string]any) (out map[string]any, err error) {
	// The library does not check the types of list elements and panics on a patch such
	// as {"finalizers": [null]}; that is a patch which does not fit.
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, unprocessable(fmt.Errorf("the strategic merge patch does not fit the type of the object: %v", r))
		}
	}()
	// The merge removes directives from the patch.
	out, err = strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(content, runtime.DeepCopyJSON(p.body), p.schema)
	if err != nil {
		return nil, strategicError(err)
	}
	return out, nil
}
