// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// The plans of tenants.
const (
	Small = "small"
	Large = "large"
)

// TenantField is the field that Databases are indexed by.
const TenantField = "spec.tenant"

// NamespaceOf is the namespace of a tenant.
func NamespaceOf(tenant string) string { return "tenant-" + tenant }
