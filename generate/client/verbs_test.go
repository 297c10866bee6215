// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/generate/markers"
)

func TestVerbsFollowTheMarkers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  markers.Set
		want string
	}{
		"nothing said": {nil, strings.Join(every(), " ")},
		"no verbs":     {markers.Set{{Name: "genclient:noVerbs"}}, ""},
		"read only":    {markers.Set{{Name: "genclient:readonly"}}, "get list watch"},
		"read only and one more": {markers.Set{
			{Name: "genclient:readonly"}, {Name: "genclient:onlyVerbs", Data: verbs{"patch"}},
		}, "get list watch patch"},
		"some skipped": {markers.Set{{Name: "genclient:skipVerbs", Data: verbs{"update", "updateStatus", "delete", "deleteCollection", "apply", "applyStatus"}}}, "create get list watch patch"},
	} {
		can := verbsOf(test.set)
		got := slices.DeleteFunc(every(), func(verb string) bool { return !can[verb] })
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}

func TestMistakesInMethodsAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "needs a name",
		"Grow":                       "needs a verb",
		"Grow,verb=watch":            "cannot be a method",
		"Grow,verb=get,input=Scale":  "takes no input",
		"Grow,verb=get,subresorce=x": "unknown argument",
		"Grow,verb=":                 "has no value",
	} {
		var m method
		if err := m.ParseMarker("genclient:method", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	var v verbs
	if err := v.ParseMarker("genclient:onlyVerbs", "get,lst"); err == nil || !strings.Contains(err.Error(), `"lst"`) {
		t.Errorf("a verb that there is not: %v", err)
	}
}
