// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

func TestWritesWhatTheLibraryWrites(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		compare(t, map[string]any{"top": randomValue(random, 0), shorten(randomText(random)): randomText(random)})
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "a", "true", "0x10", "1e3", "2006-01-02", "1:20", "- a", "a: b", "a #b", "it's", "x\ny", "x \ny", " x\n", "\n", "a\n\n", "é…“", "😀", "\t",
		strings.Repeat("word ", 40), strings.Repeat("it's: ", 40), ".", "-", "~", "=", "<<", "1_000", ".5", "+1", "0b1", "0o7", "08", "y", "No", "null", "190:20:30",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(`"`+text+`"`)) && strings.ContainsRune(text, '\uFFFD') {
			return
		}
		compare(t, map[string]any{"a": text, "b": []any{text, map[string]any{"long name of a key": text}}})
	})
}

func compare(t *testing.T, value map[string]any) {
	t.Helper()
	want, err := sigsyaml.Marshal(value)
	if err != nil {
		return
	}
	if diff := cmp.Diff(string(want), string(Mapping(nil, 0, value))); diff != "" {
		t.Fatalf("%#v:\n(-library +ours)\n%s", value, diff)
	}
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n < 2 && depth < 5:
		m := map[string]any{}
		for range r.IntN(4) {
			m[randomKey(r)] = randomValue(r, depth+1)
		}
		return m
	case n < 4 && depth < 5:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth+1))
		}
		return list
	case n == 4:
		return r.IntN(2) == 0
	case n == 5:
		return json.Number([]string{"0", "-1", "1.5", "1e+21", "9007199254740993", "18446744073709551615", "1e-7", "100000000000000000000"}[r.IntN(8)])
	}
	return randomText(r)
}

// shorten makes a key of one line: longer ones are written in another form, which
// no manifest has.
func shorten(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[:min(len(line), 60)]
}

func randomKey(r *rand.Rand) string {
	const letters = "abcXYZ019-_."
	key := make([]byte, 1+r.IntN(6))
	for i := range key {
		key[i] = letters[r.IntN(len(letters))]
	}
	return string(key)
}

func randomText(r *rand.Rand) string {
	words := []string{"a", "the", "object's", "it:", "#x", "-", "?", "[b]", "{", "true", "12", "1.5", "é", "\n", " ", "  ", "\"q\"", "`", "don't", "\\", "key: value", "—", "|", ">", "%", "@", "&", "*", "!", "..."}
	var text strings.Builder
	for range r.IntN(30) {
		text.WriteString(words[r.IntN(len(words))])
		if r.IntN(3) > 0 {
			text.WriteByte(' ')
		}
	}
	return strings.TrimRight(text.String(), []string{" ", ""}[r.IntN(2)])
}
