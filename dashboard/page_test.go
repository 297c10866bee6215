// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/trace"
)

// firstPaint is how large a view may be, in bytes, with the style sheet and the script.
const firstPaint = 150 << 10

// source is one whose records come while a test goes on.
type source struct {
	mu      sync.Mutex
	records []trace.Record
	now     dashboard.Now
}

func (s *source) New() iter.Seq[trace.Record] {
	s.mu.Lock()
	defer s.mu.Unlock()
	records := s.records
	s.records = nil
	return slices.Values(records)
}

func (s *source) Now() dashboard.Now {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *source) add(records ...trace.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, records...)
}

func web(name string) trace.Object {
	return trace.Object{Group: "example.com", Kind: "Web", Namespace: "default", Name: name}
}

// record is the attempt with a number; they end one after the other, the last one now.
func record(number int, of trace.Object, change func(*trace.Record)) trace.Record {
	r := trace.Record{
		ID: trace.ID{Recorder: 7, Number: uint64(number)}, Controller: "webs", Object: of, Took: 3 * time.Millisecond, Outcome: trace.Done,
		Began:  time.Now().Add(-time.Minute + time.Duration(number)*time.Microsecond),
		Causes: []trace.Cause{{Type: trace.Updated, Object: of, Revision: fmt.Sprint(number), Changed: "spec.size"}},
		Reads:  []trace.Access{{Verb: trace.Get, Object: of, Revision: fmt.Sprint(number), Cached: true}},
		Writes: []trace.Access{{Verb: trace.Patch, Object: of, Subresource: "status", Revision: fmt.Sprint(number + 1<<30), Changed: "status.ready"}},
	}
	if change != nil {
		change(&r)
	}
	return r
}

func fails(text string) func(*trace.Record) {
	return func(r *trace.Record) {
		r.Outcome, r.Error, r.Retries, r.After = trace.Failed, text, 7, time.Minute
	}
}

// get asks for a view.
func get(t *testing.T, page http.Handler, at string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil))
	return answer
}

// view asks for a view that is there, and parses it.
func view(t *testing.T, page http.Handler, at string) *html.Node {
	t.Helper()
	answer := get(t, page, at)
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: %d: %s", at, answer.Code, answer.Body)
	}
	root, err := html.Parse(answer.Body)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	return root
}

// all are the elements below a node with a tag, or an attribute: "a", "[id]".
func all(root *html.Node, what string) (found []*html.Node) {
	name, byAttr := strings.CutPrefix(strings.TrimSuffix(what, "]"), "[")
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && (!byAttr && n.Data == name || byAttr && attr(n, name) != "") {
			found = append(found, n)
		}
	}
	return found
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// plane is a control plane of one answer.
type plane struct {
	history dashboard.History
	tree    dashboard.Tree
	list    dashboard.List
	err     error
}

func (p *plane) History(context.Context, trace.Object) (dashboard.History, error) {
	return p.history, p.err
}
func (p *plane) Tree(context.Context, trace.Object) (dashboard.Tree, error) { return p.tree, p.err }
func (p *plane) List(context.Context) (dashboard.List, error) {
	return p.list, p.err
}

func TestFirstViewLeadsToTheFailingObject(t *testing.T) {
	t.Parallel()
	var records []trace.Record
	for i := range 500 {
		records = append(records, record(i+1, web(fmt.Sprint("web-", i)), nil))
	}
	records = append(records, record(501, web("web-250"), fails("the registry refused the image")))
	page := dashboard.New(dashboard.Options{Title: "shop", Source: dashboard.Recording(records, "A recording")})
	first := view(t, page, "/")
	main := all(first, "main")[0]
	if !strings.Contains(text(main), "1 thing needs you.") || !strings.Contains(text(main), "failed 8 times in a row") || !strings.Contains(text(main), "the registry refused the image") {
		t.Errorf("the first view says:\n%s", text(main))
	}
	link := attr(all(main, "a")[0], "href")
	object := view(t, page, link)
	if got := text(all(object, "h1")[0]); got != "Web default/web-250" {
		t.Errorf("its first link leads to %q", got)
	}
	attempts := all(object, "tbody")[0]
	if rows := all(attempts, "tr"); len(rows) != 2 || !strings.Contains(text(rows[0]), "failed") || !strings.Contains(text(rows[0]), "spec.size") {
		t.Errorf("its attempts are:\n%s", text(attempts))
	}
	attempt := view(t, page, attr(all(attempts, "a")[0], "href"))
	if got := text(all(attempt, "main")[0]); !strings.Contains(got, "the registry refused the image") || !strings.Contains(got, "patch status of") {
		t.Errorf("the attempt says:\n%s", got)
	}
}

