// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"text/scanner"
)

// SyntaxError is one mistake in the text of a marker.
type SyntaxError struct {
	Offset  int // in bytes from the '+'
	Message string
}

func (e *SyntaxError) Error() string { return e.Message }

// name splits the text of a marker, "+a:b:c=rest", into its names and arguments.
// The long name "a:b:c" is that of a marker with one nameless argument, the short
// one "a:b" that of a marker whose first argument is c. Without '=' both are the
// whole text.
func name(text string) (long, short, rest string) {
	text = strings.TrimPrefix(text, "+")
	long, rest, found := strings.Cut(text, "=")
	short = long
	if i := strings.LastIndexByte(long, ':'); found && i >= 0 {
		short = long[:i]
	}
	return long, short, rest
}

// Parse reads the text of one marker, from its '+' on, into a value of the
// definition's Go type. Errors are [*SyntaxError].
func (d *Definition) Parse(text string) (any, error) {
	long, short, rest := name(text)
	offset := len(text) - len(rest)
	out := reflect.New(d.output)
	if d.custom {
		if err := out.Interface().(Custom).ParseMarker(long, rest); err != nil {
			return nil, &SyntaxError{Offset: offset, Message: err.Error()}
		}
		return out.Elem().Interface(), nil
	}
	if len(d.Args) > 0 && !d.Anonymous() && len(long) > len(short) {
		// "+a:b:c=1,d=2": the first argument's name is the last segment.
		rest = long[len(short)+1:] + "=" + rest
		offset -= len(rest) - (len(text) - offset)
	}

	p := newParser(rest)
	given := p.arguments(d, out.Elem())
	if p.err == nil && p.Scan() != scanner.EOF {
		p.failAt(p.Position.Offset, "extra arguments provided: %q", rest[p.Position.Offset:])
	}
	if p.err == nil {
		for i, arg := range d.Args {
			if !given[i] && !arg.Optional {
				if arg.Name == "" {
					p.failAt(0, "a value is required: write +%s=<%s>", d.Name, &arg)
				} else {
					p.failAt(len(rest), "missing argument %q", arg.Name)
				}
				break
			}
		}
	}
	if p.err != nil {
		p.err.Offset += offset
		return nil, p.err
	}
	return out.Elem().Interface(), nil
}

// parser reads argument values from text; its first error sticks.
type parser struct {
	scanner.Scanner
	text string
	err  *SyntaxError
}

func newParser(text string) *parser {
	p := &parser{text: text}
	p.Init(strings.NewReader(text))
	p.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats | scanner.ScanStrings | scanner.ScanRawStrings
	p.Error = func(_ *scanner.Scanner, message string) { p.failAt(p.Position.Offset, "%s", message) }
	return p
}

// ahead returns a parser over what is not consumed yet, for looking further
// ahead than one character.
func (p *parser) ahead() *parser { return newParser(p.text[p.Pos().Offset:]) }

func (p *parser) failAt(offset int, format string, args ...any) {
	if p.err == nil {
		p.err = &SyntaxError{Offset: max(offset, 0), Message: fmt.Sprintf(format, args...)}
	}
}

func (p *parser) expect(token rune, what string) bool {
	if p.Scan() == token {
		return p.err == nil
	}
	p.failAt(p.Position.Offset, "expected %s, got %q", what, p.TokenText())
	return false
}

// peek returns the next character that is not white space.
func (p *parser) peek() rune {
	for {
		r := p.Peek()
		if r > ' ' || r == scanner.EOF || p.Whitespace&(1<<uint(max(r, 0))) == 0 {
			return r
		}
		p.Next()
	}
}

func (p *parser) arguments(d *Definition, out reflect.Value) []bool {
	given := make([]bool, len(d.Args))
	if len(d.Args) == 0 || p.Peek() == scanner.EOF {
		return given
	}
	if d.Anonymous() {
		p.into(&d.Args[0], target(&d.Args[0], out))
		given[0] = true
		return given
	}
	for p.expect(scanner.Ident, "argument name") {
		argument, at := p.TokenText(), p.Position.Offset
		if !p.expect('=', "equals") {
			break
		}
		known := -1
		for i := range d.Args {
			if d.Args[i].Name == argument {
				known = i
			}
		}
		if known < 0 {
			p.failAt(at, "unknown argument %q%s", argument, d.suggest(argument))
			break
		}
		given[known] = true
		p.into(&d.Args[known], target(&d.Args[known], out))
		if p.err != nil || p.Peek() == scanner.EOF || !p.expect(',', "comma") {
			break
		}
	}
	return given
}

