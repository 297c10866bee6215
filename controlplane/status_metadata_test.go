// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane"
)

// TestAppliedStatusOwnsNoMetadataThatItCannotChange: what a write of the status leaves as it
// is, the manager does not own either, so that no later write has a conflict about it.
func TestAppliedStatusOwnsNoMetadataThatItCannotChange(t *testing.T) {
	t.Parallel()
	_, api := planeOf(t, controlplane.Options{ManualControllers: true})
	const (
		pods        = "/api/v1/namespaces/default/pods"
		deployments = "/apis/apps/v1/namespaces/default/deployments"
		owner       = "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: u}]"
	)
	container := "containers: [{name: c, image: i}]"
	api.must("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {"+container+"}}")
	api.must("POST", deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {"+container+"}}}}")
	api.must("POST", apiServices, wingService+"insecureSkipTLSVerify: true}\n")
	for _, c := range []struct{ path, kind, metadata, status, refused string }{
		{deployments + "/web", "apiVersion: apps/v1, kind: Deployment", "name: web, labels: {x: z}", "replicas: 1", "labels"},
		{pods + "/web", "apiVersion: v1, kind: Pod", "name: web, " + owner, "message: a", "ownerReferences"},
		{pods + "/web", "apiVersion: v1, kind: Pod", `name: web, deletionTimestamp: "2026-01-01T00:00:00Z"`, "message: a", "deletionTimestamp"},
		{apiServices + "/v1.wings.example.com", "apiVersion: apiregistration.k8s.io/v1, kind: APIService", "name: v1.wings.example.com, annotations: {x: z}",
			`conditions: [{type: Available, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z", reason: a, message: b}]`, "annotations"},
	} {
		body := "{" + c.kind + ", metadata: {" + c.metadata + "}, status: {" + c.status + "}}"
		code, answer := api.send("PATCH", c.path+"/status?fieldManager=status", body, map[string]string{"Content-Type": "application/apply-patch+yaml"})
		if code != 200 {
			t.Errorf("%s of %s: %d %s", c.refused, c.path, code, answer)
			continue
		}
		var object struct {
			Metadata struct {
				ManagedFields []struct {
					Manager  string          `json:"manager"`
					FieldsV1 json.RawMessage `json:"fieldsV1"`
				} `json:"managedFields"`
			} `json:"metadata"`
		}
		var metadata struct {
			Metadata map[string]any `json:"metadata"`
		}
		if json.Unmarshal(answer, &object) != nil || json.Unmarshal(answer, &metadata) != nil {
			t.Fatalf("%s", answer)
		}
		if v, there := metadata.Metadata[c.refused]; there {
			t.Errorf("%s: %s are %v", c.path, c.refused, v)
		}
		applied := false
		for _, entry := range object.Metadata.ManagedFields {
			if entry.Manager != "status" {
				continue
			}
			applied = true
			if strings.Contains(string(entry.FieldsV1), "f:"+c.refused) {
				t.Errorf("%s: the status owns %s: %s", c.path, c.refused, entry.FieldsV1)
			}
		}
		if !applied {
			t.Errorf("%s: the manager owns nothing", c.path)
		}
	}
}
