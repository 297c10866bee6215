// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/bench/browser"
	"github.com/steer-dev/steer/bench/page"
)

// patience is how long a step may take on a machine that does much else.
const patience = time.Minute

// chromium starts a browser, or says why the test cannot run.
func chromium(t *testing.T) *browser.Browser {
	t.Helper()
	program, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	b, err := browser.Start(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// walker is a tab whose steps end the test if they fail.
type walker struct {
	t   *testing.T
	tab *browser.Tab
	ctx context.Context
	// clicks are those with the mouse.
	clicks int
}

// walk opens a URL in a tab that shares nothing. At the end the page must not have complained.
func walk(t *testing.T, b *browser.Browser, url string) *walker {
	t.Helper()
	return walkIn(t, b, url, true)
}

// walkIn opens a URL in a tab that is apart, or shares cookies with others.
func walkIn(t *testing.T, b *browser.Browser, url string, apart bool) *walker {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*patience)
	t.Cleanup(cancel)
	tab, err := b.Tab(ctx, apart)
	if err != nil {
		t.Fatal(err)
	}
	w := &walker{t: t, tab: tab, ctx: ctx}
	w.must(tab.Go(ctx, url))
	t.Cleanup(func() {
		for _, complaint := range tab.Complaints() {
			t.Errorf("the browser complains: %s", complaint)
		}
	})
	return w
}

func (w *walker) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walker) press(keys ...string) { w.t.Helper(); w.must(w.tab.Press(w.ctx, keys...)) }

// until waits for an expression to be true.
func (w *walker) until(expression string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	w.must(w.tab.Until(ctx, expression))
}

// title waits for the view with a heading.
func (w *walker) title(text string) {
	w.t.Helper()
	w.until(`document.readyState === "complete" && document.querySelector("h1").innerText === ` + quoted(text))
}

// says waits until the view has a text.
func (w *walker) says(text string) {
	w.t.Helper()
	w.until(`document.querySelector("main").innerText.replace(/\s+/g, " ").includes(` + quoted(text) + `)`)
}

// click clicks on the first link or button in a part of the page whose words begin with a text.
func (w *walker) click(part, text string) {
	w.t.Helper()
	w.until(`document.readyState === "complete"`)
	w.must(w.tab.Click(w.ctx, `[...document.querySelectorAll(`+quoted(part+" a, "+part+" button")+`)].find((e) => e.innerText.trim().startsWith(`+quoted(text)+`))`))
	w.clicks++
}

// eval evaluates an expression of text.
func (w *walker) eval(expression string) (text string) {
	w.t.Helper()
	w.must(w.tab.Eval(w.ctx, expression, &text))
	return text
}

// fits reports what is wider than the window.
func (w *walker) fits() {
	w.t.Helper()
	for _, width := range []int{360, 768, 1280} {
		w.must(w.tab.Size(w.ctx, width, 800))
		if wide := w.eval(`(() => { const root = document.documentElement; if (root.scrollWidth <= root.clientWidth) return "";
			return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest(".scroll, pre, .skip"))
				.map((e) => e.outerHTML.slice(0, 120)).slice(0, 3).join("\n") || "something"; })()`); wide != "" {
			w.t.Errorf("%s scrolls to the side in a window of %d pixels: %s", w.eval("location.pathname + location.search.slice(0, 60)"), width, wide)
		}
	}
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // texts have JSON
	}
	return string(out)
}

// pageOf starts the operator and its page, with the program that $STEER names.
func pageOf(t *testing.T) string {
	t.Helper()
	program := os.Getenv("STEER")
	if program == "" {
		t.Skip("STEER names no program: .ci/run build page builds it and runs this")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	subject, err := page.Open(ctx, program, "../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := subject.Close(); err != nil {
			t.Error(err)
		}
	})
	return subject.URL
}

// TestPageInABrowser shares one: it takes seconds to start.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	for name, test := range map[string]func(*testing.T, *browser.Browser){
		"bad input":                   badInputDoesNothing,
		"two tabs":                    tabsAreApart,
		"a URL that is shared":        sharedURLLetsNoOneIn,
		"a server that ends":          endOfTheServerIsSaid,
		"a proxy that gathers":        worksBehindAProxyThatGathers,
		"an operator that has faults": walks,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// walks are of one operator with faults, as [page.Subject] describes it.
