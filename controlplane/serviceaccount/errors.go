// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import "errors"

// Failures that a caller can act on.
var (
	// ErrKeyType: tokens are signed with RSA or ECDSA keys.
	ErrKeyType = errors.New("serviceaccount: tokens are signed with RSA keys or with ECDSA keys on the curves P-256, P-384 and P-521: make one with `openssl genrsa 2048`")
	// errMalformed: the text is not a token of this form.
	errMalformed = errors.New("serviceaccount: malformed token")
	// errInvalidated: what the token is bound to has gone.
	errInvalidated = errors.New("service account token has been invalidated")
)