// target is where an argument's value goes; pointers are allocated.
func target(arg *Argument, out reflect.Value) reflect.Value {
	if arg.field >= 0 && out.Kind() == reflect.Struct {
		out = out.Field(arg.field)
	}
	if out.Kind() == reflect.Pointer {
		out.Set(reflect.New(out.Type().Elem()))
		out = out.Elem()
	}
	return out
}

func (p *parser) into(arg *Argument, out reflect.Value) {
	if value := p.value(arg, false); p.err == nil {
		assign(out, value)
	}
}

// assign stores a parsed value (bool, int, float64, string, []any, map[string]any)
// where the Go type of the marker wants it.
func assign(out reflect.Value, value any) {
	switch value := value.(type) {
	case []any:
		if out.Kind() == reflect.Interface {
			out.Set(reflect.ValueOf(value))
			return
		}
		list := reflect.MakeSlice(out.Type(), len(value), len(value))
		if len(value) == 0 {
			list = reflect.Zero(out.Type())
		}
		for i, item := range value {
			assign(list.Index(i), item)
		}
		out.Set(list)
	case map[string]any:
		if out.Kind() == reflect.Interface {
			out.Set(reflect.ValueOf(value))
			return
		}
		entries := reflect.MakeMapWithSize(out.Type(), len(value))
		for key, item := range value {
			entry := reflect.New(out.Type().Elem()).Elem()
			assign(entry, item)
			entries.SetMapIndex(reflect.ValueOf(key).Convert(out.Type().Key()), entry)
		}
		out.Set(entries)
	default:
		v := reflect.ValueOf(value)
		if out.Kind() != reflect.Interface {
			v = v.Convert(out.Type())
		}
		out.Set(v)
	}
}

// value reads one value of the argument's kind. Inside a list a nested list
// without braces cannot be told apart, so it is not looked for.
func (p *parser) value(arg *Argument, inList bool) any {
	switch arg.Kind {
	case raw:
		rest := p.text[p.Pos().Offset:]
		for p.Next() != scanner.EOF {
		}
		return rest
	case Bool:
		if !p.expect(scanner.Ident, "true or false") {
			return nil
		}
		if text := p.TokenText(); text != "true" && text != "false" {
			p.failAt(p.Position.Offset, "expected true or false, got %q", text)
		}
		return p.TokenText() == "true"
	case Int:
		text := p.sign()
		if !p.expect(scanner.Int, "integer") {
			return nil
		}
		n, err := strconv.Atoi(text + p.TokenText())
		if err != nil {
			p.failAt(p.Position.Offset, "unable to parse integer: %v", err)
		}
		return n
	case Number:
		text := p.sign()
		if token := p.Scan(); token != scanner.Float && token != scanner.Int {
			p.failAt(p.Position.Offset, "expected integer or float, got %q", p.TokenText())
			return nil
		}
		n, err := strconv.ParseFloat(text+p.TokenText(), 64)
		if err != nil {
			p.failAt(p.Position.Offset, "unable to parse number: %v", err)
		}
		return n
	case String:
		return p.str(false)
	case List:
		return p.list(arg.Elem)
	case Map:
		return p.dict(arg.Elem)
	default:
		guessed := p.guess(!inList)
		if p.err != nil {
			return nil
		}
		return p.value(guessed, inList)
	}
}

func (p *parser) sign() string {
	if p.Peek() != '-' {
		return ""
	}
	p.Scan()
	return "-"
}

