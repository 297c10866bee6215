// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"strings"
	"testing"
	"time"
)

func TestTimeoutOfTheEnvironmentGoesBeforeTheOption(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		option   time.Duration
		variable string
		want     time.Duration
	}{
		{0, "", 30 * time.Second},
		{time.Second, "", time.Second},
		{0, "1h", time.Hour},
		{time.Second, "1h", time.Hour},
	} {
		if got, err := timeoutOf(test.option, test.variable); err != nil || got != test.want {
			t.Errorf("%s, %q: got %s, %v", test.option, test.variable, got, err)
		}
	}
	for _, variable := range []string{"off", "-1s", "0"} {
		if _, err := timeoutOf(0, variable); err == nil || !strings.Contains(err.Error(), "STEERTEST_TIMEOUT is") {
			t.Errorf("%q: %v", variable, err)
		}
	}
}
