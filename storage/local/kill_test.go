// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

// victimDir names the data directory for a process that will be killed.
const victimDir = "STEER_VICTIM_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		if err := victim(dir, os.Getenv("STEER_VICTIM_LIFE")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const victimWriters = 8

// victim writes and watches until it is killed, and prints every acknowledgement and
// event. The n-th write of a writer has the value n; every seventh is a deletion.
func victim(dir, life string) error {
	s, err := local.Open(dir, local.Options{CheckpointBytes: 256 << 10})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	v, err := s.View(context.Background(), 0)
	if err != nil {
		return err
	}
	c, err := s.Watch(storage.Range{}, v.Revision())
	if err != nil {
		return err
	}
	failed := make(chan error)
	go func() {
		for {
			b, err := c.Next(context.Background())
			if err != nil {
				failed <- err
				return
			}
			say("seen %d", b.Revision)
		}
	}()
	for w := range victimWriters {
		go func() {
			for n := 1; ; n++ {
				write := storage.Write{Key: victimKey(life, w), Expect: storage.AnyRevision}
				if n%7 != 0 {
					write.Value = fmt.Appendf(nil, "%d %0*d", n, 100+n*37%900, 0)
				}
				rec, err := s.Commit(context.Background(), write)
				if err != nil {
					failed <- err
					return
				}
				say("acked %d %d %d", w, n, rec.Modified)
			}
		}()
	}
	return <-failed
}

func victimKey(life string, writer int) storage.Key {
	return storage.Key{Bucket: "b", Name: fmt.Sprint(life, "/", writer)}
}

// STEER_KILLS sets the number of processes to kill; 20 by default.
func TestNothingAcknowledgedIsLostInKills(t *testing.T) {
	t.Parallel()
	kills := 20
	if s := os.Getenv("STEER_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(kills), 3))
	acked := map[storage.Key]int{}
	var shown storage.Revision
	for life := range kills {
		shown = max(shown, runVictim(t, dir, fmt.Sprint(life), 1+rng.IntN(1500), acked))
		// Every other time, the next process recovers what this one left.
		if rng.IntN(2) == 0 || life == kills-1 {
			s := openIn(t, dir)
			v, err := s.View(context.Background(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if v.Revision() < shown {
				t.Fatalf("life %d: recovered revision %d, but %d was shown", life, v.Revision(), shown)
			}
			for k, n := range acked {
				checkVictim(t, v, k, n)
			}
			s.Close()
		}
	}
	t.Logf("%d kills, %d revisions", kills, shown)
}

// checkVictim checks that the newest write of a key is the last acknowledged one, or
// the one after it.
func checkVictim(t *testing.T, v storage.View, k storage.Key, acked int) {
	t.Helper()
	rec := v.Get(k)
	if rec == nil {
		if acked%7 != 0 && (acked+1)%7 != 0 {
			t.Fatalf("%s does not exist, but write %d was acknowledged", k, acked)
		}
		return
	}
	text, _, _ := strings.Cut(string(rec.Value), " ")
	if text != strconv.Itoa(acked) && text != strconv.Itoa(acked+1) {
		t.Fatalf("%s has the value of write %s, but write %d was acknowledged", k, text, acked)
	}
}

// runVictim starts a process and kills it after a number of lines. It returns the
// newest revision that it printed.
func runVictim(t *testing.T, dir, life string, lines int, acked map[storage.Key]int) (shown storage.Revision) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir, "STEER_VICTIM_LIFE="+life)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	said := 0
	for ; scanner.Scan(); said++ {
		if said == lines {
			cmd.Process.Kill()
		}
		var writer, n int
		var rev storage.Revision
		line := scanner.Text()
		if _, err := fmt.Sscanf(line, "acked %d %d %d", &writer, &n, &rev); err == nil {
			acked[victimKey(life, writer)] = n
		} else if _, err := fmt.Sscanf(line, "seen %d", &rev); err != nil {
			t.Fatalf("the victim said %q", line)
		}
		shown = max(shown, rev)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if said < lines {
		t.Fatalf("the victim ended after %d of %d lines", said, lines)
	}
	return shown
}
