// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package walkthrough

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// page makes a page of text in which ”' stands for a fence.
func page(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "'''", "```")), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// play plays a page in a folder of its own, and returns the folder.
func play(t *testing.T, text string) (string, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("pages are played by bash")
	}
	dir := t.TempDir()
	return dir, Play(t.Context(), Options{Dir: dir, Out: &bytes.Buffer{}}, page(t, text))
}

func TestReadFindsTheKindOfEachBlock(t *testing.T) {
	t.Parallel()
	blocks, err := Read(page(t, `# A page
'''
plain
'''
<!-- file: a/b.go -->
'''go
package b
'''
<!-- file: not.above -->

'''console
$ one
out
$ two
'''
<!-- fails: 3 -->
'''console
$ three
'''
<!-- terminal: dev -->
'''console
$ four
'''
<!-- end: dev -->
<!-- output -->
'''text
five
'''
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range blocks {
		got = append(got, strings.TrimSpace(string(b.Kind)+" "+b.Name))
	}
	if want := []string{"plain", "file a/b.go", "console", "console", "terminal dev", "end dev", "output"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if blocks[3].Status != 3 {
		t.Errorf("status %d, want 3", blocks[3].Status)
	}
	want := []Command{{Line: 12, Text: "one", Shown: []string{"out"}}, {Line: 14, Text: "two"}}
	if got := blocks[2].Commands(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReadRefusesAPageThatCannotBePlayed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"'''go\npackage a\n", "<!-- file -->\n'''go\n'''\n", "<!-- fails: often -->\n'''console\n'''\n", "<!-- fails: 0 -->\n'''console\n'''\n"} {
		if blocks, err := Read(page(t, text)); err == nil {
			t.Errorf("%q: %+v", text, blocks)
		}
	}
}

func TestCompareLeavesOutWhatDiffersBetweenRuns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		shown, printed string
		same           bool
	}{
		{"ok  \tpkg\t0.4s", "ok  pkg (cached)\n", true},
		{"ready in 15ms", "ready in 1m2.5s\n", true},
		{"- \ta: 1", "-\u00a0\ta:\u00a01\n", true},
		{"time=2026-01-02T03:04:05.678Z a", "time=2027-11-12T13:14:15Z a\n", true},
		{"a", "go: downloading example.com/a v1\na\n", true},
		{"a ... c", "a b c\n", true},
		{"a\n...\nd", "a\nb\nc\nd\n", true},
		{"...\nd", "d\n", true},
		{"a\n...", "a\nb\n", true},
		{"a", "a\nb\n", false},
		{"b", "a\nb\n", false},
		{"want 2", "want 3\n", false},
		{"a ... c", "a b\nc\n", false},
		{"a", "", false},
	} {
		if err := compare(strings.Split(row.shown, "\n"), row.printed); (err == nil) != row.same {
			t.Errorf("%q and %q: %v", row.shown, row.printed, err)
		}
	}
}

func TestEditChangesLinesThatAreThereOnce(t *testing.T) {
	t.Parallel()
	const text = "a\nb\nc\n\td\nc\n"
	got, err := edit(text, []string{" a", "-b", "+x", "+y", " c"})
	if want := "a\nx\ny\nc\n\td\nc\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, diff := range [][]string{{"-c", "+x"}, {"-e"}, {"+x"}, {"x"}} {
		if got, err := edit(text, diff); err == nil {
			t.Errorf("%q: %q", diff, got)
		}
	}
}

func TestPlayRunsAPage(t *testing.T) {
	t.Parallel()
	dir, err := play(t, `
'''console
$ mkdir town && cd town
'''
<!-- file: sub/sign -->
'''text
bread
tea
'''
<!-- edit: sub/sign -->
'''diff
-bread
+cake
 tea
'''
'''console
$ export SHOP=bakery
$ cat sub/sign; echo $SHOP
cake
tea
bakery
'''
<!-- fails: 1 -->
'''console
$ cat none
cat: ...
'''
<!-- terminal: later -->
'''console
$ bash -c 'echo started; until [ -e go ]; do read -t 0.05 <> <(:) || :; done; echo went on; until [ -e never ]; do read -t 0.05 <> <(:) || :; done'
started
'''
'''console
$ touch go
'''
<!-- terminal: later -->
'''console
went on
'''
<!-- end: later -->
`)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "town", "sub", "sign")); err != nil || string(data) != "cake\ntea\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestTerminalTakesEachLineOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	term := &terminal{shown: map[int]bool{}}
	if rest := term.take([]string{"built in 1s", "...", "started ..."}, "started one\nbuilt in 2s\nbuil"); len(rest) != 0 {
		t.Errorf("left %q", rest)
	}
	again := []string{"built in 1s"}
	if rest := term.take(again, "started one\nbuilt in 2s\nbuilt in 3s"); !reflect.DeepEqual(rest, again) {
		t.Errorf("left %q, want %q", rest, again)
	}
	if rest := term.take(again, "started one\nbuilt in 2s\nbuilt in 3s\n"); len(rest) != 0 {
		t.Errorf("left %q", rest)
	}
}

func TestPlayStopsWhereThePageIsWrong(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"exit status 1, want 0": "'''console\n$ false\n'''\n",
		"exit status 0, want 1": "<!-- fails: 1 -->\n'''console\n$ true\n'''\n",
		"the page shows":        "'''console\n$ echo tea\nbread\n'''\n",
		"not in it":             "'''console\n$ echo tea >sign\n'''\n<!-- edit: sign -->\n'''diff\n-bread\n'''\n",
		"has no end":            "<!-- terminal: a -->\n'''console\n$ sleep 600\n'''\n",
		"no terminal a runs":    "<!-- end: a -->\n",
		"the session ended":     "'''console\n$ exit 3\n'''\n",
	} {
		if _, err := play(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestPlayThatIsCancelledEndsWhatRuns(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("pages are played by bash")
	}
	dir := t.TempDir()
	if err := exec.Command("mkfifo", filepath.Join(dir, "up")).Run(); err != nil {
		t.Fatal(err)
	}
	name := page(t, "<!-- terminal: a -->\n'''console\n$ sh -c 'exec sleep 600 >up'\n'''\n'''console\n$ sleep 600\n'''\n<!-- end: a -->\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	played := make(chan error, 1)
	go func() { played <- Play(ctx, Options{Dir: dir, Out: &bytes.Buffer{}}, name) }()
	up, err := os.Open(filepath.Join(dir, "up")) // when the terminal opens it, too
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	cancel()
	if err := <-played; err == nil {
		t.Error("no error")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := up.Read(make([]byte, 1))
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the terminal goes on")
	}
}

func TestPlayWithoutServerLeavesOutWhatNeedsOne(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("pages are played by bash")
	}
	name := page(t, "<!-- terminal: a -->\n'''console\n$ false\n'''\n'''console\n$ kubectl get shops\n$ go tool steer why shop/bakery\n$ touch here\n'''\n<!-- end: a -->\n")
	dir := t.TempDir()
	if err := Play(t.Context(), Options{Dir: dir, Out: &bytes.Buffer{}, WithoutServer: true}, name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "here")); err != nil {
		t.Error(err)
	}
}
