// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

// ReviewVersion returns the version of the reviews that a webhook is sent: the first one in
// the list of its configuration that the server knows, v1 or v1beta1. It is empty if there is none.
func ReviewVersion(accepted []string) string {
	for _, version := range accepted {
		if version == "v1" || version == "v1beta1" {
			return version
		}
	}
	return ""
}
