// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package markup_test

import (
	"strings"
	"testing"

	"github.com/steer-dev/steer/dashboard/internal/markup"
)

func TestTextsOfOthersStayTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"elements":       {`<script>alert("1")</script>`, `&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;`},
		"an attribute":   {`" onclick='x'`, `&#34; onclick=&#39;x&#39;`},
		"an entity":      {`&lt;`, `&amp;lt;`},
		"controls":       {"a\x00b\x1b[31mc\r", `a\x00b\x1b[31mc\r`},
		"lines":          {"a\n\tb", "a\n\tb"},
		"directions":     {"gpj\u202e.exe", `gpj\u202e.exe`},
		"isolates":       {"\u2066x\u2069", `\u2066x\u2069`},
		"nothing to see": {"a\u200bb", `a\u200bb`},
		"invalid bytes":  {"a\xffb", `a\xffb`},
		"a replacement":  {"a\uFFFDb", "a\uFFFDb"},
		"Arabic":         {"خادم", "خادم"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := markup.Write(&out, markup.Tag("p", markup.Attr("title", c.text), markup.Foreign(c.text))); err != nil {
				t.Fatal(err)
			}
			if want := `<p title="` + c.want + `"><bdi>` + c.want + `</bdi></p>`; out.String() != want {
				t.Errorf("it is %q, want %q", out.String(), want)
			}
		})
	}
}

func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	text := markup.Plain(strings.Repeat("ü", 1<<19))
	if len(text) > markup.MaxText+40 || !strings.HasSuffix(text, "bytes more)") || strings.Contains(text, `\x`) {
		t.Errorf("1 MiB becomes %d bytes: ...%s", len(text), text[len(text)-40:])
	}
}

func TestNothingIsNotWritten(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	page := markup.Tag("p", markup.Attribute{}, markup.Node{}, markup.Text(""), markup.If(false, markup.Text("no")), markup.If(true, markup.Text("yes")), markup.Tag("br"))
	if err := markup.Document(&out, page); err != nil {
		t.Fatal(err)
	}
	if want := "<!DOCTYPE html>\n<p>yes<br></p>"; out.String() != want {
		t.Errorf("it is %q, want %q", out.String(), want)
	}
}
