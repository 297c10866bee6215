// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"errors"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type everything struct {
	Text   string   `marker:",optional"`
	Number float64  `marker:",optional"`
	Count  int32    `marker:",optional"`
	On     bool     `marker:",optional"`
	List   []string `marker:",optional"`
	Any    any      `marker:",optional"`
	Map    map[string]any
	Port   *int32
	Odd    string `marker:"OddName,optional"`
}

func testDefinitions() []*Definition {
	return []*Definition{
		Define[everything]("all", Type, Help{}),
		Define[any]("any", Field, Help{}),
		Define[string]("text", Field, Help{}),
		Define[[]string]("list", Field, Help{}),
		Define[[]any]("anys", Field, Help{}),
		Define[struct{}]("flag", Field, Help{}),
		Define[string]("pkg", Package, Help{}),
		Define[Raw]("raw", Package, Help{}),
		Define[string]("raw:sub", Package, Help{}),
		Define[string]("both", Package, Help{}),
		Define[string]("both", Type, Help{}),
		Define[bool]("maybe", Field, Help{}).Lenient(),
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	port := int32(5)
	for _, test := range []struct {
		text string
		on   Target
		want any
	}{
		{"+all:map={}", Type, everything{Map: map[string]any{}}},
		{"+all:text=bare words,map={a: 1, \"b\": {c: [}}", Type, everything{Text: "bare words", Map: map[string]any{"a": 1, "b": map[string]any{"c": "["}}}},
		{"+all:text=\"a,b\",number=-1.5,count=3,on=true,list=a;b,any=x,map={},port=5,OddName=`q\"`", Type,
			everything{Text: "a,b", Number: -1.5, Count: 3, On: true, List: []string{"a", "b"}, Any: "x", Map: map[string]any{}, Port: &port, Odd: `q"`}},
		{"+any=1", Field, 1},
		{"+any=-1.5", Field, -1.5},
		{"+any=true", Field, true},
		{"+any=truer", Field, "truer"},
		{"+any=100Mi", Field, "100Mi"},
		{"+any=2024-01-15", Field, "2024-01-15"},
		{"+any=087bdd", Field, "087bdd"},
		{"+any=\"1\"", Field, "1"},
		{"+any=a;b", Field, []any{"a", "b"}},
		{"+any={1,2}", Field, []any{1, 2}},
		{"+any={a: {b: 1}, c: x}", Field, map[string]any{"a": map[string]any{"b": 1}, "c": "x"}},
		{"+any={}", Field, map[string]any{}},
		{"+text=http://x:1/y", Field, "http://x:1/y"},
		{"+text:=colon", Field, "colon"},
		{"+text=a = b", Field, "a = b"},
		{"+list={a, b}", Field, []string{"a", "b"}},
		{"+list=", Field, nil},
		{"+anys=a;1;\"2\";true", Field, []any{"a", 1, "2", true}},
		{"+flag", Field, struct{}{}},
		{"+raw=anything: {goes", Package, Raw("anything: {goes")},
		{"+raw:sub=x", Package, "x"},
		{"+maybe", Field, false},
	} {
		def := NewRegistry(testDefinitions()...).Lookup(test.text, test.on)
		if def == nil {
			t.Errorf("%s: no definition", test.text)
			continue
		}
		got, err := def.Parse(test.text)
		if test.want == nil {
			if err == nil {
				t.Errorf("%s: accepted as %#v", test.text, got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
}

func TestMistakesHaveAPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, message string
		on            Target
		at            string // what stands where the mistake is
	}{
		{"+all:map={},txt=a", `unknown argument "txt" (did you mean "text"?)`, Type, "txt"},
		{"+all:text=a", `missing argument "map"`, Type, ""},
		{"+all:map={},number=x", "expected integer or float", Type, "x"},
		{"+all:map={},on=yes", "expected true or false", Type, "yes"},
		{"+all:map={a}", "expected colon", Type, "}"},
		{"+flag=1", "extra arguments", Field, "1"},
		{"+any", "a value is required", Field, ""},
		{"+text=\"open", "literal not terminated", Field, `"open`},
	} {
		_, err := NewRegistry(testDefinitions()...).Lookup(test.text, test.on).Parse(test.text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Message, test.message) {
			t.Errorf("%s: error %v, want %s", test.text, err, test.message)
			continue
		}
		if !strings.HasPrefix(test.text[min(syntax.Offset, len(test.text)):], test.at) {
			t.Errorf("%s: the mistake is said to be at %q", test.text, test.text[syntax.Offset:])
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"+any={a: 1}", "+all:text=a,map={b: {1,2}}", "+list={a,b", "+anys=;;", "+text=\"\\x", "+any=-", "+:=", "+all=", "+any={{},{}}"} {
		f.Add(seed)
	}
	registry := NewRegistry(testDefinitions()...)
	f.Fuzz(func(t *testing.T, text string) {
		for _, on := range []Target{Package, Type, Field} {
			def := registry.Lookup(text, on)
			if def == nil {
				continue
			}
			_, err := def.Parse(text)
			var syntax *SyntaxError
			if ok := errors.As(err, &syntax); err != nil && (!ok || syntax.Offset < 0 || syntax.Message == "") {
				t.Errorf("%q: error %#v", text, err)
			}
		}
	})
}

const placed = `// +pkg=above the clause

// Package p is documented.
// +pkg=in the clause's doc
package p

import "fmt" // +pkg=beside an import

// +pkg=free

// +both=above a type and both defined
// +pkg=above a type but only for packages

// T is documented.
// +all:map={}
type T struct {
	// +flag

	// A is documented.
	// +text=a
	A int // +text=beside
	// +pkg=lost
	B struct {
		// +text=nested
		C int
	}
	// +text=after the last
}

// +pkg=above a function

// F is documented.
// +pkg=in a function's doc
func F() {
	// +pkg=in a body
}

type (
	// +both=in a group
	U int
)

// +pkg=at the end
`

func TestPlacement(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	parsed, err := goparser.ParseFile(fset, "p.go", placed, goparser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	registry := NewRegistry(testDefinitions()...)
	file := (&Collector{Registry: registry, Known: registry, Reserved: []string{"pkg", "text"}}).File(parsed)
	var got []string
	add := func(where string, set Set) {
		for _, v := range set {
			text, _ := v.Data.(string)
			got = append(got, where+": "+v.Name+" "+text)
		}
	}
	add("package", file.Package)
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.TypeSpec:
			add(node.Name.Name, file.Types[node])
		case *ast.Field:
			if len(node.Names) > 0 {
				add(node.Names[0].Name, file.Fields[node])
			}
		}
		return true
	})
	want := []string{
		"package: pkg above the clause",
		"package: pkg in the clause's doc",
		"package: pkg free",
		"package: pkg above a type but only for packages",
		"package: pkg above a function",
		"package: pkg at the end",
		"T: both above a type and both defined",
		"T: all ",
		"A: flag ",
		"A: text a",
		"C: text nested",
		"U: both in a group",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var lost []int
	for _, problem := range file.Problems {
		if !problem.Lenient {
			t.Errorf("%s is not lenient", problem.Message)
		}
		lost = append(lost, fset.Position(problem.Pos).Line)
	}
	if diff := cmp.Diff([]int{22, 27, 33, 35}, lost); diff != "" {
		t.Errorf("lines of lost markers (-want +got):\n%s", diff)
	}
}

func TestDocLeavesOutWhatIsForDevelopers(t *testing.T) {
	t.Parallel()
	parsed, err := goparser.ParseFile(token.NewFileSet(), "p.go", `package p

// A is documented.
// +marker
// TODO: not this
//
//   - a list
//
// `+"```"+`
// TODO: code
// `+"```"+`
// ---
// Not this.
type A int

/*
B is documented.
	Indented.
*/
type B int
`, goparser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"A is documented.\n\n  - a list\n\n```\nTODO: code\n```", "B is documented.\nIndented."} {
		if diff := cmp.Diff(want, Doc(parsed.Decls[i].(*ast.GenDecl).Doc)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestSuggestionsAreClose(t *testing.T) {
	t.Parallel()
	registry := NewRegistry(
		Define[string]("kubebuilder:validation:Maximum", Field, Help{}),
		Define[string]("kubebuilder:validation:Minimum", Field, Help{}),
		Define[everything]("kubebuilder:printcolumn", Type, Help{}),
	)
	for text, want := range map[string]string{
		"+kubebuilder:validation:maximum=3":   "kubebuilder:validation:Maximum",
		"+kubebuilder:validation:Minimun=3":   "kubebuilder:validation:Minimum",
		"+kubebuilder:printcolumns:name=x":    "kubebuilder:printcolumn",
		"+kubebuilder:validaton:Maximum=3":    "kubebuilder:validation:Maximum",
		"+something:else:entirely:different=": "",
	} {
		if got := registry.Suggest(text); got != want {
			t.Errorf("%s: suggested %q, want %q", text, got, want)
		}
	}
}
