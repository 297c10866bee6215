// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"net/http"
	"testing"
)

// TestProtectionReleasesUnusedClaimsAndVolumes: what admission has protected, the
// controller lets go of, under the roles that it has.
func TestProtectionReleasesUnusedClaimsAndVolumes(t *testing.T) {
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

// TestProtectionKeepsVolumeAttributesClassesInUse: an attributes class goes with the last
// claim that names it.
func TestProtectionKeepsVolumeAttributesClassesInUse(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	const class, claim = "/apis/storage.k8s.io/v1/volumeattributesclasses", "/api/v1/namespaces/default/persistentvolumeclaims"
	step := func(want int) {
		t.Helper()
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code, _ := api.do("GET", class+"/fast", ""); code != want {
			t.Fatalf("the class: %d, want %d", code, want)
		}
	}
	api.must("POST", class, "{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: fast}, driverName: d.e, parameters: {a: b}}")
	for _, name := range []string{"one", "two"} {
		api.must("POST", claim, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "+name+"}, spec: {accessModes: [ReadWriteOnce], "+
			"volumeAttributesClassName: fast, resources: {requests: {storage: 1Gi}}}}")
	}
	api.must("DELETE", class+"/fast", "")
	step(http.StatusOK)
	api.must("DELETE", claim+"/one", "")
	step(http.StatusOK)
	api.must("DELETE", claim+"/two", "")
	step(http.StatusNotFound)
}
