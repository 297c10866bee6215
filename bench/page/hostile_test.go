// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/steer-dev/steer/bench/browser"
	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/trace"
)

// source is one whose records come while a test goes on.
type source struct {
	mu      sync.Mutex
	records []trace.Record
	number  uint64
}

func (s *source) New() iter.Seq[trace.Record] {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := s.records
	s.records = nil
	return slices.Values(records)
}

func (s *source) Now() dashboard.Now { return dashboard.Now{Running: []trace.Record{}} }

// add adds a failed attempt of an object, whose texts are all the same.
func (s *source) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	object := trace.Object{Group: text, Kind: text, Namespace: text, Name: text}
	s.records = append(s.records, trace.Record{
		ID: trace.ID{Recorder: 7, Number: s.number}, Controller: text, Object: object, Began: time.Now(), Took: time.Millisecond,
		Outcome: trace.Failed, Error: text, Retries: 7, After: time.Hour, Causes: []trace.Cause{{Type: trace.Updated, Object: object, Changed: text}},
		Writes: []trace.Access{{Verb: trace.Patch, Object: object, Subresource: text, Changed: text, Error: text}},
	})
}

// plane is a control plane of hostile objects.
type plane struct{ texts []string }

func (p *plane) History(context.Context, trace.Object) (h dashboard.History, err error) {
	for i, text := range p.texts {
		h.Versions = append(h.Versions, dashboard.Version{Revision: fmt.Sprint(i, text), Change: text, Manager: text, User: text, Missing: []string{text},
			Fields: []dashboard.Field{{Path: text, Old: text, New: text}}, Conditions: []dashboard.Condition{{Type: text, Status: text, Reason: text, Message: text}}})
	}
	h.End = p.texts[0]
	return h, nil
}

func (p *plane) List(context.Context) (list dashboard.List, err error) {
	for _, text := range p.texts {
		list.Nodes = append(list.Nodes, dashboard.Node{Object: trace.Object{Kind: text, Namespace: text, Name: text}, State: text, Message: text, NotReady: true})
	}
	list.Missing = p.texts
	return list, nil
}

func (p *plane) Tree(context.Context, trace.Object) (tree dashboard.Tree, err error) {
	node := &tree.Root
	for _, text := range p.texts {
		*node = dashboard.Node{Object: trace.Object{Kind: text, Namespace: text, Name: text}, State: text, Message: text, NotReady: true, Blocked: true, Children: make([]dashboard.Node, 1)}
		node = &node.Children[0]
	}
	tree.Missing = p.texts
	return tree, nil
}

// serve serves a page until the test ends, or stop is called.
func serve(t *testing.T, p *dashboard.Page, address string) (at string, stop func()) {
	t.Helper()
	local, err := p.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- local.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return local.URL(), stop
}

func badInputDoesNothing(t *testing.T, b *browser.Browser) {
	const does = `window.bad = true; alert(1)`
	texts := []string{
		`<script>` + does + `</script><img src=x onerror="` + does + `"><svg onload="` + does + `">`, `"><a href="javascript:` + does + `">x</a>`, `' onmouseover='` + does,
		"a\x00\x1b[31m\u202egnp.exe\u2066", "خادم-الويب", strings.Repeat("long", 1<<18), strings.Repeat("W ", 3000), "\xff\xfe", "</title></textarea></main><h1>", strings.Repeat("\n", 5000) + "end",
	}
	s := &source{}
	for _, text := range texts {
		s.add(text)
	}
	at, _ := serve(t, dashboard.New(dashboard.Options{Title: texts[0], Source: s, Objects: &plane{texts}}), "127.0.0.1:0")
	w := walk(t, b, at)
	origin := w.eval("location.origin")
	views := []string{"/", "/objects", "/queue", "/recording", "/object?kind=Pod&name=x&view=history", "/object?kind=Pod&name=x&view=tree", "/object?kind=Pod&name=x&view=conditions",
		"/objects?find=" + url.QueryEscape(texts[0])}
	for i := range texts {
		views = append(views, fmt.Sprintf("/attempt?id=0000000000000007-%d", i+1))
	}
	for _, view := range views {
		w.must(w.tab.Go(w.ctx, origin+view))
		w.fits()
		if wrong := w.eval(`(() => { const bad = [...document.querySelectorAll("main img, main script, main textarea, main [onmouseover], a[href^='javascript']")].map((e) => e.outerHTML.slice(0, 80));
			if (window.bad) bad.push("a script of a text ran");
			if (document.scripts.length !== 1 || document.querySelectorAll("h1").length !== 1) bad.push("it has elements of a text");
			const top = document.querySelector("header.top").getBoundingClientRect();
			if (top.height > 200) bad.push("the header is " + top.height + " pixels high");
			return bad.join("\n"); })()`); wrong != "" {
			t.Errorf("%.80s: %s", view, wrong)
		}
	}
	// Those that came by an update are put into the page by the script.
	w.must(w.tab.Go(w.ctx, origin+"/objects"))
	s.add("<b>late</b>" + texts[0])
	w.says("<b>late</b>")
	if bad := w.eval(`String(!!window.bad || document.querySelector("main b, main img, main script") !== null)`); bad != "false" {
		t.Error("an update has elements of a text, or ran its script")
	}
}

