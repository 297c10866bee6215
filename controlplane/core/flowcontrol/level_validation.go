// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"fmt"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/shufflesharding"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateLevel(l level) field.ErrorList {
	const preserve = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
	var errs field.ErrorList
	root, spec := valid.Root(&errs), &l.Spec
	if _, has := l.Annotations[preserve]; has {
		at := root.Child("metadata")
		at.Forbidden("annotations", "annotation '"+preserve+"' is forbidden")
	}
	f := root.Child("spec")
	if (l.Name == exempt) != (spec.Type == flowcontrolv1.PriorityLevelEnablementExempt) {
		f.Invalid("type", spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'")
	}
	switch spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if spec.Limited != nil {
			f.Forbidden("limited", "")
			limited := f.Child("limited")
			response := limited.Child("limitResponse")
			response.NonEmpty("type", string(spec.Limited.LimitResponse.Type))
		}
		if e := spec.Exempt; e != nil {
			at := f.Child("exempt")
			checkShares(&at, e.NominalConcurrencyShares, e.LendablePercent)
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if spec.Exempt != nil {
			f.Forbidden("exempt", "")
		}
		if spec.Limited == nil {
			f.Required("limited", "")
		} else {
			at := f.Child("limited")
			checkLimited(&at, spec.Limited)
		}
	default:
		valid.RequiredOf(&f, "type", spec.Type, flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)
	}
	checkFixed(&f, l)
	return errs
}

// checkFixed refuses changes of what everything rests on.
func checkFixed(f *valid.Field, l level) {
	var fixed flowcontrolv1.PriorityLevelConfiguration
	if !mandatory(levels, l.Name, &fixed) {
		return
	}
	but := ""
	if l.Name == exempt {
		fixed.Spec.Exempt, but = l.Spec.Exempt, " except the 'spec.exempt' field"
	}
	if !equality.Semantic.DeepEqual(fixed.Spec, l.Spec) {
		f.Invalid(valid.Self, valid.Untagged(l.Spec), "spec of '"+l.Name+"'"+but+" must equal the fixed value")
	}
}

func checkShares(f *valid.Field, shares, lendable *int32) {
	if n := kind.Value(shares); n < 0 {
		f.Invalid("nominalConcurrencyShares", n, "must be a non-negative integer")
	}
	checkLendable(f, lendable)
}

func checkLendable(f *valid.Field, lendable *int32) {
	if n := kind.Value(lendable); n < 0 || n > 100 {
		f.Invalid("lendablePercent", n, "must be between 0 and 100, inclusive")
	}
}

func checkLimited(f *valid.Field, l *flowcontrolv1.LimitedPriorityLevelConfiguration) {
	checkShares(f, l.NominalConcurrencyShares, l.LendablePercent)
	at := f.Child("limitResponse")
	switch q := l.LimitResponse.Queuing; l.LimitResponse.Type {
	case flowcontrolv1.LimitResponseTypeReject:
		if q != nil {
			at.Forbidden("queuing", "")
		}
	case flowcontrolv1.LimitResponseTypeQueue:
		if q == nil {
			at.Required("queuing", "")
		} else {
			queuing := at.Child("queuing")
			checkQueuing(&queuing, q)
		}
	default:
		valid.RequiredOf(&at, "type", l.LimitResponse.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)
	}
	if n := kind.Value(l.BorrowingLimitPercent); n < 0 {
		f.Invalid("borrowingLimitPercent", n, "if specified, must be a non-negative integer")
	}
}

func checkQueuing(f *valid.Field, q *flowcontrolv1.QueuingConfiguration) {
	const most = 10_000_000
	if q.QueueLengthLimit <= 0 {
		f.Invalid("queueLengthLimit", q.QueueLengthLimit, "must be positive")
	}
	if q.Queues <= 0 {
		f.Invalid("queues", q.Queues, "must be positive")
	} else if q.Queues > most {
		f.Invalid("queues", q.Queues, fmt.Sprintf("must not be greater than %d", most))
	}
	if q.HandSize <= 0 {
		f.Invalid("handSize", q.HandSize, "must be positive")
	} else if q.HandSize > q.Queues {
		f.Invalid("handSize", q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues))
	} else if shufflesharding.RequiredEntropyBits(int(q.Queues), int(q.HandSize)) > shufflesharding.MaxHashBits {
		f.Invalid("handSize", q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d",
			q.Queues, q.HandSize, shufflesharding.MaxHashBits))
	}
}

func validateLevelStatus(l level) field.ErrorList {
	var types []string
	for _, c := range l.Status.Conditions {
		types = append(types, string(c.Type))
	}
	return checkConditions(types)
}
