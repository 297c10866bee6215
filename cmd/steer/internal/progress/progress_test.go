// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// screen is what was written.
type screen struct {
	mu  sync.Mutex
	out strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// take returns what was written since the last call.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.out.Reset()
	return s.out.String()
}

func TestLineIsShownAfterASecondAndMakesWayForOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out screen
		line := start(&out, "testing", false)
		expect := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after) // virtual
			synctest.Wait()
			if got := out.take(); got != want {
				t.Errorf("after %s: %q, want %q", after, got, want)
			}
		}
		expect(999*time.Millisecond, "")
		expect(2*time.Millisecond, "\r\x1b[Ktesting  1s")
		expect(time.Second, "\r\x1b[Ktesting  2s")
		fmt.Fprintln(line.Writer(&out), "ok")
		fmt.Fprintln(line.Writer(&out), "ok")
		expect(0, "\r\x1b[Kok\nok\n")
		expect(time.Second, "\r\x1b[Ktesting  3s")
		fmt.Fprint(line.Writer(&out), "a line that ")
		expect(time.Second, "\r\x1b[Ka line that ")
		fmt.Fprintln(line.Writer(&out), "ends")
		expect(time.Second, "ends\n\r\x1b[Ktesting  5s")
		line.Stop()
		line.Stop()
		expect(time.Minute, "\r\x1b[K")
	})
}

func TestLineHasAStyleUnlessColoursAreOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out screen
		line := start(&out, "testing", true)
		time.Sleep(after) // virtual
		synctest.Wait()
		line.Stop()
		if got, want := out.take(), "\r\x1b[K\x1b[2mtesting  1s\x1b[0m\r\x1b[K"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestLineIsNotShownWithoutATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out screen
		line := Start(&out, "testing")
		fmt.Fprint(line.Writer(&out), "ok")
		time.Sleep(time.Minute) // virtual
		line.Stop()
		if got := out.take(); got != "ok" {
			t.Errorf("got %q", got)
		}
	})
}
