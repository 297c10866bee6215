// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// tokenPattern finds JSON Web Tokens.
var tokenPattern = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+`)

// token formats the claims of a JSON Web Token, with times relative to its issue.
func token(jwt string) string {
	body, err := base64.RawURLEncoding.DecodeString(strings.Split(jwt, ".")[1])
	claims := map[string]any{}
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return jwt
	}
	issued, _ := claims["iat"].(float64)
	delete(claims, "iat")
	relative(claims, issued)
	text, err := json.Marshal(claims) // sorts the members
	if err != nil {
		return jwt
	}
	return "<token " + string(text) + ">"
}

// relative makes the times in claims relative.
func relative(claims map[string]any, to float64) {
	for name, value := range claims {
		switch typed := value.(type) {
		case map[string]any:
			relative(typed, to)
		case float64:
			claims[name] = fmt.Sprintf("%+g", typed-to)
		}
	}
}
