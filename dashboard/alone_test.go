// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/steer-dev/steer/dashboard"
)

// TestAPlaneAloneShowsItsObjects, and says that no operator runs there.
func TestAPlaneAloneShowsItsObjects(t *testing.T) {
	t.Parallel()
	objects := &plane{list: dashboard.List{Missing: []string{"secrets: there is no right to list them"}}}
	objects.list.Nodes = append(objects.list.Nodes, dashboard.Node{Object: web("broken"), NotReady: true, State: "Ready=False", Message: "the registry refused the image"})
	for i := range 99_999 {
		objects.list.Nodes = append(objects.list.Nodes, dashboard.Node{Object: web(fmt.Sprint("web-", i)), State: "Ready=True", Created: time.Unix(int64(i), 0)})
	}
	page := dashboard.New(dashboard.Options{Title: "Control plane", Objects: objects})
	main := all(view(t, page, "/"), "main")[0]
	for _, want := range []string{"No operator runs here", "steer dev", "Not ready 1 of 100000 objects", "the registry refused the image", "secrets: there is no right to list them"} {
		if !strings.Contains(text(main), want) {
			t.Errorf("the first view does not say %q:\n%s", want, text(main))
		}
	}
	if to := attr(all(main, "a")[0], "href"); !strings.Contains(to, "name=broken") || !strings.Contains(to, "view=tree") {
		t.Errorf("its first link leads to %s", to)
	}
	for at, want := range map[string][]string{
		"/objects": {"Web default/broken", "Web default/web-0"}, "/objects?from=100": {"Web default/web-99"}, "/objects?find=none": nil,
		"/objects?find=Web-4242": {"Web default/web-4242", "Web default/web-42420"}, "/objects?find=EXAMPLE.com&from=99999": {"Web default/web-99998"}, "/objects?from=x": {"Web default/broken"},
	} {
		answer := get(t, page, at)
		if n := answer.Body.Len(); n > firstPaint {
			t.Errorf("%s has %d bytes", at, n)
		}
		root, err := html.Parse(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range all(root, "th") {
			if attr(n, "scope") == "row" {
				got = append(got, text(n))
			}
		}
		if len(got) < len(want) || len(want) == 0 && len(got) > 0 || strings.Join(got[:len(want)], ",") != strings.Join(want, ",") {
			t.Errorf("%s begins with %q, want %q", at, got[:min(len(got), 3)], want)
		}
	}
	for _, at := range []string{"/queue", "/recording"} {
		if got := text(all(view(t, page, at), "main")[0]); !strings.Contains(got, "No operator runs here") {
			t.Errorf("%s says %s", at, got)
		}
	}
	object := all(view(t, page, "/object?group=example.com&kind=Web&namespace=default&name=web-1"), "main")[0]
	if tabs := text(all(object, "nav")[0]); tabs != "HistoryConditionsTree" || !strings.Contains(text(object), "No version is known") {
		t.Errorf("an object has the tabs %s:\n%s", tabs, text(object))
	}
	objects.err = errors.New("connection refused")
	if got := text(view(t, page, "/objects")); !strings.Contains(got, "The control plane did not answer") || !strings.Contains(got, "connection refused") {
		t.Errorf("without a control plane it says %s", got)
	}
	objects.list, objects.err = dashboard.List{}, nil
	if got := text(view(t, page, "/objects")); !strings.Contains(got, "There are no objects") {
		t.Errorf("without objects it says %s", got)
	}
}
