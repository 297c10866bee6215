// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"net/textproto"
	"strings"
)

// StripCredentials removes from a request that is passed on to another server what its
// client says to this one alone, and what it may not say: credentials, tokens among the
// protocols of a WebSocket included, the user to impersonate, and the headers X-Remote- by
// which proxies name users; and the headers that also reports by their [PlainHeader].
func StripCredentials(header http.Header, also func(plain string) bool) {
	for name := range header {
		plain := PlainHeader(name)
		switch {
		case plain == "authorization", plain == "proxy-authorization", plain == "cookie",
			strings.HasPrefix(plain, "impersonate-"), strings.HasPrefix(plain, "x-remote-"),
			also(plain):
			delete(header, name)
		}
	}
	if protocols := header[socketProtocols]; len(protocols) > 0 {
		header[socketProtocols] = withoutTokens(protocols)
	}
}

// PlainHeader returns the name of a header in the form in which servers may take it for
// another one: in lower case, with "-" for "_".
func PlainHeader(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// withoutTokens removes the tokens from lists of WebSocket protocols.
func withoutTokens(lists []string) []string {
	var out []string
	for _, list := range lists {
		for protocol := range strings.SplitSeq(list, ",") {
			if protocol = textproto.TrimString(protocol); !strings.HasPrefix(protocol, socketTokenPrefix) {
				out = append(out, protocol)
			}
		}
	}
	return []string{strings.Join(out, ", ")}
}