func walks(t *testing.T, b *browser.Browser) {
	url := pageOf(t)
	for name, test := range map[string]func(*testing.T, *walker){
		"a first-time user finds the failing object": findsTheFailing,
		"three questions":       threeQuestions,
		"all views by keyboard": byKeyboard,
		"all views by mouse":    byMouse,
		"contrast and labels":   readableByAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, walk(t, b, url))
		})
	}
}

// findsTheFailing is a walk of one who knows nothing: the only red on the first view leads there.
func findsTheFailing(t *testing.T, w *walker) {
	w.title("Pulse")
	w.says("need you.")
	w.until(`[...document.querySelectorAll(".card.broken")].some((e) => e.innerText.includes("search") && e.innerText.includes("the directory answers 422"))`)
	if seen := w.eval(`String([...document.querySelectorAll(".card.broken")].every((e) => e.getBoundingClientRect().bottom < innerHeight))`); seen != "true" {
		t.Error("what needs a person is not in the first window")
	}
	w.must(w.tab.Click(w.ctx, `[...document.querySelectorAll(".card.broken")].find((e) => e.innerText.includes("search")).querySelector("a")`))
	w.title("Fleet default/search")
	w.says("port 9200 is taken by default/logs")
}

// threeQuestions are those of docs/why.md, each in three clicks at most from the first view.
func threeQuestions(t *testing.T, w *walker) {
	first := w.eval("location.origin")
	asks := func(question string) func() {
		w.must(w.tab.Go(w.ctx, first+"/"))
		w.title("Pulse")
		w.clicks = 0
		return func() {
			t.Helper()
			if w.clicks > 3 {
				t.Errorf("%s takes %d clicks, at most 3", question, w.clicks)
			}
		}
	}
	answered := asks("who changed this field")
	w.click("header nav", "Objects")
	w.title("Objects")
	w.click("tbody", "Fleet default/web")
	w.click(".tabs", "History")
	w.until(`[...document.querySelectorAll("tbody tr")].some((e) => e.innerText.includes("spec.replicas") && e.innerText.includes("tool-of-bob") && e.innerText.includes("bob") &&
		e.querySelector("del").innerText === "3" && e.querySelector("ins").innerText === "5")`)
	answered()

	answered = asks("why is it not ready")
	w.until(`[...document.querySelectorAll(".card.broken")].some((e) => e.innerText.includes("search"))`)
	w.click(".card.broken h3", "Fleet default/search")
	w.click(".tabs", "Tree")
	w.says("Pod default/search-0")
	w.says("not ready")
	w.says("0/1 nodes are available")
	answered()

	answered = asks("why does it run every 10 s")
	w.click("header nav", "Objects")
	w.title("Objects")
	w.click("tbody", "Fleet default/cache")
	w.says("because delayed: the one before asked to come back")
	w.until(`[...document.querySelectorAll("#often li")].some((e) => /^([2-9]|\d\d+) because delayed/.test(e.innerText))`) // at the third
	answered()
}

// byKeyboard opens all views without a mouse.
func byKeyboard(t *testing.T, w *walker) {
	w.title("Pulse")
	for key, title := range map[string]string{"2": "Objects", "3": "Queue", "4": "Recording", "1": "Pulse"} {
		w.press(key)
		w.title(title)
	}
	// The first stop is the way past the header, and every stop can be seen.
	w.press("1")
	w.title("Pulse")
	w.must(w.tab.Go(w.ctx, w.eval("location.origin")+"/"))
	w.press("p", "Tab") // what is looked at stays
	if skip := w.eval("document.activeElement.className"); skip != "skip" {
		t.Errorf("the first stop is %q", skip)
	}
	for range 14 {
		w.press("Tab")
		if unseen := w.eval(`(() => { const e = document.activeElement; if (e === document.body) return ""; // past the last one
			const s = getComputedStyle(e), r = e.getBoundingClientRect();
			return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 && r.width > 0 && r.height > 0 ? "" : e.outerHTML.slice(0, 100); })()`); unseen != "" {
			t.Errorf("the focus cannot be seen on %s", unseen)
		}
	}
	w.until(`document.getElementById("pause").getAttribute("aria-pressed") === "true" && document.getElementById("state").innerText.includes("Paused")`)
	w.press("p")
	w.until(`document.getElementById("state").innerText.includes("Live")`)
	// Find an object, from any view, and all that there is of it.
	w.press("/")
	w.until(`document.activeElement?.id === "find"`)
	w.press("s", "e", "a", "r", "c", "h", "Enter")
	w.until(`location.search === "?find=search" && document.readyState === "complete"`)
	w.press("j")
	w.until(`document.activeElement.closest("tbody") !== null`)
	w.press("k")
	w.press("j")
	for range 4 { // past links of attempts, to the object
		if strings.HasPrefix(w.eval(`document.activeElement.getAttribute("href") || ""`), "/object?") {
			break
		}
		w.press("j")
	}
	w.press("Enter")
	w.title("Fleet default/search")
	for links, view := range []string{1: "Attempts", 2: "Conditions", 3: "History", 4: "Tree"} { // the first of the view
		if view == "" {
			continue
		}
		for range links {
			w.press("j")
		}
		w.press("Enter")
		w.until(`document.readyState === "complete" && document.querySelector(".tabs [aria-current]").innerText === ` + quoted(view))
	}
	w.press("j", "Enter")
	w.until(`document.querySelector("tbody th a") !== null`)
	w.must(w.tab.Eval(w.ctx, `document.querySelector("tbody th a").focus()`, nil))
	w.press("Enter")
	w.title("Attempt")
}