// views are all, with what each has.
func views() []string {
	of := url.Values{"group": {"example.com"}, "kind": {"Web"}, "namespace": {"default"}, "name": {"a"}}.Encode()
	return []string{
		"/", "/objects", "/objects?find=web", "/objects?find=none&from=x", "/objects?from=-3", "/queue", "/recording", "/attempt?id=0000000000000007-1",
		"/object?" + of, "/object?view=conditions&" + of, "/object?view=history&" + of, "/object?view=tree&" + of, "/object?controller=jobs&request=nightly",
		"/object?kind=Pod&name=foreign", "/object?before=x&" + of,
	}
}

func some() (*source, *plane) {
	s := &source{now: dashboard.Now{Running: []trace.Record{{ID: trace.ID{Recorder: 7, Number: 99}, Controller: "webs", Object: web("slow"), Outcome: trace.Running, Took: 2 * time.Minute}}, Queued: []trace.Queued{{Controller: "webs", AllReady: 3, Ready: []trace.Waiting{{Object: web("ready"), At: time.Now()}}}}}}
	s.add(
		record(1, web("a"), nil), record(2, web("b"), fails("no")), record(3, web("c"), func(r *trace.Record) { r.Outcome, r.After = trace.Requeued, time.Hour }),
		record(4, trace.Object{}, func(r *trace.Record) { r.Controller, r.Request = "jobs", "nightly" }),
		record(5, web("d"), func(r *trace.Record) {
			r.Controller, r.Outcome, r.Error = "/validate", trace.Denied, "size is negative"
		}))
	return s, &plane{
		history: dashboard.History{End: "it was created at 7", Versions: []dashboard.Version{{
			Revision: "7", Change: "created", Manager: "kubectl", Conditions: []dashboard.Condition{{Type: "Ready", Status: "False", Reason: "Waiting"}}}, {
			Revision: "9", Change: "updated", Fields: []dashboard.Field{{Path: "spec.size", Old: "1", New: "2"}}, Reconcile: trace.ID{Recorder: 7, Number: 1},
			Conditions: []dashboard.Condition{{Type: "Ready", Status: "True", Reason: "Done"}}, Missing: []string{"the user"}}}},
		tree: dashboard.Tree{Root: dashboard.Node{Object: web("a")}, Owners: []dashboard.Node{{Object: web("owner")}}, Missing: []string{"secrets: forbidden"}},
	}
}

func TestEveryViewCanBeReadByAll(t *testing.T) {
	t.Parallel()
	s, objects := some()
	page := dashboard.New(dashboard.Options{Title: "shop", Source: s, Objects: objects})
	linked := map[string]bool{}
	for _, at := range views() {
		root := view(t, page, at)
		if n := len(all(all(root, "head")[0], "title")); n != 1 {
			t.Errorf("%s has %d titles", at, n)
		}
		for _, one := range []string{"h1", "main", "header", "footer"} {
			if n := len(all(root, one)); n != 1 {
				t.Errorf("%s has %d elements %s", at, n, one)
			}
		}
		if lang := attr(all(root, "html")[0], "lang"); lang != "en" {
			t.Errorf("%s is in %q", at, lang)
		}
		ids := map[string]bool{}
		for _, n := range all(root, "[id]") {
			if ids[attr(n, "id")] {
				t.Errorf("%s has the id %s twice", at, attr(n, "id"))
			}
			ids[attr(n, "id")] = true
		}
		for _, n := range all(root, "input") {
			if !slices.ContainsFunc(all(root, "label"), func(l *html.Node) bool { return attr(l, "for") == attr(n, "id") }) {
				t.Errorf("%s: the input %s has no label", at, attr(n, "id"))
			}
		}
		for _, n := range all(root, "svg") {
			if attr(n, "role") != "img" || attr(n, "aria-label") == "" {
				t.Errorf("%s has a picture without words", at)
			}
		}
		for _, n := range all(root, "nav") {
			if attr(n, "aria-label") == "" {
				t.Errorf("%s has a navigation without a name", at)
			}
		}
		for _, n := range all(root, "table") {
			if len(all(n, "caption")) != 1 || len(all(n, "thead")) != 1 {
				t.Errorf("%s has a table without caption or head", at)
			}
		}
		for _, n := range append(all(root, "[style]"), all(root, "style")...) {
			t.Errorf("%s has a style within: %s", at, n.Data)
		}
		for _, n := range all(root, "script") {
			if attr(n, "src") != "/page.js" || text(n) != "" {
				t.Errorf("%s has a script within", at)
			}
		}
		for _, n := range all(root, "a") {
			if href := attr(n, "href"); strings.HasPrefix(href, "/") {
				linked[href] = true
			}
			if strings.TrimSpace(text(n)) == "" {
				t.Errorf("%s has a link without words to %s", at, attr(n, "href"))
			}
		}
	}
	for at := range linked {
		if answer := get(t, page, at); answer.Code != http.StatusOK {
			t.Errorf("%s is linked and is %d", at, answer.Code)
		}
	}
	for _, at := range []string{"/none", "/attempt?id=0000000000000007-77", "/attempt?id=x"} {
		if answer := get(t, page, at); answer.Code != http.StatusNotFound || len(answer.Body.String()) < 500 {
			t.Errorf("%s is %d: %s", at, answer.Code, answer.Body)
		}
	}
}

