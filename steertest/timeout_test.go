// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"strings"
	"testing"
	"time"
)

func TestTimeoutOfTheEnvironmentGoesBeforeTheOptionInRealTime(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		option, virtual   time.Duration
		variable          string
		want, wantVirtual time.Duration
	}{
		{0, 0, "", 30 * time.Second, 30 * time.Second},
		{time.Second, 0, "", time.Second, time.Second},
		{0, 0, "1h", time.Hour, 30 * time.Second},
		{time.Second, time.Minute, "1h", time.Hour, time.Minute},
		{0, time.Minute, "", 30 * time.Second, time.Minute},
	} {
		o := Options{Timeout: test.option, VirtualTimeout: test.virtual}
		if got, err := o.timeout(false, test.variable); err != nil || got != test.want {
			t.Errorf("%+v: got %s, %v", test, got, err)
		}
		if got, err := o.timeout(true, test.variable); err != nil || got != test.wantVirtual {
			t.Errorf("%+v: got %s in virtual time, %v", test, got, err)
		}
	}
	for _, variable := range []string{"off", "-1s", "0"} {
		if _, err := (&Options{}).timeout(false, variable); err == nil || !strings.Contains(err.Error(), "STEERTEST_TIMEOUT is") {
			t.Errorf("%q: %v", variable, err)
		}
	}
}
