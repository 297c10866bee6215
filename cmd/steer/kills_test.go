// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Of every life: who loads the server, after how many acknowledged writes it is
// killed at most, and within which time it is killed while it starts.
const (
	killWriters  = 6
	killWatchers = 3
	killAfter    = 400
	killStart    = 300 * time.Millisecond
)

// A steer up is killed again and again, under load or while it starts. After each
// restart, every write that was acknowledged and every event that a watcher was
// shown is in the history, in order; nothing else is there but writes of which
// the outcome is unknown; and the revision has not gone back. STEER_KILLS is the
// number of processes to kill; 3 by default.
func TestNothingAcknowledgedIsLostWhenSteerUpIsKilled(t *testing.T) {
	t.Parallel()
	kills := killsFor(t)
	k := &killed{T: t, dir: filepath.Join(t.TempDir(), "new", "state"), rng: rand.New(rand.NewPCG(uint64(kills), 1))}
	for i := range k.keys {
		k.keys[i].name = fmt.Sprintf("kill-%d", i)
	}
	for ; k.life < kills; k.life++ {
		if k.life == 1 || k.rng.IntN(5) == 0 {
			k.killWhileItStarts()
			continue
		}
		k.live()
	}
	k.audit(k.start())
	k.process.kill()
	t.Logf("%d kills, %d acknowledged writes, %d events shown, revision %d, %d histories were compacted", kills, k.acked, k.shown, k.revision, k.compacted)
	if k.acked == 0 || k.shown == 0 {
		t.Error("nothing was written or shown: the load is too small for this machine")
	}
}

// What a first start had made when it was killed is completed by the next one.
func TestSteerUpStartsAfterAKillOfItsFirstStart(t *testing.T) {
	t.Parallel()
	for life := range max(2, killsFor(t)/5) {
		k := &killed{T: t, dir: filepath.Join(t.TempDir(), "new", "state"), rng: rand.New(rand.NewPCG(uint64(life), 2)), life: life}
		k.killWhileItStarts()
		k.audit(k.start())
		k.process.kill()
	}
}

func killsFor(t *testing.T) int {
	t.Helper()
	s := os.Getenv("STEER_KILLS")
	if s == "" {
		return 3
	}
	kills, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return kills
}

// killed is what the test knows of a data directory.
type killed struct {
	*testing.T
	dir  string
	rng  *rand.Rand
	life int
	// process is the one that runs.
	process *upProcess

	// revision is the newest that was shown, audited that of the last audit.
	revision, audited int
	keys              [killWriters]killedKey
	watched           [killWatchers][]killedEvent

	acked, shown, compacted int
}

// killedKey is an object with one writer. Its writes are numbered: every seventh
// is a deletion, the others leave their number in the object.
type killedKey struct {
	name string
	// applied is the last write of which the audit has found the event.
	applied int
	// acked is the last write that was acknowledged, tried the last one that was
	// sent.
	acked, tried int
	version      string // of the object, if it exists
}

// killedEvent is an event of a watch.
type killedEvent struct {
	kind, name string
	n          int // the number in the object
	revision   int
}

// upProcess is a steer up of its own.
type upProcess struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
}

func (p *upProcess) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // it was killed
}

func (k *killed) failf(format string, args ...any) {
	k.Helper()
	k.process.kill()
	k.Fatalf("life %d: %s", k.life, fmt.Sprintf(format, args...))
}