func TestTextsOfOthersChangeNoView(t *testing.T) {
	t.Parallel()
	hostile := []string{
		`<script>alert(1)</script><img src=x onerror=alert(1)>`, `"><a href="javascript:alert(1)">`, "a\x00\x1b[31m\u202egnp.exe\u2066", "خادم-الويب",
		strings.Repeat("long", 1<<18), "\xff\xfe", "' onmouseover='x", "</title></textarea><h1>",
	}
	s, objects := &source{}, &plane{}
	for i, bad := range hostile {
		object := trace.Object{Group: bad, Kind: bad, Namespace: bad, Name: bad}
		s.add(record(i+1, object, func(r *trace.Record) {
			r.Controller, r.Error, r.Outcome, r.Retries, r.After = bad, bad, trace.Failed, 9, time.Hour
			r.Causes = []trace.Cause{{Type: trace.Updated, Object: object, Changed: bad}}
			r.Writes[0].Changed, r.Writes[0].Error, r.Writes[0].Subresource = bad, bad, bad
		}), record(100+i, trace.Object{}, func(r *trace.Record) { r.Request = bad }))
		objects.history.Versions = append(objects.history.Versions, dashboard.Version{Revision: bad, Change: bad, Manager: bad, User: bad, Missing: []string{bad},
			Fields: []dashboard.Field{{Path: bad, Old: bad, New: bad}}, Conditions: []dashboard.Condition{{Type: bad, Status: bad, Reason: bad, Message: bad}}})
		objects.tree.Root.Children = append(objects.tree.Root.Children, dashboard.Node{Object: object, State: bad, Message: bad, NotReady: true, Blocked: true})
		objects.tree.Missing, objects.history.End = append(objects.tree.Missing, bad), bad
	}
	s.now.Trouble = hostile[0]
	page := dashboard.New(dashboard.Options{Title: hostile[0], Source: s, Objects: objects})
	ats := views()
	for i, bad := range hostile {
		ats = append(ats, "/objects?"+url.Values{"find": {bad}}.Encode(), fmt.Sprintf("/attempt?id=0000000000000007-%d", i+1), "/object?"+url.Values{"kind": {bad}, "name": {bad}, "view": {"tree"}}.Encode())
	}
	for _, at := range ats {
		answer := get(t, page, at)
		root, err := html.Parse(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		for n := range root.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			if n.Data == "img" || n.Data == "script" && attr(n, "src") != "/page.js" || n.Data == "h1" && n.Parent.Data != "main" {
				t.Errorf("%.80s has the element %s of a text", at, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || strings.HasPrefix(strings.TrimSpace(a.Val), "javascript:") {
					t.Errorf("%.80s has the attribute %s=%.40s of a text", at, a.Key, a.Val)
				}
			}
		}
		if got := text(root); strings.ContainsAny(got, "\x00\x1b\u202e\u2066") {
			t.Errorf("%.80s has characters that act", at)
		}
		for _, n := range all(root, "a") {
			if href := attr(n, "href"); len(href) > 4000 {
				t.Errorf("%.80s has a link of %d bytes", at, len(href))
			}
		}
	}
}

func TestViewsAreSmallWithVeryMuch(t *testing.T) {
	t.Parallel()
	var records []trace.Record
	for i := range 100_000 {
		change := func(r *trace.Record) { r.Outcome, r.After = trace.Requeued, time.Duration(i)*time.Second }
		if i%3 == 0 {
			change = fails(strings.Repeat("the server refused it because of its size; ", 10))
		}
		records = append(records, record(i+1, web(fmt.Sprint("an-object-with-a-name-of-usual-length-", i)), change))
	}
	for i := range 200 { // controllers
		records = append(records, record(200_000+i, web("x"), func(r *trace.Record) { r.Controller = fmt.Sprint("controller-", i) }))
	}
	page := dashboard.New(dashboard.Options{Source: dashboard.Recording(records, "A recording"), Keep: 200_000})
	assets := get(t, page, "/page.css").Body.Len() + get(t, page, "/page.js").Body.Len()
	for _, at := range []string{"/", "/objects", "/objects?from=50000", "/queue", "/object?group=example.com&kind=Web&namespace=default&name=x"} {
		if size := get(t, page, at).Body.Len() + assets; size > firstPaint {
			t.Errorf("%s is %d KiB with style and script, at most %d", at, size>>10, firstPaint>>10)
		}
	}
	if got := text(all(view(t, page, "/"), "main")[0]); !strings.Contains(got, "And 33314 more") {
		t.Errorf("the first view does not count what is left out:\n%.400s", got)
	}
}

func TestFortyThousandAttemptsArePagedByURL(t *testing.T) {
	t.Parallel()
	var records []trace.Record
	for i := range 40_000 {
		records = append(records, record(i+1, web("a"), nil))
	}
	page := dashboard.New(dashboard.Options{Source: dashboard.Recording(records, "A recording")})
	at, seen := "/object?group=example.com&kind=Web&namespace=default&name=a", 0
	for range 5 {
		answer := get(t, page, at)
		if size := answer.Body.Len(); size > firstPaint {
			t.Fatalf("%s is %d KiB", at, size>>10)
		}
		root, err := html.Parse(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(all(all(root, "tbody")[0], "tr"))
		older := slices.IndexFunc(all(root, "a"), func(n *html.Node) bool { return attr(n, "id") == "older" })
		if older < 0 {
			t.Fatalf("%s leads to no older ones", at)
		}
		at = attr(all(root, "a")[older], "href")
	}
	if seen != 300 {
		t.Errorf("five pages have %d attempts", seen)
	}
}

func TestATreeDrawsTheBlockedAndCountsTheRest(t *testing.T) {
	t.Parallel()
	objects := &plane{tree: dashboard.Tree{Root: dashboard.Node{Object: web("root"), Blocked: true}}}
	for i := range 1500 {
		child := dashboard.Node{Object: web(fmt.Sprint("child-", i))}
		if i == 1400 {
			child.Blocked, child.NotReady, child.Message = true, true, "it waits for its volume"
		}
		objects.tree.Root.Children = append(objects.tree.Root.Children, child)
	}
	page := dashboard.New(dashboard.Options{Source: dashboard.Recording(nil, "A recording"), Objects: objects})
	root := view(t, page, "/object?view=tree&group=example.com&kind=Web&namespace=default&name=root")
	tree := all(root, "main")[0]
	drawn := slices.DeleteFunc(all(tree, "li"), func(n *html.Node) bool { return attr(n.Parent.Parent, "class") == "tabs" })
	items := 0
	for _, n := range drawn {
		if len(all(n, "bdi")) > 0 {
			items++
		}
	}
	if items != 200 || !strings.Contains(text(tree), "1301 objects are left out") {
		t.Errorf("%d objects are drawn:\n%.300s", items, text(tree))
	}
	if got := text(all(tree, "ul")[2]); !strings.Contains(got[:min(len(got), 60)], "child-1400") || !strings.Contains(got, "it waits for its volume") {
		t.Errorf("the blocked one is not the first:\n%.200s", got)
	}
}

func TestAControlPlaneThatDoesNotAnswerIsSaid(t *testing.T) {
	t.Parallel()
	s, _ := some()
	of := "/object?group=example.com&kind=Web&namespace=default&name=b&view=history"
	page := dashboard.New(dashboard.Options{Source: s, Objects: &plane{err: errors.New("webs.example.com is forbidden")}})
	if got := text(all(view(t, page, of), "main")[0]); !strings.Contains(got, "did not answer") || !strings.Contains(got, "is forbidden") || !strings.Contains(got, "needs you") {
		t.Errorf("the view says:\n%s", got)
	}
	page = dashboard.New(dashboard.Options{Source: dashboard.Recording(nil, "A recording")})
	if got := text(all(view(t, page, of), "main")[0]); !strings.Contains(got, "not at hand") || !strings.Contains(got, "steer history web.example.com/b -n default") {
		t.Errorf("without a control plane the view says:\n%s", got)
	}
}

func TestThePageIsReadOnlyAndStrict(t *testing.T) {
	t.Parallel()
	page := dashboard.New(dashboard.Options{Source: dashboard.Recording(nil, "A recording")})
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		if answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s is %d", method, answer.Code)
		}
	}
	for _, at := range []string{"/", "/page.css", "/page.js", "/icon.svg", "/recording.jsonl", "/none"} {
		head := get(t, page, at).Header()
		if policy := head.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", at, policy)
		}
		if head.Get("X-Content-Type-Options") != "nosniff" || head.Get("Referrer-Policy") != "no-referrer" || head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s has the headers %v", at, head)
		}
	}
}

