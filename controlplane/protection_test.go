// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"net/http"
	"testing"
)

// TestClaimsAndVolumesGoWhenNothingUsesThem: what admission has protected, the
// controller lets go of, under the roles that it has.
func TestClaimsAndVolumesGoWhenNothingUsesThem(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	settle := func() {
		t.Helper()
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	there := func(path string) bool {
		code, _ := api.do("GET", path, "")
		return code == http.StatusOK
	}
	const claim, volume = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
	const spec = "accessModes: [ReadWriteOnce], volumeMode: Filesystem"
	settle()
	api.must("POST", claim, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {"+spec+", resources: {requests: {storage: 1Gi}}}}")
	api.must("POST", volume, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {"+spec+", capacity: {storage: 1Gi}, hostPath: {path: /x}}}")
	api.must("POST", "/api/v1/namespaces/default/pods", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: node1,
		containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}`)
	api.must("PATCH", volume+"/v/status", "status: {phase: Bound}")
	api.must("DELETE", claim+"/c", "")
	api.must("DELETE", volume+"/v", "")
	settle()
	if !there(claim+"/c") || !there(volume+"/v") {
		t.Fatal("what is in use has gone")
	}
	api.must("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0", "")
	api.must("PATCH", volume+"/v/status", "status: {phase: Released}")
	settle()
	if there(claim+"/c") || there(volume+"/v") {
		t.Error("what nothing uses is still there")
	}
}
