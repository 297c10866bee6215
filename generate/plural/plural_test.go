// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plural

import (
	"cmp"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/gobuffalo/flect"
)

var update = flag.Bool("update", false, "write the tables anew")

// TestTablesAreWhatTheLibraryAnswers makes the tables by asking the library about
// each word that stands anywhere in it, and takes an entry where it takes one to
// agree. -update writes them.
func TestTablesAreWhatTheLibraryAnswers(t *testing.T) {
	t.Parallel()
	made := ask(library(t))
	for name, table := range map[string]struct{ embedded, made, about string }{
		"words.txt":    {words, made.words, "Words with a plural of their own, and words that are plurals."},
		"endings.txt":  {endings, made.endings, "What the longest ending of a word becomes in its plural."},
		"acronyms.txt": {acronyms, made.acronyms, "What ends a part of a name where no lower-case letter does."},
	} {
		want := "# Copyright The Steer Authors.\n# SPDX-License-Identifier: Apache-2.0\n#\n# " + table.about +
			"\n# The answers of github.com/gobuffalo/flect v1.0.3, asked by\n# go test ./generate/plural -run TestTables -update\n" + table.made
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o666); err != nil {
				t.Fatal(err)
			}
		} else if table.embedded != want {
			t.Errorf("%s is not what the library answers: go test ./generate/plural -run TestTables -update", name)
		}
	}
}

// library returns every word in the source of the library, shortest first: the
// candidates for entries.
func library(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/gobuffalo/flect").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no source of the library", err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && identifier(s) {
					found[s] = true
				}
			}
			return true
		})
	}
	all := make([]string, 0, len(found))
	for word := range found {
		all = append(all, word)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return all
}

func identifier(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}

// stem is a beginning that no word of the library has, and none that what follows
// is a part of its own after.
const stem = "Ж"

// ask makes the tables. Candidates come shortest first, so that an entry for a
// longer one is needed only where the shorter ones do not say the same.
func ask(candidates []string) tables {
	var made tables
	agrees := func(kind string) bool { return made.plural(kind) == flect.Pluralize(kind) }
	for _, c := range candidates {
		to, ok := strings.CutPrefix(flect.Pluralize(stem+c), stem)
		if ok && len(flect.New(stem+c).Parts) == 1 && !(agrees(stem+c) && agrees(stem+c+"_")) {
			made.endings = with(made.endings, c+" "+to)
		}
	}
	word := func(c string) {
		upper := strings.ToUpper(c)
		whole := func() bool { return agrees(c) && agrees("_"+c) && agrees("_"+upper) && agrees(c+"_") }
		before := made.words
		for _, line := range []string{"", c, c + " " + flect.Pluralize(c)} {
			if made.words = with(before, line); whole() {
				return
			}
		}
		made.words = before
	}
	acronym := func(c string) {
		upper, title := strings.ToUpper(c), capital(strings.ToLower(c))
		whole := func() bool { return agrees(upper+"Ox") && agrees(upper) && agrees(title) && agrees("_"+title) }
		before := made.acronyms
		for _, line := range []string{"", upper} {
			if made.acronyms = with(before, line); whole() {
				return
			}
		}
		made.acronyms = before
	}
	for _, c := range candidates {
		if c == strings.ToLower(c) {
			word(c)
		}
	}
	for _, c := range candidates {
		acronym(c)
	}
	for _, c := range candidates {
		word(c) // those that are words beside acronyms
	}
	return made
}

// with is a table with another line.
func with(table, line string) string {
	if line == "" {
		return table
	}
	lines := append(strings.Split(strings.TrimSuffix(table, "\n"), "\n"), line)
	slices.SortFunc(lines, func(a, b string) int {
		a, _, _ = strings.Cut(a, " ")
		b, _, _ = strings.Cut(b, " ")
		return cmp.Compare(a, b)
	})
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n") + "\n"
}

func same(t testing.TB, kind string) {
	t.Helper()
	if got, want := Of(kind), flect.Pluralize(kind); got != want {
		t.Errorf("the plural of %q is %q, not %q", kind, want, got)
	}
}

func spellings(word string) []string {
	title := capital(word)
	return []string{
		word, title, strings.ToUpper(word), strings.ToLower(word), capital(strings.ToLower(word)),
		"Custom" + title, "custom" + strings.ToLower(word), "HTTP" + title, "DNS" + strings.ToUpper(word), "x" + word, "X" + word,
		"V2" + title, "My_" + word, "my_" + title, title + "_", title + "2", title + "Set", title + "Config", title + "Policy", "I" + title,
	}
}

func TestPluralsOfTheDictionaryAreTheLibrarys(t *testing.T) {
	t.Parallel()
	all := library(t)
	if len(all) < 400 {
		t.Fatalf("only %d words", len(all))
	}
	for i, word := range all {
		for _, kind := range spellings(word) {
			same(t, kind)
		}
		for n := range 8 {
			first := all[(i*31+n*97)%len(all)]
			same(t, first+word)
			same(t, capital(first)+capital(word))
		}
	}
}

func TestPluralsOfKubernetesKindsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../oracle/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`"?kind"?: *"?(\w+)`).FindAllSubmatch(data, -1) {
			kinds[string(match[1])] = true
		}
	}
	if len(kinds) < 100 {
		t.Fatalf("only %d kinds in the conversations", len(kinds))
	}
	for kind := range kinds {
		for _, spelling := range spellings(kind) {
			same(t, spelling)
		}
	}
}

func TestPluralsOfShortWordsAreTheLibrarys(t *testing.T) {
	t.Parallel()
	letters := strings.Split("abcdefghijklmnopqrstuvwxyzS", "")
	for _, a := range letters {
		for _, b := range letters {
			for _, c := range letters {
				same(t, a+b+c)
				same(t, "Net"+capital(a+b+c))
			}
		}
	}
}

func TestPluralsOfKindsPeopleHave(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"CronTab": "CronTabs", "NetworkPolicy": "NetworkPolicies", "Ingress": "Ingresses", "Gateway": "Gateways",
		"Endpoints": "Endpoints", "VirtualService": "VirtualServices", "HTTPProxy": "HTTPProxies", "Prometheus": "Prometheuses",
		"Index": "Indices", "Person": "People", "AppSchema": "AppSchemas", "Redis": "Redis", "Kafka": "Kafkas",
		"Alias": "Aliases", "Database": "Databases", "ClusterAnalysis": "ClusterAnalyses", "Mutex": "Mutexes", "Quiz": "Quizzes",
		"ExternalDNS": "ExternalDNSes", "ExternalDns": "ExternalDnsDNSes", "": "",
	} {
		if got := Of(kind); got != want {
			t.Errorf("%s: %s, not %s", kind, got, want)
		}
		same(t, kind)
	}
}

func FuzzPluralsAreTheLibrarys(f *testing.F) {
	for _, kind := range []string{"CronTab", "IPAddress", "my_kind_", "DNSOx", "IDs", "ÄpfelBaum", "Ωmega", "X25", "_", "ǅungla", "BLUES"} {
		f.Add(kind)
	}
	f.Fuzz(func(t *testing.T, kind string) {
		if identifier(kind) || kind == "" {
			same(t, kind)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Of("CertificateSigningRequest")
	}
}
