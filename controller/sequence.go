// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/readiness"
)

// Sequence is sets of children in an order: the children of a step are applied when
// those of the steps before are ready, and deleted when those of the steps after
// are gone.
//
//	steps := controller.Sequence{
//		controller.NewStep(r.migration, jobs, jobIsComplete),
//		controller.NewStep(r.servers, deployments, isAvailable),
//	}
//	progress, err := steps.Apply(ctx, owner)
//
// The sets need different names, as any two sets of a controller. Watch the
// children with [Owns]: their events are what a sequence goes on with.
type Sequence []Step

// Step is one set of children of a [Sequence]; see [NewStep].
type Step struct {
	// apply returns the first child that is not ready, "" when all are.
	apply  func(ctx context.Context, owner client.Object) (waiting string, err error)
	delete func(ctx context.Context, owner client.Object) (FinalizerResult, error)
}

// NewStep makes a step of a set and what is desired in it. ready is called with each
// child as the server has it; nil means that a child which exists is ready.
func NewStep[T client.Object](set Children[T], desired []T, ready func(child T) bool) Step {
	return Step{
		apply: func(ctx context.Context, owner client.Object) (string, error) {
			if err := set.Apply(ctx, owner, desired); err != nil {
				return "", err
			}
			for _, child := range desired {
				if ready != nil && !ready(child) {
					sh := attemptOf(ctx).shared
					return readiness.Explain(ctx, sh.deps.Client.Scheme(), sh.pods, child)
				}
			}
			return "", nil
		},
		delete: set.Delete,
	}
}

// Progress says how far a [Sequence] is.
type Progress struct {
	// Ready is the number of steps whose children are ready, from the first on.
	Ready int
	// Waiting says which child is not ready and why, "StatefulSet db: 0 of 1 ready, Pod db-0:
	// CrashLoopBackOff" if the controller [Watches] Pods; it is empty when all steps are ready.
	Waiting string
}

// Result is [Done] when all steps are ready and [Wait] otherwise.
func (p Progress) Result() Result {
	if p.Waiting != "" {
		return Wait()
	}
	return Done()
}

// Apply applies the steps up to the first whose children are not all ready.
// Children of later steps that are there already stay as they are.
func (s Sequence) Apply(ctx context.Context, owner client.Object) (p Progress, err error) {
	for _, step := range s {
		if p.Waiting, err = step.apply(ctx, owner); err != nil || p.Waiting != "" {
			return p, err
		}
		p.Ready++
	}
	return p, nil
}

// Delete deletes the children of the steps, the last step's first, and is
// [Finalized] once none is left, so that a finalizer can end with it.
func (s Sequence) Delete(ctx context.Context, owner client.Object) (FinalizerResult, error) {
	for i := len(s) - 1; i >= 0; i-- {
		if result, err := s[i].delete(ctx, owner); err != nil || !result.Done() {
			return result, err
		}
	}
	return Finalized(), nil
}
