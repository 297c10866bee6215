// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
)

// section is one top-level declaration of a file, as byte offsets.
type section struct {
	kind  token.Token // IMPORT, CONST, VAR, TYPE or FUNC
	start int         // of the comments above the declaration
	at    int         // of its keyword
	end   int         // after its last byte
	body  [2]int      // of a function's body, braces included; zero without one
	names []string    // of types; of a function or method the one name
	recv  string      // the receiver's type name
}

// outline is a file cut into its top-level declarations without parsing any of
// them: enough to know what is where, at a small fraction of a parse.
type outline struct {
	header   int // the end of the package clause
	name     string
	sections []section
	markers  [][2]int // the line comments that are markers
}

var errOutline = errors.New("the file's declarations could not be told apart")

// outlineOf cuts a file up. It fails on text that no Go formatter would have left;
// the caller then lets the real parser speak.
func outlineOf(src []byte) (*outline, error) {
	s := &cutter{src: src}
	o := new(outline)
	if s.skip(); s.word() != "package" {
		return nil, errOutline
	}
	s.skip()
	if o.name = s.word(); o.name == "" {
		return nil, errOutline
	}
	o.header = s.pos
	start := s.pos
	for {
		s.skip()
		if s.pos >= len(src) {
			o.markers = s.markers
			return o, nil
		}
		if s.src[s.pos] == ';' {
			s.pos++
			continue
		}
		sec := section{start: start, at: s.pos}
		switch s.word() {
		case "import":
			sec.kind = token.IMPORT
		case "const":
			sec.kind = token.CONST
		case "var":
			sec.kind = token.VAR
		case "type":
			sec.kind = token.TYPE
		case "func":
			sec.kind = token.FUNC
		default:
			return nil, errOutline
		}
		if err := s.declaration(&sec); err != nil {
			return nil, err
		}
		sec.end = s.pos
		start = s.pos
		o.sections = append(o.sections, sec)
	}
}

// parsedOutline is the outline of a file that defies cutting, by parsing it.
func parsedOutline(name string, src []byte) *outline {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil || file == nil {
		return new(outline)
	}
	at := func(pos token.Pos) int { return fset.Position(pos).Offset }
	o := &outline{name: file.Name.Name, header: at(file.Name.End())}
	start := o.header
	for _, decl := range file.Decls {
		sec := section{start: start, at: at(decl.Pos()), end: at(decl.End())}
		start = sec.end
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			sec.kind, sec.names = token.FUNC, []string{decl.Name.Name}
			if decl.Recv != nil {
				sec.recv = receiverName(decl)
			}
			if decl.Body != nil {
				sec.body = [2]int{at(decl.Body.Lbrace), at(decl.Body.Rbrace) + 1}
			}
		case *ast.GenDecl:
			sec.kind = decl.Tok
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					sec.names = append(sec.names, spec.Name.Name)
				}
			}
		}
		o.sections = append(o.sections, sec)
	}
	return o
}

// packageName reads the package clause at the start of a file, "" if it is not
// there.
func packageName(head []byte) string {
	s := &cutter{src: head}
	if s.skip(); s.word() != "package" {
		return ""
	}
	s.skip()
	return s.word()
}

// cutter walks over the text of a file.
type cutter struct {
	src     []byte
	pos     int
	markers [][2]int
}

// skip moves over white space and comments.
func (s *cutter) skip() {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			s.pos++
		case c == '/' && s.comment():
		case c == 0xEF && bytes.HasPrefix(s.src[s.pos:], []byte("\xEF\xBB\xBF")):
			s.pos += 3
		default:
			return
		}
	}
}

// blanks moves over spaces and tabs.
func (s *cutter) blanks() {
	for s.pos < len(s.src) && (s.src[s.pos] == ' ' || s.src[s.pos] == '\t') {
		s.pos++
	}
}

