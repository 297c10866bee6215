// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// jsonPatch is a list of operations. It is an implementation of our own because the
// limit on copied bytes must hold per request: a few copy operations can double an
// object into gigabytes, and the common library has that limit as a package variable or
// not at all. Behaviour of that library that clients depend on is kept: replace creates
// a missing member, copy of a missing member copies null, negative indices count from
// the end.
type jsonPatch struct {
	findings
	operations []operation
	maxCopy    int
	maxShift   int
}

// operation is one operation of a JSON patch; Path and From are nil if absent.
type operation struct {
	Op    string  `json:"op"`
	Path  *string `json:"path"`
	From  *string `json:"from"`
	Value any     `json:"value"`
}

func parseJSON(body []byte, o Options) (Patch, error) {
	p := &jsonPatch{maxCopy: o.MaxCopyBytes, maxShift: maxShift}
	if p.maxCopy == 0 {
		p.maxCopy = DefaultMaxCopyBytes
	}
	var err error
	if o.Strict {
		p.findings, err = kjson.UnmarshalStrict(body, &p.operations)
		for i, found := range p.findings {
			p.findings[i] = fmt.Errorf("json patch %w", found)
		}
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, &p.operations)
	}
	if err != nil {
		return nil, badRequest("error decoding patch: %v", err)
	}
	limit := o.MaxOperations
	if limit == 0 {
		limit = DefaultMaxOperations
	}
	if len(p.operations) > limit {
		return nil, tooManyOperations(limit, len(p.operations))
	}
	return p, nil
}

// Apply implements [Patch].
func (p *jsonPatch) Apply(d *doc.Doc) (*doc.Doc, error) {
	names, managedFields := p.members()
	return decoded(d, names, managedFields, p.change)
}

// members returns the members of the object that the operations name, none if they may name
// all, and whether managedFields may be among what they name.
func (p *jsonPatch) members() (names []string, managedFields bool) {
	for i := range p.operations {
		for _, pointer := range []*string{p.operations[i].Path, p.operations[i].From} {
			if pointer == nil {
				continue
			}
			parts := strings.SplitN(*pointer, "/", 4)
			if len(parts) < 2 {
				return nil, true
			}
			name := unescape(parts[1])
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			managedFields = managedFields || name == "metadata" && (len(parts) == 2 || unescape(parts[2]) == "managedFields")
		}
	}
	return names, managedFields || len(names) == 0
}

// change applies the operations in place.
func (p *jsonPatch) change(doc map[string]any) (map[string]any, error) {
	d := document{root: doc, copyLeft: p.maxCopy, maxCopy: p.maxCopy, shiftLeft: p.maxShift}
	for i := range p.operations {
		if err := d.apply(&p.operations[i]); err != nil {
			if errors.Is(err, errShift) {
				return nil, tooMuchShifted()
			}
			return nil, unprocessable(err)
		}
	}
	root, ok := d.root.(map[string]any)
	if !ok {
		return nil, unprocessable(fmt.Errorf("the patched document must be an object"))
	}
	// Once for all operations: the same subtree may be moved by each of them.
	if _, err := measure(root, maxDepth); err != nil {
		return nil, unprocessable(err)
	}
	return root, nil
}

// document is the object that is patched.
type document struct {
	root     any
	maxCopy  int
	copyLeft int
	// shiftLeft is how many more elements of lists the operations may shift.
	shiftLeft int
}

// shift accounts for the elements behind an inserted or removed one.
func (d *document) shift(elements int) error {
	if d.shiftLeft -= elements; d.shiftLeft < 0 {
		return errShift
	}
	return nil
}

func (d *document) apply(op *operation) error {
	switch op.Op {
	case "add":
		return d.add(op)
	case "remove":
		return d.remove(op)
	case "replace":
		return d.replace(op)
	case "move":
		return d.move(op)
	case "copy":
		return d.copy(op)
	case "test":
		return d.test(op)
	case "":
		return fmt.Errorf("Unexpected kind: unknown") // text of kube-apiserver
	default:
		return fmt.Errorf("Unexpected kind: %s", op.Op) // text of kube-apiserver
	}
}

func (d *document) add(op *operation) error {
	if op.Path == nil {
		return fmt.Errorf("add operation failed to decode path: %w", errMissing)
	}
	c := d.find(*op.Path)
	if c == nil {
		return fmt.Errorf("add operation does not apply: doc is missing path: \"%s\": %w", *op.Path, errMissing)
	}
	if err := c.add(runtime.DeepCopyJSONValue(op.Value)); err != nil {
		return fmt.Errorf("error in add for path: '%s': %w", *op.Path, err)
	}
	return nil
}

