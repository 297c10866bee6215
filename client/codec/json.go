// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import kjson "sigs.k8s.io/json"

// unmarshalJSON decodes in the dialect of Kubernetes: names are case-sensitive
// and whole numbers in untyped places become int64.
func unmarshalJSON(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
