// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import "strings"

// The functions below accept names that are certainly valid, without allocating lists of
// problems. What they do not accept is checked by the rules, which return errors.

// FastLabel reports whether a text is certainly a DNS label.
//
//steer:fast names
func FastLabel(text string) bool {
	if text == "" || len(text) > 63 || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// FastSubdomain reports whether a text is certainly a DNS subdomain.
func FastSubdomain(text string) bool {
	if len(text) > 253 {
		return false
	}
	for {
		label, rest, more := strings.Cut(text, ".")
		if !FastLabel(label) {
			return false
		}
		if !more {
			return true
		}
		text = rest
	}
}

// fastQualified reports whether a text is certainly a name that may have a domain.
func fastQualified(text string) bool {
	if domain, name, has := strings.Cut(text, "/"); has {
		return FastSubdomain(domain) && fastName(name)
	}
	return fastName(text)
}

// fastName reports whether a text is certainly a qualified name without a domain, or
// the value of a label.
func fastName(text string) bool {
	if text == "" || len(text) > 63 || !alphanumeric(text[0]) || !alphanumeric(text[len(text)-1]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// FastPortName reports whether a text is certainly the name of a port.
func FastPortName(text string) bool {
	return len(text) <= 15 && FastLabel(text) && !strings.Contains(text, "--") &&
		strings.ContainsFunc(text, func(r rune) bool { return r >= 'a' })
}

// FastKey reports whether a text is certainly a key of a ConfigMap or a Secret.
func FastKey(text string) bool { return fastName(text) }