// begin starts the process, which is killed when ctx ends.
func (k *killed) begin(ctx context.Context) io.Reader {
	cmd := exec.CommandContext(ctx, "steer", "up", "--data-dir", k.dir, "--listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		k.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	k.process = &upProcess{cmd: cmd}
	return out
}

// start starts the process and returns once it is up.
func (k *killed) start() *upProcess {
	out := k.begin(context.Background())
	p := k.process
	for lines := bufio.NewScanner(out); !strings.Contains(lines.Text(), "Stop it with"); {
		if !lines.Scan() {
			k.failf("steer up does not start again")
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(k.dir, "kubeconfig"))
	if err != nil {
		k.failf("%v", err)
	}
	if p.client, err = rest.HTTPClientFor(config); err != nil {
		k.failf("%v", err)
	}
	p.url = config.Host + "/api/v1/namespaces/default/configmaps"
	return p
}

// killWhileItStarts kills the process within the time that a start takes.
func (k *killed) killWhileItStarts() {
	ctx, cancel := context.WithTimeout(k.Context(), time.Duration(k.rng.Int64N(int64(killStart))))
	defer cancel()
	k.begin(ctx)
	if err := k.process.cmd.Wait(); ctx.Err() == nil {
		k.failf("steer up ended while it started: %v", err)
	}
}

// live starts the process, audits what is there, and kills it under load.
func (k *killed) live() {
	p := k.start()
	k.audit(p)
	ctx, cancel := context.WithCancel(k.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range k.watched {
		wg.Go(func() {
			// It ends with the connection.
			_ = p.watch(ctx, k.audited, func(e killedEvent) bool { k.watched[i] = append(k.watched[i], e); return true })
		})
	}
	acks, ended := make(chan bool), make(chan struct{})
	for i := range k.keys {
		wg.Go(func() {
			for more := true; more; {
				more = p.write(ctx, &k.keys[i], k.Errorf, ended)
				select {
				case acks <- more:
				case <-ended:
				}
			}
		})
	}
	for range k.rng.IntN(killAfter) {
		if !<-acks {
			break // told already
		}
	}
	close(ended)
	p.kill()
	cancel()
	wg.Wait()
	for i := range k.keys {
		k.acked += max(0, k.keys[i].acked-k.keys[i].applied)
	}
	for _, events := range k.watched {
		k.shown += len(events)
		for _, e := range events {
			k.revision = max(k.revision, e.revision)
		}
	}
}

// write makes the next write of a key, and reports whether there may be another.
// Once ended is closed, the outcome of a write may be unknown.
func (p *upProcess) write(ctx context.Context, key *killedKey, errorf func(string, ...any), ended <-chan struct{}) bool {
	key.tried++
	method, url, body := http.MethodPut, p.url+"/"+key.name, ""
	switch {
	case key.tried%7 == 0:
		method = http.MethodDelete
	case key.version == "":
		method, url = http.MethodPost, p.url
	}
	if method != http.MethodDelete {
		body = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"resourceVersion":%q},"data":{"n":"%d","more":%q}}`,
			key.name, key.version, key.tried, strings.Repeat("x", 100+key.tried*370%20000))
	}
	status, answer, err := p.do(ctx, method, url, body)
	if err == nil && status/100 != 2 {
		errorf("%s %s: %d: %s", method, url, status, answer)
		return false
	}
	if err != nil {
		select {
		case <-ended:
		default:
			errorf("%s %s: %v", method, url, err)
		}
		return false
	}
	key.acked = key.tried
	key.version = ""
	if method != http.MethodDelete {
		var object killedObject
		if err := json.Unmarshal(answer, &object); err != nil {
			errorf("%s %s: %v", method, url, err)
			return false
		}
		key.version = object.Metadata.ResourceVersion
	}
	return true
}

// do sends a request and reads the whole answer.
func (p *upProcess) do(ctx context.Context, method, url, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// killedObject is what the test reads of a ConfigMap or a list of them.
type killedObject struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data struct {
		N string `json:"n"`
	} `json:"data"`
	Code  int            `json:"code"` // of a Status
	Items []killedObject `json:"items"`
}

var errCompacted = errors.New("the history has been compacted")

// watch follows the objects of the test until see returns false or the watch ends.
func (p *upProcess) watch(ctx context.Context, after int, see func(killedEvent) bool) error {
	url := fmt.Sprintf("%s?watch=1&resourceVersion=%d", p.url, after)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusGone {
		return errCompacted
	}
	for decoder := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   string       `json:"type"`
			Object killedObject `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		if event.Type == "ERROR" {
			if event.Object.Code == http.StatusGone {
				return errCompacted
			}
			return fmt.Errorf("error event %d", event.Object.Code)
		}
		e := killedEvent{kind: event.Type, name: event.Object.Metadata.Name}
		if e.revision, err = strconv.Atoi(event.Object.Metadata.ResourceVersion); err != nil {
			return err
		}
		if strings.HasPrefix(e.name, "kill-") {
			if e.n, err = strconv.Atoi(event.Object.Data.N); err != nil {
				return err
			}
			if !see(e) {
				return nil
			}
		}
	}
}
