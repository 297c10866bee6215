// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOutcomesAreParsed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Outcome{
		"app=web: ready after 2s":                        {Selector: "app=web", Fate: Ready, After: 2 * time.Second},
		"app=web,track!=canary @shop: crash loop":        {Selector: "app=web,track!=canary", Namespace: "shop", Fate: CrashLoop},
		"app.kubernetes.io/name in (a, b): never":        {Selector: "app.kubernetes.io/name in (a, b)", Fate: Never},
		"job=x: fail with 42 after 5s":                   {Selector: "job=x", Fate: Fail, ExitCode: 42, After: 5 * time.Second},
		": unschedulable":                                {Fate: Unschedulable},
		"@shop:fail after 1m":                            {Namespace: "shop", Fate: Fail, After: time.Minute},
		"  job-name = x  :  complete   after   100ms   ": {Selector: "job-name = x", Fate: Complete, After: 100 * time.Millisecond},
	} {
		got, err := ParseOutcome(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestOutcomesThatAreInvalidAreExplained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"app=web":                    "there is no colon between the Pods and their fate",
		"app=web:":                   "the fate is missing",
		"app=web: happy":             `unknown fate "happy": choose ready, crash-loop, never, unschedulable, complete or fail`,
		"app=web: ready after while": `"while" is no duration`,
		"app=web: ready after -2s":   "it comes 2s before the start",
		"app==: never":               "",
		"app~web: never":             `selector "app~web"`,
		"app=web @Shop: never":       `"Shop" is no namespace`,
		"app=web: fail with luck":    `"luck" is no exit code of a failure`,
		"app=web: fail with 0":       `"0" is no exit code of a failure`,
		"app=web: fail with 256":     `exit code 256 of fate "fail": choose one from 1 to 255`,
		"app=web: ready with 1":      "for fail or crash-loop",
	} {
		_, err := ParseOutcome(text)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "write it as SELECTOR") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
