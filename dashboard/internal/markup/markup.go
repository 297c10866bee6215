// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package markup writes HTML and SVG of values: elements, attributes and texts. What is
// a text is escaped, and there is no way to write one that is not: names
// and messages come from servers and reconcilers, and may have been made to confuse a
// reader. html/template calls methods by name, for which the linker keeps every exported
// method of a program; this does not.
package markup

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how many bytes of a text are shown; the rest is counted.
const MaxText = 4 << 10

// Part is what an element has: [Attribute], [Text], [Node] or [Nodes].
type Part interface{ add(to *Node) }

// Node is an element, or a text. The zero value is nothing.
type Node struct {
	tag   string
	attrs []Attribute
	inner []Node
	text  string
}

// Nodes are several, one after the other.
type Nodes []Node

// Attribute is one of an element. Without a name it is nothing.
type Attribute struct{ name, value string }

// Attr makes an attribute. Its name is one of ours, never a value.
func Attr(name, value string) Attribute { return Attribute{name, value} }

// Text is shown as it is.
type Text string

func (n Node) add(to *Node) {
	if n.tag != "" || n.text != "" {
		to.inner = append(to.inner, n)
	}
}

func (all Nodes) add(to *Node) {
	for _, n := range all {
		n.add(to)
	}
}

func (a Attribute) add(to *Node) {
	if a.name != "" {
		to.attrs = append(to.attrs, a)
	}
}

func (t Text) add(to *Node) { Node{text: string(t)}.add(to) }

// Tag makes an element. Its name is one of ours, never a value.
func Tag(name string, parts ...Part) Node {
	n := Node{tag: name}
	for _, p := range parts {
		p.add(&n)
	}
	return n
}

// If returns the part if the condition holds, and nothing otherwise.
func If(holds bool, p Part) Part {
	if holds {
		return p
	}
	return Nodes(nil)
}

// Class is the attribute of that name.
func Class(names ...string) Attribute { return Attribute{"class", strings.Join(names, " ")} }

// Textf is a text made with a format.
func Textf(format string, args ...any) Text { return Text(fmt.Sprintf(format, args...)) }

// Foreign is a text of others, in an element of its own, so that its direction does not
// reorder what stands beside it.
func Foreign(text string) Node { return Tag("bdi", Text(text)) }

// Document writes a page of an html element.
func Document(w io.Writer, root Node) error {
	if _, err := io.WriteString(w, "<!DOCTYPE html>\n"); err != nil {
		return err
	}
	return Write(w, root)
}

// Write writes a node.
func Write(w io.Writer, n Node) error {
	var b strings.Builder
	n.write(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (n *Node) write(b *strings.Builder) {
	if n.tag == "" {
		escape(b, Plain(n.text))
		return
	}
	b.WriteByte('<')
	b.WriteString(n.tag)
	for _, a := range n.attrs {
		b.WriteByte(' ')
		b.WriteString(a.name)
		b.WriteString(`="`)
		escape(b, Plain(a.value))
		b.WriteByte('"')
	}
	b.WriteByte('>')
	if void(n.tag) {
		return
	}
	for i := range n.inner {
		n.inner[i].write(b)
	}
	b.WriteString("</")
	b.WriteString(n.tag)
	b.WriteByte('>')
}

// void elements have no end.
func void(tag string) bool {
	switch tag {
	case "br", "hr", "img", "input", "link", "meta", "wbr":
		return true
	}
	return false
}

func escape(b *strings.Builder, text string) {
	for i := range len(text) {
		switch c := text[i]; c {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '"':
			b.WriteString("&#34;")
		case '\'':
			b.WriteString("&#39;")
		default:
			b.WriteByte(c)
		}
	}
}

// Plain is a text whose every character can be seen: what would act on the text beside it
// (controls, marks of direction, invalid bytes) is written as its escape. Ends of lines
// and tabs stay. Beyond [MaxText] it says how much is left out.
func Plain(text string) string {
	whole := len(text)
	if whole > MaxText {
		text = text[:MaxText]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
		if r, _ := utf8.DecodeLastRuneInString(text); r == utf8.RuneError && len(text) > 0 {
			text = text[:len(text)-1]
		}
	}
	if strings.IndexFunc(text, hidden) < 0 && utf8.ValidString(text) {
		return text + rest(whole-len(text))
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case hidden(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + rest(whole-len(text))
}

func rest(bytes int) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("… (%d bytes more)", bytes)
}

// hidden characters act and are not seen.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Cf, r))
}
