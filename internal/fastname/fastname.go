// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fastname accepts names that are certainly valid, without allocating lists of
// problems. What it does not accept is checked by the rules of apimachinery, which return
// errors.
package fastname

import "strings"

// Label reports whether a text is certainly a DNS label.
//
//steer:fast names
func Label(text string) bool {
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

// Subdomain reports whether a text is certainly a DNS subdomain.
func Subdomain(text string) bool {
	if len(text) > 253 {
		return false
	}
	for {
		label, rest, more := strings.Cut(text, ".")
		if !Label(label) {
			return false
		}
		if !more {
			return true
		}
		text = rest
	}
}

// Qualified reports whether a text is certainly a name that may have a domain.
func Qualified(text string) bool {
	if domain, name, has := strings.Cut(text, "/"); has {
		return Subdomain(domain) && LabelValue(name)
	}
	return LabelValue(text)
}

// LabelValue reports whether a text is certainly a qualified name without a domain, or
// the value of a label.
func LabelValue(text string) bool {
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

// PortName reports whether a text is certainly the name of a port.
func PortName(text string) bool {
	return len(text) <= 15 && Label(text) && !strings.Contains(text, "--") &&
		strings.ContainsFunc(text, func(r rune) bool { return r >= 'a' })
}

// Key reports whether a text is certainly a key of a ConfigMap or a Secret.
func Key(text string) bool { return LabelValue(text) }