// str reads a quoted or raw string, or the bare text up to the next delimiter.
// A colon ends bare text only where it separates a map's key.
func (p *parser) str(isKey bool) string {
	mode := p.Mode
	p.Mode &^= scanner.ScanInts | scanner.ScanFloats // "087x" is text, not a bad number
	defer func() { p.Mode = mode }()

	if token := p.Scan(); token == scanner.String || token == scanner.RawString {
		text, err := strconv.Unquote(p.TokenText())
		if err != nil {
			p.failAt(p.Position.Offset, "unable to parse string: %v", err)
		}
		return text
	}
	start := p.Position.Offset
	for r := p.peek(); !ends(r, isKey); r = p.peek() {
		p.Scan()
	}
	return p.text[start : p.Position.Offset+len(p.TokenText())]
}

func ends(r rune, isKey bool) bool {
	return r == ',' || r == ';' || r == '}' || r == scanner.EOF || isKey && r == ':'
}

// list reads {a, b} or a;b.
func (p *parser) list(elem *Argument) []any {
	items := []any{}
	if p.peek() == '{' {
		p.Scan()
		for r := p.peek(); r != '}' && r != scanner.EOF; r = p.peek() {
			items = append(items, p.value(elem, true))
			if p.err != nil || p.peek() == '}' || !p.expect(',', "comma") {
				break
			}
		}
		if p.err == nil {
			p.expect('}', "close curly brace")
		}
		return items
	}
	for r := p.peek(); r != ',' && r != '}' && r != scanner.EOF; r = p.peek() {
		items = append(items, p.value(elem, true))
		r = p.peek()
		if p.err != nil || r == ',' || r == '}' || r == scanner.EOF {
			break
		}
		if p.Scan(); r != ';' {
			p.failAt(p.Position.Offset, "expected comma, got %q", p.TokenText())
			break
		}
	}
	return items
}

// dict reads {key: value, ...}.
func (p *parser) dict(elem *Argument) map[string]any {
	entries := map[string]any{}
	if !p.expect('{', "open curly brace") {
		return nil
	}
	for r := p.peek(); r != '}' && r != scanner.EOF; r = p.peek() {
		key := p.str(true)
		if !p.expect(':', "colon") {
			return nil
		}
		entries[key] = p.value(elem, false)
		if p.err != nil || p.peek() == '}' || !p.expect(',', "comma") {
			break
		}
	}
	if p.err == nil {
		p.expect('}', "close curly brace")
	}
	return entries
}

// guess tells the kind of the value that follows. Quoted text is a string; braces
// are a map if a key and a colon (or nothing) follow, else a list; true and false
// are booleans; a number must end where the value ends, so "100Mi" is a string;
// and the rest is a string. A semicolon further on makes it a bare list.
func (p *parser) guess(allowList bool) *Argument {
	if allowList {
		item := p.guess(false)
		rest := p.ahead()
		for token := rest.Scan(); ; token = rest.Scan() {
			switch token {
			case ';':
				return &Argument{Kind: List, Elem: item}
			case ',', scanner.EOF:
				return item
			}
		}
	}
	sub := p.ahead()
	switch r := sub.peek(); r {
	case '"', '\'', '`':
		return &Argument{Kind: String}
	case '{':
		return sub.guessBraces()
	case 't', 'f':
		sub.Scan()
		if text := sub.TokenText(); text == "true" || text == "false" {
			return &Argument{Kind: Bool}
		}
		return &Argument{Kind: String}
	}
	token := sub.Scan()
	if token == '-' {
		token = sub.Scan()
	}
	if sub.err == nil && (token == scanner.Int || token == scanner.Float) {
		if r := sub.peek(); r == ',' || r == ';' || r == '}' || r == scanner.EOF {
			if token == scanner.Int {
				return &Argument{Kind: Int}
			}
			return &Argument{Kind: Number}
		}
	}
	return &Argument{Kind: String}
}

func (p *parser) guessBraces() *Argument {
	p.Scan() // the brace
	first := p.peek()
	elem := p.guess(false)
	if elem.Kind == String {
		p.str(true)
		if p.Scan() == ':' || first == '}' {
			return &Argument{Kind: Map, Elem: &Argument{Kind: Any}}
		}
	}
	return &Argument{Kind: List, Elem: elem}
}
