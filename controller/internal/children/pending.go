// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// Pending are the inventories that the sets of one attempt have changed and that the
// owner does not have yet. One patch of the owner writes all of them: at the end of
// the attempt, or before a child is created that only its inventory would find
// again. The zero value is empty; it is safe for concurrent use.
type Pending struct {
	// Immediate writes every change at once, where no end of the attempt does it.
	Immediate bool

	mu          sync.Mutex
	annotations map[string]any // nil takes one away
	set         *Set           // the last one that changed something
	urgent      bool
	searched    uint64 // when the memory was last asked, as of the first set
}

// On returns the annotations of an owner as they will be.
func (p *Pending) On(owner client.Object) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.annotations) == 0 {
		return owner.GetAnnotations()
	}
	out := maps.Clone(owner.GetAnnotations())
	if out == nil {
		out = map[string]string{}
	}
	for name, value := range p.annotations {
		if text, ok := value.(string); ok {
			out[name] = text
		} else {
			delete(out, name)
		}
	}
	return out
}

// note takes the inventory of a set.
func (p *Pending) note(s *Set, annotations map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.annotations == nil {
		p.annotations, p.searched = map[string]any{}, s.searched
	}
	maps.Copy(p.annotations, annotations)
	s.Memory.incomplete(s.FullName) // until it is written
	p.set = s
	p.searched = min(p.searched, s.searched)
	p.urgent = p.urgent || s.urgent
}

// due reports whether the write cannot wait for the end of the attempt.
func (p *Pending) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.annotations != nil && (p.urgent || p.Immediate)
}

// Write writes what is pending into the owner, as its sets know it.
func (p *Pending) Write(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.annotations) == 0 {
		return nil
	}
	s := p.set
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": p.annotations, "resourceVersion": s.Owner.GetResourceVersion(),
	}})
	if err != nil {
		return err
	}
	written := client.NewMetadata(s.OwnerGVK)
	written.Namespace, written.Name = s.Owner.GetNamespace(), s.Owner.GetName()
	patch := client.RawPatch(types.MergePatchType, data)
	err = s.Write(s.Owner.GetResourceVersion(), data, func() (string, error) {
		err := s.Client.Patch(ctx, written, patch, client.FieldOwner(s.Controller))
		return written.ResourceVersion, err
	})
	if err != nil {
		return fmt.Errorf("write the inventory of the children: %w", err)
	}
	for annotation := range p.annotations {
		if set, ok := strings.CutPrefix(annotation, InventoryAnnotation); ok {
			s.Memory.completed(textOf(written.Annotations, set), p.searched)
		}
	}
	p.annotations, p.urgent = nil, false
	s.Revised(func(obj client.Object) {
		obj.SetResourceVersion(written.ResourceVersion)
		obj.SetAnnotations(written.Annotations)
	})
	return nil
}

// textOf is the inventory of a set among the annotations of an owner.
func textOf(annotations map[string]string, set string) inventoryText {
	h := fnv.New64a()
	_, _ = h.Write([]byte(annotations[InventoryAnnotation+set]))
	return inventoryText{set, h.Sum64()}
}