// comment moves over a comment, if one starts here.
func (s *cutter) comment() bool {
	if s.pos+1 >= len(s.src) {
		return false
	}
	switch s.src[s.pos+1] {
	case '/':
		start := s.pos
		if n := bytes.IndexByte(s.src[s.pos:], '\n'); n >= 0 {
			s.pos += n
		} else {
			s.pos = len(s.src)
		}
		if text := bytes.TrimLeft(s.src[start+2:s.pos], " \t"); len(text) > 0 && text[0] == '+' {
			s.markers = append(s.markers, [2]int{start, s.pos})
		}
		return true
	case '*':
		if n := bytes.Index(s.src[s.pos+2:], []byte("*/")); n >= 0 {
			s.pos += n + 4
		} else {
			s.pos = len(s.src)
		}
		return true
	}
	return false
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// word reads an identifier or keyword.
func (s *cutter) word() string {
	start := s.pos
	for s.pos < len(s.src) && isWord(s.src[s.pos]) {
		s.pos++
	}
	return string(s.src[start:s.pos])
}

// quoted moves over a string or rune literal that starts here.
func (s *cutter) quoted() {
	quote := s.src[s.pos]
	s.pos++
	if quote == '`' {
		if n := bytes.IndexByte(s.src[s.pos:], '`'); n >= 0 {
			s.pos += n + 1
		} else {
			s.pos = len(s.src)
		}
		return
	}
	for s.pos < len(s.src) && s.src[s.pos] != '\n' {
		switch s.src[s.pos] {
		case '\\':
			if s.pos++; s.pos == len(s.src) { // the literal is cut off
				return
			}
		case quote:
			s.pos++
			return
		}
		s.pos++
	}
}

// declaration moves over the rest of a declaration whose keyword was read, to the
// newline or semicolon that ends it.
func (s *cutter) declaration(sec *section) error {
	s.blanks()
	s.begin(sec)
	depth, ended, lineStart := 0, false, false
	blockStart := -1
	for s.pos < len(s.src) {
		c := s.src[s.pos]
		switch c {
		case '\n':
			if depth == 0 && ended {
				return nil
			}
			lineStart = true
			s.pos++
			continue
		case ' ', '\t', '\r':
			s.pos++
			continue
		case ';':
			if depth == 0 {
				return nil
			}
			lineStart = true
			s.pos++
			continue
		case '/':
			newlines := s.pos
			if s.comment() {
				if depth == 0 && ended && bytes.IndexByte(s.src[newlines:s.pos], '\n') >= 0 {
					return nil
				}
				continue
			}
			ended = false
		case '"', '`', '\'':
			s.quoted()
			ended, lineStart = true, false
			continue
		case '(', '[', '{':
			if c == '{' && depth == 0 {
				blockStart = s.pos
			}
			depth++
			ended = false
			lineStart = c == '('
			s.pos++
			continue
		case ')', ']', '}':
			depth--
			if depth < 0 {
				return errOutline
			}
			ended = true
			if c == '}' && depth == 0 && blockStart >= 0 {
				s.body(sec, blockStart)
				blockStart = -1
			}
		default:
			if isWord(c) {
				word := s.pos
				s.word()
				if sec.kind == token.TYPE && depth == 1 && lineStart && s.grouped(sec) {
					sec.names = append(sec.names, string(s.src[word:s.pos]))
				}
				ended, lineStart = true, false
				continue
			}
			ended = false
		}
		lineStart = false
		s.pos++
	}
	if depth != 0 {
		return errOutline
	}
	return nil
}

// begin reads what a declaration declares, if its beginning says so.
func (s *cutter) begin(sec *section) {
	switch sec.kind {
	case token.FUNC:
		s.function(sec)
	case token.TYPE:
		if s.pos < len(s.src) && s.src[s.pos] != '(' {
			name := s.pos
			sec.names = append(sec.names, s.word())
			s.pos = name
		}
	}
}

// body notes the block that ends here as the function's, if it is.
func (s *cutter) body(sec *section, start int) {
	if sec.kind == token.FUNC && !s.isTypeBlock(start) {
		sec.body = [2]int{start, s.pos + 1}
	}
}

// grouped reports whether a type declaration has parentheses.
func (s *cutter) grouped(sec *section) bool {
	at := sec.at + len("type")
	for at < len(s.src) && (s.src[at] == ' ' || s.src[at] == '\t') {
		at++
	}
	return at < len(s.src) && s.src[at] == '('
}

// isTypeBlock reports whether the brace at start belongs to interface{...} or
// struct{...} in a signature.
func (s *cutter) isTypeBlock(start int) bool {
	before := bytes.TrimRight(s.src[max(0, start-16):start], " \t")
	return bytes.HasSuffix(before, []byte("interface")) || bytes.HasSuffix(before, []byte("struct"))
}

// function reads the receiver and the name of a function.
func (s *cutter) function(sec *section) {
	if s.pos < len(s.src) && s.src[s.pos] == '(' {
		end := bytes.IndexByte(s.src[s.pos:], ')')
		if end < 0 {
			return
		}
		receiver := s.src[s.pos+1 : s.pos+end]
		s.pos += end + 1
		if i := bytes.IndexByte(receiver, '['); i >= 0 {
			receiver = receiver[:i]
		}
		receiver = bytes.TrimRight(receiver, " \t")
		i := len(receiver)
		for i > 0 && isWord(receiver[i-1]) {
			i--
		}
		sec.recv = string(receiver[i:])
		s.blanks()
	}
	sec.names = []string{s.word()}
}

// blank returns the text with everything outside the kept ranges (sorted, apart)
// and every function body turned into spaces; lines stay where they were.
func blank(src []byte, keep [][2]int, bodies [][2]int) []byte {
	out := make([]byte, len(src))
	wipe := func(from, to int) {
		for i := from; i < to; i++ {
			if src[i] == '\n' {
				out[i] = '\n'
			} else {
				out[i] = ' '
			}
		}
	}
	last := 0
	for _, r := range keep {
		wipe(last, r[0])
		copy(out[r[0]:r[1]], src[r[0]:r[1]])
		last = r[1]
	}
	wipe(last, len(src))
	for _, b := range bodies {
		if out[b[0]] == '{' {
			wipe(b[0]+1, b[1]-1)
		}
	}
	return out
}
