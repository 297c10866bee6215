// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/steertest"

	platformv1 "github.com/steer-dev/steer/examples/tenants/api/v1"
	platformv1alpha1 "github.com/steer-dev/steer/examples/tenants/api/v1alpha1"
)

// TestTenantConversionLosesNothing converts random objects to each other version and
// back.
func TestTenantConversionLosesNothing(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(platformv1.AddToScheme, platformv1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	steertest.RoundTrip(t, scheme, &platformv1.Tenant{}, steertest.RoundTripOptions{})
}
