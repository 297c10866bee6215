// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"net/http"

	"golang.org/x/net/http/httpguts"
)

// Upgrading reports whether a request asks for another protocol; its header Upgrade
// names it.
func Upgrading(r *http.Request) bool {
	return httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade")
}

// Hijackable returns the writer inside w whose connection can be taken over, and whether
// there is one: requests in process and those of HTTP/2 have none.
func Hijackable(w http.ResponseWriter) (http.ResponseWriter, bool) {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return w, true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil, false
		}
		w = inner.Unwrap()
	}
}
