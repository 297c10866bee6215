// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxText is how many bytes the text of a plan has at most.
	MaxText = 64 << 10

	header  = "steer sim plan "
	version = "v1"
)

// Encode returns the text of a plan, for a file. The comment, which may be empty and have
// several lines, says to a reader what it is. A plan that is not valid has no text.
//
//	steer sim plan v1
//	# The operator never creates the second Secret.
//	order 7
//	fault crash_after verb=create kind=Secret namespace=default name=db-ssl nth=1
//	fault crash_after restart=1
func Encode(p Plan, comment string) ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(header + version + "\n")
	if comment != "" {
		for line := range strings.SplitSeq(strings.TrimRight(comment, "\n"), "\n") {
			b.WriteString(strings.TrimRight("# "+printable(line), " ") + "\n")
		}
	}
	if p.Seed != 0 {
		fmt.Fprintf(&b, "order %d\n", p.Seed)
	}
	for _, f := range p.Faults {
		b.WriteString("fault " + f.Type.String())
		if f.Restart > 0 {
			fmt.Fprintf(&b, " restart=%d", f.Restart)
		} else {
			for _, field := range fields(&f.At) {
				if *field.value != "" && !(field.key == "actor" && *field.value == Operator) {
					b.WriteString(" " + field.key + "=" + quote(*field.value))
				}
			}
			fmt.Fprintf(&b, " nth=%d", f.At.Nth)
		}
		b.WriteByte('\n')
	}
	if b.Len() > MaxText {
		return nil, fmt.Errorf("plan: its text has %d bytes, at most %d: shorten the comment", b.Len(), MaxText)
	}
	return b.Bytes(), nil
}

type field struct {
	key   string
	value *string
}

// fields are the parts of a write, in the order of the text.
func fields(w *Write) []field {
	return []field{
		{"actor", &w.Actor}, {"verb", &w.Verb}, {"group", &w.Group}, {"kind", &w.Kind},
		{"namespace", &w.Namespace}, {"name", &w.Name}, {"subresource", &w.SubResource},
	}
}

// Decode reads the text of a plan. It refuses what it does not know, and its errors name
// the line.
func Decode(text []byte) (Plan, error) {
	var p Plan
	switch {
	case len(text) > MaxText:
		return Plan{}, fmt.Errorf("plan: %d bytes, at most %d", len(text), MaxText)
	case !utf8.Valid(text):
		return Plan{}, errors.New("plan: the text is not UTF-8")
	}
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	given, ok := strings.CutPrefix(lines[0], header)
	switch {
	case !ok:
		return Plan{}, fmt.Errorf("plan: line 1: a plan begins with %q", header+version)
	case given != version:
		return Plan{}, fmt.Errorf("plan: line 1: version %q is not known, only %s: it was written by another version of Steer", clip(given), version)
	}
	ordered := false
	for i, line := range lines[1:] {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		var err error
		switch word {
		case "order":
			if ordered {
				err = errors.New("a second order")
			} else if p.Seed, err = positive(rest); err != nil {
				err = fmt.Errorf("the order %w", err)
			}
			ordered = true
		case "fault":
			var f Fault
			if len(p.Faults) == MaxFaults {
				err = fmt.Errorf("more than %d faults", MaxFaults)
			} else if f, err = decodeFault(rest); err == nil {
				p.Faults = append(p.Faults, f)
			}
		default:
			err = fmt.Errorf("%q is neither \"order\" nor \"fault\" nor a comment that begins with #", clip(word))
		}
		if err != nil {
			return Plan{}, fmt.Errorf("plan: line %d: %w", i+2, err)
		}
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

func decodeFault(text string) (Fault, error) {
	word, rest, _ := strings.Cut(text, " ")
	var f Fault
	i := slices.IndexFunc(FaultTypes(), func(t FaultType) bool { return t.String() == word })
	if i < 0 {
		return f, fmt.Errorf("the fault %q is none of %v", clip(word), FaultTypes())
	}
	f.Type = FaultTypes()[i]
	given := map[string]bool{}
	for rest != "" {
		key, after, ok := strings.Cut(rest, "=")
		if !ok {
			return f, fmt.Errorf("%q has no \"=\"", clip(rest))
		}
		var value string
		var err error
		if value, rest, err = unquote(after); err != nil {
			return f, fmt.Errorf("the value of %q: %w", clip(key), err)
		}
		if given[key] {
			return f, fmt.Errorf("%q is given twice", clip(key))
		}
		given[key] = true
		if err := f.set(key, value); err != nil {
			return f, err
		}
	}
	if f.At != (Write{}) {
		f.At = f.At.normal()
	}
	return f, nil
}

func (f *Fault) set(key, value string) error {
	number := map[string]*int{"nth": &f.At.Nth, "restart": &f.Restart}
	if into := number[key]; into != nil {
		n, err := positive(value)
		if err != nil || n > 1<<30 {
			return fmt.Errorf("the %s %q is not a number from 1 to 2^30", key, clip(value))
		}
		*into = int(n)
		return nil
	}
	keys := []string{"nth", "restart"}
	for _, field := range fields(&f.At) {
		if field.key == key {
			*field.value = value
			return nil
		}
		keys = append(keys, field.key)
	}
	return fmt.Errorf("%q is none of %q", clip(key), keys)
}

// positive reads a number as Encode writes it.
func positive(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("%q is not a whole number from 1", clip(s))
	}
	return n, nil
}

// quote returns a value as it stands in the text: as it is where it has no space, quote or
// control character.
func quote(s string) string {
	for _, c := range s {
		if c <= ' ' || c == '"' || c == '\\' || c == utf8.RuneError || !strconv.IsPrint(c) {
			return strconv.Quote(s)
		}
	}
	return s
}

// unquote reads a value and the space after it.
func unquote(s string) (value, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", errors.New("the quote does not end")
		}
		if value, err = strconv.Unquote(quoted); err != nil {
			return "", "", err
		}
		s = s[len(quoted):]
	} else if i := strings.IndexByte(s, ' '); i >= 0 {
		value, s = s[:i], s[i:]
	} else {
		value, s = s, ""
	}
	switch {
	case value == "":
		return "", "", errors.New("it is empty: leave the key out")
	case s != "" && (s[0] != ' ' || len(s) == 1):
		return "", "", fmt.Errorf("one space and a key is expected before %q", clip(s))
	}
	return value, strings.TrimPrefix(s, " "), nil
}

// printable keeps what is not text out of comments.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == utf8.RuneError || !strconv.IsPrint(c) {
			return ' '
		}
		return c
	}, s)
}

// clip shortens what an error quotes.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
