// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// maxName is how many bytes the name of a plan has at most; file systems allow 255, and a
// suffix belongs to the file.
const maxName = 180

// Name returns the name of the subtest and of the file of the plan, such as
// "crash_after_create_Secret_db-ssl". It depends on the plan alone, and other plans have
// other names, but that the namespace default is left out. It is made of letters, digits
// and "_-.@#~=,", none of which "go test -run", a shell or a file system reads as anything
// else within a word, but "." which matches itself.
func (p Plan) Name() string {
	var parts []string
	for _, f := range p.Faults {
		if f.Restart > 0 {
			parts = append(parts, f.Type.String()+"_restart#"+strconv.Itoa(f.Restart))
			continue
		}
		parts = append(parts, f.Type.String()+"_"+f.At.slug())
	}
	name := strings.Join(parts, "_then_")
	switch {
	case name == "" && p.Seed == 0:
		return "reference"
	case name == "":
		return "order_" + strconv.FormatUint(p.Seed, 10)
	case p.Seed != 0:
		name += "_in_order_" + strconv.FormatUint(p.Seed, 10)
	}
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = name[:maxName-17] + "~" + hex.EncodeToString(sum[:8])
	}
	return name
}

// slug is the write in a name: verb, kind and name, where needed with actor, group,
// namespace, subresource and number.
func (w Write) slug() string {
	var b strings.Builder
	if w.Actor != "" && w.Actor != Operator {
		b.WriteString(escape(w.Actor) + "~")
	}
	b.WriteString(escape(w.Verb))
	if w.Verb != Outside {
		b.WriteString("_" + escape(w.Kind))
		if w.Group != "" {
			b.WriteString("." + escape(w.Group))
		}
	}
	name := escape(w.Name)
	if name == "" {
		name = "~all"
	}
	b.WriteString("_" + name)
	if w.Namespace != "" && w.Namespace != "default" {
		b.WriteString("@" + escape(w.Namespace))
	}
	if w.SubResource != "" {
		b.WriteString("_" + escape(w.SubResource))
	}
	if w.Nth > 1 {
		b.WriteString("#" + strconv.Itoa(w.Nth))
	}
	return b.String()
}

// escape writes what a name of Kubernetes has as it is, a space as a comma, and any other
// byte as "=" and two hexadecimal digits.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '~':
			b.WriteByte(c)
		case c == ' ':
			b.WriteByte(',')
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func spaced(s string) string { return strings.ReplaceAll(s, "_", " ") }