func (d *document) remove(op *operation) error {
	if op.Path == nil {
		return fmt.Errorf("remove operation failed to decode path: %w", errMissing)
	}
	c := d.find(*op.Path)
	if c == nil {
		return fmt.Errorf("remove operation does not apply: doc is missing path: \"%s\": %w", *op.Path, errMissing)
	}
	if err := c.remove(); err != nil {
		return fmt.Errorf("error in remove for path: '%s': %w", *op.Path, err)
	}
	return nil
}

func (d *document) replace(op *operation) error {
	if op.Path == nil {
		return fmt.Errorf("replace operation failed to decode path: operation missing path field: %w", errMissing)
	}
	if *op.Path == "" {
		if _, ok := op.Value.(map[string]any); !ok {
			return fmt.Errorf("replace operation value must be an object")
		}
		d.root = runtime.DeepCopyJSONValue(op.Value)
		return nil
	}
	c := d.find(*op.Path)
	if c == nil {
		return fmt.Errorf("replace operation does not apply: doc is missing path: %s: %w", *op.Path, errMissing)
	}
	if _, err := c.get(); err != nil {
		return fmt.Errorf("replace operation does not apply: doc is missing key: %s: %w", *op.Path, errMissing)
	}
	c.replace(runtime.DeepCopyJSONValue(op.Value))
	return nil
}

func (d *document) move(op *operation) error {
	if op.From == nil {
		return fmt.Errorf("move operation failed to decode from: operation, missing from field: %w", errMissing)
	}
	c := d.find(*op.From)
	if c == nil {
		return fmt.Errorf("move operation does not apply: doc is missing from path: %s: %w", *op.From, errMissing)
	}
	value, err := c.get()
	if err == nil {
		err = c.remove()
	}
	if err != nil {
		return fmt.Errorf("error in move for path: '%s': %w", c.key, err)
	}
	if op.Path == nil {
		return fmt.Errorf("move operation failed to decode path: operation missing path field: %w", errMissing)
	}
	if c = d.find(*op.Path); c == nil {
		return fmt.Errorf("move operation does not apply: doc is missing destination path: %s: %w", *op.Path, errMissing)
	}
	if err := c.add(value); err != nil {
		return fmt.Errorf("error in move for path: '%s': %w", *op.Path, err)
	}
	return nil
}

func (d *document) copy(op *operation) error {
	if op.From == nil {
		return fmt.Errorf("copy operation failed to decode from: operation, missing from field: %w", errMissing)
	}
	c := d.find(*op.From)
	if c == nil {
		return fmt.Errorf("copy operation does not apply: doc is missing from path: %s: %w", *op.From, errMissing)
	}
	value, err := c.get()
	if err != nil {
		return fmt.Errorf("error in copy for from: '%s': %w", *op.From, err)
	}
	if op.Path == nil {
		return fmt.Errorf("copy operation failed to decode path: %w", errMissing)
	}
	if c = d.find(*op.Path); c == nil {
		return fmt.Errorf("copy operation does not apply: doc is missing destination path: %s: %w", *op.Path, errMissing)
	}
	size, err := measure(value, maxDepth)
	if err != nil {
		return err
	}
	if d.copyLeft -= size; d.copyLeft < 0 {
		// text of kube-apiserver
		return fmt.Errorf("Unable to complete the copy, the accumulated size increase of copy is %d, exceeding the limit %d",
			d.maxCopy-d.copyLeft, d.maxCopy)
	}
	if err := c.add(runtime.DeepCopyJSONValue(value)); err != nil {
		return fmt.Errorf("error while adding value during copy: %w", err)
	}
	return nil
}

func (d *document) test(op *operation) error {
	if op.Path == nil {
		return fmt.Errorf("test operation failed to decode path: operation missing path field: %w", errMissing)
	}
	value := d.root
	if *op.Path != "" {
		c := d.find(*op.Path)
		if c == nil {
			return fmt.Errorf("test operation does not apply: is missing path: %s: %w", *op.Path, errMissing)
		}
		var err error
		if value, err = c.get(); err != nil {
			return fmt.Errorf("error in test for path: '%s': %w", *op.Path, err)
		}
	}
	if !equal(value, op.Value) {
		return fmt.Errorf("testing value %s failed: %w", *op.Path, ErrTestFailed)
	}
	return nil
}