// stream follows the page until the returned function is called, which returns its events.
func stream(t *testing.T, page http.Handler) (stop func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	answer := httptest.NewRecorder()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		page.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/stream", nil))
	}()
	return func() []string {
		cancel()
		<-ended
		return strings.Split(strings.TrimSpace(answer.Body.String()), "\n\n")
	}
}

func TestAStreamTellsAtMostFourChangesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		page := dashboard.New(dashboard.Options{Source: s})
		one, other := stream(t, page), stream(t, page) // two tabs
		for i := range 1000 {
			s.add(record(i+1, web("a"), nil))
			time.Sleep(time.Millisecond)
		}
		for tab, events := range [][]string{one(), other()} {
			if len(events) < 4 || len(events) > 5 { // the first at once
				t.Errorf("tab %d has %d events in a second: %q", tab, len(events), events)
			}
		}
	})
}

func TestAStreamThatIsQuietStaysAliveAndEndsWithTheOperator(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		page := dashboard.New(dashboard.Options{Source: s})
		stop := stream(t, page)
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.now.Ended = "The operator has ended"
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		events := stop()
		if last := events[len(events)-1]; !strings.HasPrefix(last, "event: ended") {
			t.Errorf("the last event is %q", last)
		}
		if len(events) < 5 || len(events) > 20 {
			t.Errorf("a quiet minute has %d events", len(events))
		}
		if got := text(all(view(t, page, "/"), "header")[0]); !strings.Contains(got, "The operator has ended") {
			t.Errorf("the page says %q", got)
		}
	})
}