// byMouse opens all views with clicks alone, in windows of all widths.
func byMouse(t *testing.T, w *walker) {
	w.title("Pulse")
	w.says("Controllers")
	w.fits()
	for _, title := range []string{"Objects", "Queue", "Recording"} {
		w.click("header nav", title)
		w.title(title)
		w.fits()
	}
	w.click("main", "Save as a file")
	w.click("header nav", "Objects")
	w.title("Objects")
	w.click("tbody", "Fleet default/search")
	w.title("Fleet default/search")
	for _, tab := range []string{"Conditions", "History", "Tree", "Attempts"} {
		w.click(".tabs", tab)
		w.until(`document.readyState === "complete" && document.querySelector(".tabs [aria-current]").innerText === ` + quoted(tab))
		w.fits()
	}
	w.must(w.tab.Click(w.ctx, `document.querySelector("tbody th a")`))
	w.title("Attempt")
	w.fits()
	w.click("header", "Pause")
	w.until(`document.getElementById("state").innerText.includes("Paused")`)
}

// readableByAll has axe look at every view, in both themes.
func readableByAll(t *testing.T, w *walker) {
	file := os.Getenv("STEER_AXE")
	if file == "" {
		t.Skip("STEER_AXE names no axe.min.js: .ci/run page fetches it with npm")
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.until(`[...document.querySelectorAll(".card.broken")].some((e) => e.innerText.includes("search"))`)
	origin := w.eval("location.origin")
	object := w.eval(`document.querySelector(".card.broken h3 a").getAttribute("href")`)
	attempt := w.eval(`document.querySelector(".card.broken p a[href^='/attempt']").getAttribute("href")`)
	for _, at := range []string{"/", "/objects", "/queue", "/recording", object, object + "&view=conditions", object + "&view=history", object + "&view=tree", attempt, "/none", "/objects?find=none"} {
		w.must(w.tab.Go(w.ctx, origin+at))
		w.press("p") // what is looked at stays
		w.must(w.tab.Eval(w.ctx, string(axe)+"\n; 0", nil))
		for theme, rules := range map[string]string{"light": `[]`, "dark": `["color-contrast", "link-in-text-block"]`} {
			w.must(w.tab.Theme(w.ctx, theme == "dark"))
			var found []struct {
				ID, Help string
				Nodes    []struct{ HTML, FailureSummary string }
			}
			w.must(w.tab.Eval(w.ctx, `axe.run(document, {resultTypes: ["violations"], ...(`+rules+`.length ? {runOnly: `+rules+`} : {})}).then((r) => r.violations.map((v) =>
				({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => ({HTML: n.html.slice(0, 200), FailureSummary: n.failureSummary}))})))`, &found))
			for _, v := range found {
				t.Errorf("%s, %s: %s: %s: %s", at, theme, v.ID, v.Help, fmt.Sprintf("%+v", v.Nodes))
			}
		}
	}
	for _, complaint := range w.tab.Complaints() {
		if !strings.Contains(complaint, "404") { // that of /none
			t.Errorf("the browser complains: %s", complaint)
		}
	}
}
