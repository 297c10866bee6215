// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// Tab is one of a browser. Its methods are called one at a time.
type Tab struct {
	browser         *Browser
	session, target string

	mu         sync.Mutex
	complaints []string
	bytes      int
}

// Tab opens a tab. One that is apart shares no cookies with others.
func (b *Browser) Tab(ctx context.Context, apart bool) (*Tab, error) {
	create := map[string]any{"url": "about:blank"}
	if apart {
		var of struct{ BrowserContextID string }
		if err := b.call(ctx, "", "Target.createBrowserContext", nil, &of); err != nil {
			return nil, err
		}
		create["browserContextId"] = of.BrowserContextID
	}
	var target struct{ TargetID string }
	if err := b.call(ctx, "", "Target.createTarget", create, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	t := &Tab{browser: b, session: attached.SessionID, target: target.TargetID}
	b.mu.Lock()
	b.sessions[t.session] = t
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Performance"} {
		if err := t.call(ctx, domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return t, t.Size(ctx, 1280, 800)
}

// Close closes the tab.
func (t *Tab) Close(ctx context.Context) error {
	t.browser.mu.Lock()
	delete(t.browser.sessions, t.session)
	t.browser.mu.Unlock()
	return t.browser.call(ctx, "", "Target.closeTarget", map[string]any{"targetId": t.target}, nil)
}

func (t *Tab) call(ctx context.Context, method string, params, result any) error {
	return t.browser.call(ctx, t.session, method, params, result)
}

// event notes what a page must not do, and what it fetched.
func (t *Tab) event(m *message) {
	var p struct {
		Type             string
		Message          string
		ExceptionDetails json.RawMessage
		Entry            struct{ Level, Source, Text, URL string }
		EncodedLength    float64 `json:"encodedDataLength"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return // an event of another form
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case m.Method == "Page.javascriptDialogOpening":
		t.complaints = append(t.complaints, "a dialog: "+p.Message)
	case m.Method == "Runtime.exceptionThrown":
		t.complaints = append(t.complaints, "an exception: "+string(p.ExceptionDetails))
	case m.Method == "Runtime.consoleAPICalled":
		t.complaints = append(t.complaints, "console."+p.Type+": "+string(m.Params))
	case m.Method == "Log.entryAdded" && p.Entry.Level == "error":
		t.complaints = append(t.complaints, p.Entry.Source+": "+p.Entry.Text+" "+p.Entry.URL)
	case m.Method == "Network.loadingFinished":
		t.bytes += int(p.EncodedLength)
	}
}

// Complaints are the errors, dialogs and lines of the console since the last call.
func (t *Tab) Complaints() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.complaints
	t.complaints = nil
	return all
}

// Received is how many bytes were received since the last call, with headers, as they were sent.
func (t *Tab) Received() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.bytes
	t.bytes = 0
	return n
}

// Go opens a URL, and waits until it is loaded.
func (t *Tab) Go(ctx context.Context, url string) error {
	var went struct{ ErrorText string }
	if err := t.call(ctx, "Page.navigate", map[string]any{"url": url}, &went); err != nil {
		return err
	}
	if went.ErrorText != "" {
		return fmt.Errorf("%s: %s", url, went.ErrorText)
	}
	return t.Until(ctx, `document.readyState === "complete"`)
}

// Eval evaluates an expression, waits for its promise if it is one, and decodes its value.
func (t *Tab) Eval(ctx context.Context, expression string, value any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := t.call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	switch {
	case err != nil:
		return err
	case got.ExceptionDetails != nil:
		return fmt.Errorf("%.100s: %s %s", expression, got.ExceptionDetails.Text, got.ExceptionDetails.Exception.Description)
	case value == nil || len(got.Result.Value) == 0:
		return nil
	}
	return json.Unmarshal(got.Result.Value, value)
}

// Until waits until an expression is true, in this document or one that takes its place.
func (t *Tab) Until(ctx context.Context, expression string) error {
	const ask = `new Promise((yes) => { const look = () => { try { if (%s) return yes(true); } catch {} setTimeout(look, 20); }; look(); })`
	for {
		var holds bool
		err := t.Eval(ctx, fmt.Sprintf(ask, expression), &holds)
		switch {
		case err == nil && holds:
			return nil
		case ctx.Err() != nil:
			var now struct{ URL, Text string }
			_ = t.Eval(context.WithoutCancel(ctx), `({URL: location.href, Text: document.body.innerText.slice(0, 800)})`, &now) // it tells more, if it answers
			return fmt.Errorf("it does not come that %s; %s says:\n%s", expression, now.URL, now.Text)
		case err != nil && !gone(err):
			return err
		}
	}
}

// gone reports that another document has taken the place of the one that was asked.
func gone(err error) bool {
	for _, text := range []string{"context was destroyed", "Inspected target navigated", "Cannot find context", "Promise was collected", "No frame"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// Press presses a key: a character, or Enter, Tab, Escape, End, Home, PageDown.
func (t *Tab) Press(ctx context.Context, keys ...string) error {
	codes := map[string]int{"Enter": 13, "Tab": 9, "Escape": 27, "End": 35, "Home": 36, "PageDown": 34}
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		switch code, named := codes[key]; {
		case named:
			down["windowsVirtualKeyCode"], down["code"] = code, key
			if key == "Enter" {
				down["text"] = "\r"
			}
		case utf8.RuneCountInString(key) == 1:
			down["text"] = key
		default:
			return fmt.Errorf("no key %q", key)
		}
		if err := t.call(ctx, "Input.dispatchKeyEvent", down, nil); err != nil {
			return err
		}
		if err := t.call(ctx, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Click clicks with the mouse on the element of an expression. It is an error if the element
// is not there, or if something covers it.
func (t *Tab) Click(ctx context.Context, element string) error {
	var at struct {
		X, Y  float64
		Wrong string
	}
	err := t.Eval(ctx, `(() => {
		const e = `+element+`;
		if (!e) return {Wrong: "is not there"};
		e.scrollIntoView({block: "center", behavior: "instant"});
		const r = e.getClientRects()[0];
		if (!r) return {Wrong: "cannot be seen"};
		const X = r.x + r.width / 2, Y = r.y + r.height / 2, top = document.elementFromPoint(X, Y);
		return e.contains(top) ? {X, Y} : {Wrong: "is covered by " + (top && top.outerHTML.slice(0, 100))};
	})()`, &at)
	if err != nil {
		return err
	}
	if at.Wrong != "" {
		return fmt.Errorf("%s %s", element, at.Wrong)
	}
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		event := map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}
		if kind == "mouseMoved" {
			event["button"], event["clickCount"] = "none", 0
		}
		if err := t.call(ctx, "Input.dispatchMouseEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}

// Scroll turns the wheel over the middle of the window.
func (t *Tab) Scroll(ctx context.Context, down int) error {
	return t.call(ctx, "Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": 600, "y": 400, "deltaX": 0, "deltaY": down}, nil)
}

// Size sets the size of the window, in CSS pixels.
func (t *Tab) Size(ctx context.Context, width, height int) error {
	return t.call(ctx, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Theme is dark, or light.
func (t *Tab) Theme(ctx context.Context, dark bool) error {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return t.call(ctx, "Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Picture is what the window shows, as PNG.
func (t *Tab) Picture(ctx context.Context) ([]byte, error) {
	var shot struct{ Data []byte }
	err := t.call(ctx, "Page.captureScreenshot", map[string]any{"format": "png", "optimizeForSpeed": false}, &shot)
	return shot.Data, err
}

// Metrics are figures of the page, such as JSHeapUsedSize and Nodes, once garbage is collected.
func (t *Tab) Metrics(ctx context.Context) (map[string]float64, error) {
	var got struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	if err := errors.Join(t.call(ctx, "HeapProfiler.collectGarbage", nil, nil), t.call(ctx, "Performance.getMetrics", nil, &got)); err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	for _, m := range got.Metrics {
		figures[m.Name] = m.Value
	}
	return figures, nil
}

// Faster makes timers of pages that are opened from now on so many times as fast.
func (t *Tab) Faster(ctx context.Context, times int) error {
	script := fmt.Sprintf(`{ const slow = setInterval; window.setInterval = (f, ms) => slow(f, ms / %d); }`, times)
	return t.call(ctx, "Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}