func tabsAreApart(t *testing.T, b *browser.Browser) {
	s := &source{}
	s.add("first")
	at, _ := serve(t, dashboard.New(dashboard.Options{Title: "shop", Source: s}), "127.0.0.1:0")
	one, two := walkIn(t, b, at, false), walkIn(t, b, at, false)
	one.click("header", "Pause")
	s.add("second")
	two.says("second")
	if got := one.eval(`document.querySelector("main").innerText`); strings.Contains(got, "second") {
		t.Error("a tab that was paused went on")
	}
	one.click("header", "Pause")
	one.says("second")
}

func sharedURLLetsNoOneIn(t *testing.T, b *browser.Browser) {
	s := &source{}
	s.add("bakery")
	at, _ := serve(t, dashboard.New(dashboard.Options{Title: "shop", Source: s}), "127.0.0.1:0")
	w := walk(t, b, at)
	w.click(".card h3", "bakery")
	w.until(`location.pathname === "/object" && document.readyState === "complete"`)
	shared := w.eval("location.href")
	if strings.Contains(shared, "token") || strings.Contains(w.eval("document.referrer + document.cookie"), "token") {
		t.Errorf("the address bar has %s", shared)
	}
	tab, err := b.Tab(w.ctx, true) // another browser
	w.must(err)
	other := &walker{t: t, tab: tab, ctx: w.ctx}
	w.must(tab.Go(w.ctx, shared))
	other.until(`document.body.innerText.includes("the page needs its token")`)
	if got := other.eval("document.body.innerText"); strings.Contains(got, "bakery") {
		t.Errorf("another browser is shown %s", got)
	}
}

func endOfTheServerIsSaid(t *testing.T, b *browser.Browser) {
	s := &source{}
	s.add("bakery")
	page := dashboard.New(dashboard.Options{Title: "shop", Source: s})
	at, stop := serve(t, page, "127.0.0.1:0")
	w := walk(t, b, at)
	w.says("bakery")
	stop()
	w.until(`document.querySelector("#state.lost") !== null && document.getElementById("state").innerText.includes("Not connected")`)
	w.says("bakery") // what it said last is still there
	w.tab.Complaints()
	// Started again at the same address, it has another token, and says what to do.
	address, err := url.Parse(at)
	w.must(err)
	next, _ := serve(t, page, address.Host)
	w.until(`document.getElementById("state").innerText.includes("open the URL that it printed")`)
	w.says("bakery")
	w.must(w.tab.Go(w.ctx, next))
	w.until(`document.getElementById("state").innerText.includes("Live")`)
	w.tab.Complaints() // of the connection that was refused
}

// worksBehindAProxyThatGathers is of a page whose stream comes when it has ended.
func worksBehindAProxyThatGathers(t *testing.T, b *browser.Browser) {
	s := &source{}
	s.add("first")
	to := httptest.NewServer(dashboard.New(dashboard.Options{Title: "shop", Source: s}))
	t.Cleanup(to.Close)
	target, err := url.Parse(to.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(answer *http.Response) error {
		if answer.Header.Get("Content-Type") == "text/event-stream" {
			_ = answer.Body.Close()
			answer.Body = struct {
				io.Reader
				io.Closer
			}{waits{answer.Request.Context()}, io.NopCloser(nil)}
		}
		return nil
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	w := walk(t, b, "about:blank")
	w.must(w.tab.Faster(w.ctx, 20)) // 20 s of silence are one
	w.must(w.tab.Go(w.ctx, front.URL))
	w.says("first")
	s.add("second")
	w.says("second")
	w.must(w.tab.Go(w.ctx, "about:blank"))
}

// waits has nothing to read until its context ends.
type waits struct{ context.Context }

func (w waits) Read([]byte) (int, error) {
	<-w.Done()
	return 0, io.EOF
}
