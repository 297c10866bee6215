// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestTextOfAPlanIsRead(t *testing.T) {
	t.Parallel()
	p := Plan{Seed: 7, Faults: []Fault{
		{Type: CrashAfter, At: secret("db-ssl")},
		{Type: CrashAfter, Restart: 1},
		{Type: TimeoutAfter, At: Write{Verb: Outside, Name: `put "a b"`, Nth: 1}},
		{Type: InternalError, At: status(2)},
	}}
	const want = `steer sim plan v1
# The operator never creates the second Secret.
#
# Found by crashes.
order 7
fault crash_after verb=create kind=Secret namespace=default name=db-ssl nth=1
fault crash_after restart=1
fault 504_after verb=outside name="put \"a b\"" nth=1
fault 500_on verb=patch group=example.com kind=Database namespace=default name=db subresource=status nth=2
`
	text, err := Encode(p, "The operator never creates the second Secret.\n\nFound by crashes.\n")
	if err != nil || string(text) != want {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, text := range []string{want, strings.ReplaceAll(want, "\n", "\r\n"), strings.TrimSuffix(want, "\n")} {
		got, err := Decode([]byte(text))
		for i, f := range p.Faults {
			if f.Restart == 0 {
				p.Faults[i].At.Actor = Operator
			}
		}
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%v\n%+v", err, got)
		}
	}
}

func TestTextOfAPlanIsRefused(t *testing.T) {
	t.Parallel()
	const write = "verb=create kind=Secret name=a"
	for text, want := range map[string]string{
		"":                          `line 1: a plan begins with "steer sim plan v1"`,
		"go test fuzz v1\n":         `line 1: a plan begins with`,
		"steer sim plan v2\n":       `version "v2" is not known`,
		"steer sim plan v1\norder":  `line 2: the order "" is not a whole number from 1`,
		"order 0":                   `the order "0" is not`,
		"order 07":                  `the order "07" is not`,
		"order 1\norder 2":          `line 3: a second order`,
		"crash_after":               `line 2: "crash_after" is neither`,
		" # no":                     `is neither "order" nor "fault" nor a comment`,
		"fault explode restart=1":   `the fault "explode" is none of [crash_before`,
		"fault crash_after":         `fault 1: the verb ""`,
		"fault crash_after nth":     `"nth" has no "="`,
		"fault crash_after nth=x":   `the nth "x" is not a number`,
		"fault crash_after nth=1 ":  `one space and a key`,
		"fault crash_after  nth=1":  `" nth" is none of`,
		"fault crash_after kind=\"": `the quote does not end`,
		"fault crash_after " + write + " nth=1 nam=b":        `"nam" is none of ["nth" "restart" "actor"`,
		"fault crash_after " + write + " nth=1 nth=2":        `"nth" is given twice`,
		"fault crash_after " + write + " nth=1 actor=":       `the value of "actor": it is empty`,
		"fault crash_after " + write + " nth=99999999999":    `not a number from 1 to 2^30`,
		"fault crash_after " + write:                         `count from 1`,
		"\xff":                                               `not UTF-8`,
		strings.Repeat("#\n", MaxText):                       `at most 65536`,
		strings.Repeat("fault 500_on "+write+" nth=1\n", 65): `line 66: more than 64 faults`,
	} {
		if text != "" && !strings.HasPrefix(text, "steer") && !strings.HasPrefix(text, "go test") {
			text = "steer sim plan v1\n" + text
		}
		_, err := Decode([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want one with %s", text, err, want)
		}
	}
}

func TestTextIsMadeOfValidPlansOnly(t *testing.T) {
	t.Parallel()
	if text, err := Encode(Plan{Faults: []Fault{{Type: CrashAfter}}}, ""); err == nil {
		t.Errorf("an invalid plan has the text %s", text)
	}
	if _, err := Encode(Plan{}, strings.Repeat("a", MaxText)); err == nil {
		t.Error("a text is longer than what is read")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("steer sim plan v1\n# a\norder 7\nfault crash_after verb=create kind=Secret namespace=default name=db-ssl nth=1\nfault crash_after restart=1\n"))
	f.Add([]byte("steer sim plan v1\nfault 504_after verb=outside name=\"put \\\"a b\\\"\" nth=1"))
	f.Add([]byte("steer sim plan v1\nfault 500_on actor=user verb=apply kind=\"\\u00a0\" name=\\ nth=1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Encode(p, "")
		if err != nil {
			if len(again) <= MaxText && strings.Contains(err.Error(), "bytes, at most") {
				return // quoting has made it longer
			}
			t.Fatalf("a plan that was read has no text: %v", err)
		}
		q, err := Decode(again)
		if err != nil || p.Name() != q.Name() {
			t.Fatalf("%v: %s and %s", err, p.Name(), q.Name())
		}
		if third, err := Encode(q, ""); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%v:\n%s\n%s", err, again, third)
		}
	})
}
