// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// proto is what a generated.proto declares.
type proto struct {
	pkg      string
	messages map[string]*declared
}

// declared is a message of a generated.proto.
type declared struct {
	fields        map[string]declaredField // by name
	reserved      []int
	reservedNames []string
}

// declaredField is a field of a message.
type declaredField struct {
	number int
	form   string // see field.form
}

var (
	packageLine  = regexp.MustCompile(`^package\s+([\w.]+)\s*;`)
	messageLine  = regexp.MustCompile(`^message\s+(\w+)\s*\{(\s*\})?$`)
	fieldLine    = regexp.MustCompile(`^(?:(optional|required|repeated)\s+)?(map\s*<\s*(\w+)\s*,\s*([\w.]+)\s*>|[\w.]+)\s+(\w+)\s*=\s*(\d+)\s*(?:\[.*\]\s*)?;$`)
	reservedLine = regexp.MustCompile(`^reserved\s+(.+);$`)
)

// skim returns the package and the names of the messages of a generated.proto of another
// package, which may have what [parse] does not know.
func skim(_, text string) (*proto, error) {
	p := &proto{messages: map[string]*declared{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := packageLine.FindStringSubmatch(line); m != nil {
			p.pkg = m[1]
		} else if m := messageLine.FindStringSubmatch(line); m != nil {
			p.messages[m[1]] = nil
		}
	}
	return p, nil
}

// parse reads a generated.proto of this generator or of go-to-protobuf. It fails at a line
// that it does not understand, because fields would get other numbers otherwise.
func parse(file, text string) (*proto, error) {
	p := &proto{messages: map[string]*declared{}}
	var open *declared
	comment := false
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(strings.TrimSpace(line), "//")
		line = strings.TrimSpace(line)
		if comment {
			_, after, ends := strings.Cut(line, "*/")
			line, comment = strings.TrimSpace(after), !ends
		}
		if strings.HasPrefix(line, "/*") {
			_, after, ends := strings.Cut(line, "*/")
			line, comment = strings.TrimSpace(after), !ends
		}
		known := true
		switch {
		case line == "":
		case open != nil && line == "}":
			open = nil
		case open != nil:
			known = open.read(line)
		case strings.HasPrefix(line, "syntax "), strings.HasPrefix(line, "import "), strings.HasPrefix(line, "option "):
		default:
			if m := packageLine.FindStringSubmatch(line); m != nil {
				p.pkg = m[1]
			} else if m := messageLine.FindStringSubmatch(line); m != nil {
				open = &declared{fields: map[string]declaredField{}}
				if p.messages[m[1]] = open; m[2] != "" {
					open = nil
				}
			} else {
				known = false
			}
		}
		if !known {
			return nil, fmt.Errorf("%s:%d: %q is not what a generator has written: restore the committed file, which has the numbers of the fields", file, number, line)
		}
	}
	if open != nil || comment {
		return nil, fmt.Errorf("%s: the file ends within a message: restore the committed file, which has the numbers of the fields", file)
	}
	return p, nil
}

// read reads a line of a message; false if it is none.
func (d *declared) read(line string) bool {
	if m := reservedLine.FindStringSubmatch(line); m != nil {
		for part := range strings.SplitSeq(m[1], ",") {
			if !d.reserve(strings.TrimSpace(part)) {
				return false
			}
		}
		return true
	}
	m := fieldLine.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	number, err := strconv.Atoi(m[6])
	if err != nil {
		return false
	}
	form := wireForm(m[2])
	switch {
	case m[3] != "":
		form = "map<" + m[3] + ", " + wireForm(m[4]) + ">"
	case m[1] == "repeated":
		form = "repeated " + form
	}
	_, twice := d.fields[m[5]]
	d.fields[m[5]] = declaredField{number, form}
	return !twice
}

// reserve reads a part of a reserved line: a number, a range or a name.
func (d *declared) reserve(part string) bool {
	if name, err := strconv.Unquote(part); err == nil {
		d.reservedNames = append(d.reservedNames, name)
		return true
	}
	first, last, isRange := strings.Cut(part, " to ")
	from, err := strconv.Atoi(first)
	if err != nil {
		return false
	}
	to := from
	if isRange {
		if to, err = strconv.Atoi(strings.TrimSpace(last)); err != nil || to-from > 1<<16 {
			return false
		}
	}
	for n := from; n <= to; n++ {
		d.reserved = append(d.reserved, n)
	}
	return true
}

// wireForm returns a type of protobuf if it is a scalar, else "message": a message that has
// another name is the same on the wire.
func wireForm(name string) string {
	switch name {
	case "bool", "bytes", "double", "fixed32", "fixed64", "float", "int32", "int64", "sfixed32", "sfixed64", "sint32", "sint64", "string", "uint32", "uint64":
		return name
	}
	return "message"
}
