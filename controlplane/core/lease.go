// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// leases describes Leases.
func leases() *resource.Resource {
	return kind.Definition[coordinationv1.Lease, *coordinationv1.Lease]{
		Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Creates: true,
		Metadata: kind.Metadata{AnyFinalizer: true},
		Prepare:  dropLeaseCoordination,
		Validate: validateLease,
		Columns:  kind.Columns("Name", "Holder", "Age"),
		Row: func(l *coordinationv1.Lease) []any {
			return []any{l.Name, kind.Value(l.Spec.HolderIdentity), kind.Age(l)}
		},
	}.Resource()
}

// dropLeaseCoordination drops what belongs to coordinated leader election, which
// is off by default.
func dropLeaseCoordination(_ context.Context, l, _ *coordinationv1.Lease) {
	l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil
}

func validateLease(l, _ *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}