func TestARecordingCanBeSavedAndOpened(t *testing.T) {
	t.Parallel()
	s, _ := some()
	saved := get(t, dashboard.New(dashboard.Options{Source: s}), "/recording.jsonl")
	if lines := strings.Count(saved.Body.String(), "\n"); lines != 5 || !strings.Contains(saved.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("it has %d lines: %v", lines, saved.Header())
	}
}

func TestALiveRecorderIsReadOnceAndMissesAreSaid(t *testing.T) {
	t.Parallel()
	recorder := trace.NewRecorder(trace.Options{Budget: 1})
	page := dashboard.New(dashboard.Options{Source: dashboard.Live(recorder, func(int) []trace.Queued { return []trace.Queued{{Controller: "webs", AllReady: 4}} })})
	note := func(n int) {
		for range n {
			var a trace.Active
			recorder.Begin(&a, trace.Start{Controller: "webs", Object: web("a"), Began: time.Now()})
			a.End(trace.End{Outcome: trace.Done})
		}
	}
	note(3)
	if got := text(all(view(t, page, "/recording"), "main")[0]); !strings.Contains(got, "Records3") || !strings.Contains(got, "Missed0") {
		t.Errorf("the page says %q", got)
	}
	note(10_000)
	var open trace.Active
	recorder.Begin(&open, trace.Start{Controller: "webs", Object: web("running"), Began: time.Now().Add(-time.Hour)})
	first := text(all(view(t, page, "/"), "main")[0])
	if !strings.Contains(first, "were overwritten before they could be read") {
		t.Errorf("what was missed is not said: %.300s", first)
	}
	open.End(trace.End{Outcome: trace.Done})
}
