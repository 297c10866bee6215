// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flowcontrol serves FlowSchemas and PriorityLevelConfigurations. This server queues no
// requests: it stores the objects, creates those of a fresh cluster, and [Classifier]
// names the schema and the level of a request.
package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/admissionregistration"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

type (
	schema = *flowcontrolv1.FlowSchema
	level  = *flowcontrolv1.PriorityLevelConfiguration
)

// Buckets of the kinds.
const (
	schemas = flowcontrolv1.GroupName + "/flowschemas"
	levels  = flowcontrolv1.GroupName + "/prioritylevelconfigurations"
)

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		kind.Definition[flowcontrolv1.FlowSchema, schema]{
			Group: flowcontrolv1.GroupName, Version: "v1", Plural: "flowschemas", Cluster: true, Status: true, Generations: true, Unconditional: true,
			Metadata:       kind.Metadata{KeepMetadataInStatus: true},
			Validate:       func(s, _ schema) field.ErrorList { return validateSchema(s) },
			ValidateStatus: func(s, _ schema) field.ErrorList { return validateSchemaStatus(s) },
			Defaults:       func(s schema) { kind.OrDefault(&s.Spec.MatchingPrecedence, 1000) },
			Warnings:       func(_, _ schema) []string { return []string{admissionregistration.NotEnforced("FlowSchema")} },
			Columns:        kind.Columns("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
			Row: func(s schema) []any {
				method, dangling := kind.None, "?"
				if s.Spec.DistinguisherMethod != nil {
					method = string(s.Spec.DistinguisherMethod.Type)
				}
				for _, c := range s.Status.Conditions {
					if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
						dangling = string(c.Status)
					}
				}
				return []any{s.Name, s.Spec.PriorityLevelConfiguration.Name, int64(s.Spec.MatchingPrecedence), method, kind.Age(s), dangling}
			},
		}.Resource(),
		kind.Definition[flowcontrolv1.PriorityLevelConfiguration, level]{
			Group: flowcontrolv1.GroupName, Version: "v1", Plural: "prioritylevelconfigurations", Cluster: true, Status: true, Generations: true, Unconditional: true,
			Metadata:       kind.Metadata{KeepMetadataInStatus: true},
			Validate:       func(l, _ level) field.ErrorList { return validateLevel(l) },
			ValidateStatus: func(l, _ level) field.ErrorList { return validateLevelStatus(l) },
			Defaults:       defaultLevel,
			Warnings: func(_, _ level) []string {
				return []string{admissionregistration.NotEnforced("PriorityLevelConfiguration")}
			},
			Columns: kind.Columns("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
			Row:     levelRow,
		}.Resource(),
	}
}

func defaultLevel(l *flowcontrolv1.PriorityLevelConfiguration) {
	if e := l.Spec.Exempt; e != nil {
		kind.Fill(&e.NominalConcurrencyShares, int32(0))
		kind.Fill(&e.LendablePercent, int32(0))
	}
	s := l.Spec.Limited
	if s == nil {
		return
	}
	kind.Fill(&s.NominalConcurrencyShares, int32(30))
	kind.Fill(&s.LendablePercent, int32(0))
	if q := s.LimitResponse.Queuing; q != nil {
		kind.OrDefault(&q.HandSize, 8)
		kind.OrDefault(&q.Queues, 64)
		kind.OrDefault(&q.QueueLengthLimit, 50)
	}
}

func levelRow(l *flowcontrolv1.PriorityLevelConfiguration) []any {
	shares, queues, hand, length := any(kind.None), any(kind.None), any(kind.None), any(kind.None)
	if s := l.Spec.Limited; s != nil {
		shares = s.NominalConcurrencyShares
		if q := s.LimitResponse.Queuing; q != nil {
			queues, hand, length = q.Queues, q.HandSize, q.QueueLengthLimit
		}
	}
	return []any{l.Name, string(l.Spec.Type), shares, queues, hand, length, kind.Age(l)}
}
