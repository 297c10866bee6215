// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

type migration = *migrationv1.StorageVersionMigration

// storageVersionMigrations asks for objects to be written again in their storage version
// (KEP-4192).
func storageVersionMigrations() *resource.Resource {
	return kind.Definition[migrationv1.StorageVersionMigration, migration]{
		Group: migrationv1.GroupName, Version: "v1", Plural: "storageversionmigrations", Cluster: true, Status: true,
		Metadata: kind.Metadata{KeepMetadataInStatus: true},
		Validate: validateMigration, ValidateStatus: validateMigrationStatus,
		Columns: kind.Columns("Name:string", "Resource", "Status"),
		Row: func(m migration) []any {
			status := "Unknown"
			for _, c := range m.Status.Conditions {
				switch known := migrationv1.MigrationConditionType(c.Type); {
				case c.Status != metav1.ConditionTrue:
				case known == migrationv1.MigrationRunning, known == migrationv1.MigrationFailed, known == migrationv1.MigrationSucceeded:
					status = c.Type
				}
			}
			return []any{m.Name, m.Spec.Resource.String(), status}
		},
	}.Resource()
}

func validateMigration(m, old migration) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	spec := root.Child("spec")
	f := spec.Child("resource")
	if plural := m.Spec.Resource.Resource; plural == "" {
		f.Required("resource", "resource is required to be set")
	} else {
		f.Problems("resource", plural, validation.IsDNS1035Label(plural))
	}
	if group := m.Spec.Resource.Group; group != "" {
		f.Problems("group", group, validation.IsDNS1123Subdomain(group))
	}
	if old != nil {
		root.Unchanged("spec", m.Spec, old.Spec)
	}
	return errs
}

func validateMigrationStatus(m, old migration) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("status")
	if revision := m.Status.ResourceVersion; revision != "" {
		if _, err := resourceversion.CompareResourceVersion(revision, revision); err != nil {
			f.Invalid("resourceVersion", revision, err.Error())
		}
	}
	f.Add(metavalidation.ValidateConditions(m.Status.Conditions, f.PathOf("conditions"))...)
	if was := old.Status.ResourceVersion; was != "" && was != m.Status.ResourceVersion {
		f.Invalid("resourceVersion", m.Status.ResourceVersion, "field is immutable")
	}
	is := func(m migration, t migrationv1.MigrationConditionType) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, string(t))
	}
	if is(m, migrationv1.MigrationSucceeded) && is(m, migrationv1.MigrationFailed) {
		f.Invalid("conditions", m.Status.Conditions, "Both success and failed conditions cannot be true at the same time")
	}
	if is(old, migrationv1.MigrationSucceeded) && !is(m, migrationv1.MigrationSucceeded) {
		f.Invalid("conditions", m.Status.Conditions, "Success condition cannot be set to false once it is true")
	}
	if is(old, migrationv1.MigrationFailed) && !is(m, migrationv1.MigrationFailed) {
		f.Invalid("conditions", m.Status.Conditions, "Failed condition cannot be set to false once it is true")
	}
	return errs
}
