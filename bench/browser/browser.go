// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser drives Chromium by its DevTools protocol, over a pipe: no port, no Node, no
// library. It has what a walk through a page needs: tabs, keys, the mouse, pictures, figures.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"github.com/steer-dev/steer/internal/children"
)

// Find returns the program of Chromium: $STEER_CHROMIUM, or what the PATH has.
func Find() (string, error) {
	if name := os.Getenv("STEER_CHROMIUM"); name != "" {
		return exec.LookPath(name)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: install it (apt-get install chromium), or set STEER_CHROMIUM to its program")
}

// Browser is a Chromium without a window. It is safe for concurrent use.
type Browser struct {
	child   *children.Child
	profile string
	ended   chan struct{}
	next    atomic.Int64

	writing sync.Mutex
	to      io.WriteCloser

	mu       sync.Mutex
	calls    map[int64]chan<- message
	sessions map[string]*Tab
	broken   error
}

// message is an answer or an event of the protocol.
type message struct {
	ID      int64           `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser with an empty profile. Close ends it.
func Start(program string) (*Browser, error) {
	profile, err := os.MkdirTemp("", "steer-browser-")
	if err != nil {
		return nil, err
	}
	ours, theirs, err := pipes()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	// Root has no sandbox, and its pages are those of the machine alone.
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--force-color-profile=srgb",
		"--enable-precise-memory-info", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = theirs // it reads 3 and writes 4
	child, err := children.Start(cmd)
	for _, file := range theirs {
		_ = file.Close() // the browser has it
	}
	if err != nil {
		return nil, errors.Join(err, ours[0].Close(), ours[1].Close(), os.RemoveAll(profile))
	}
	b := &Browser{child: child, profile: profile, to: ours[1], ended: make(chan struct{}), calls: map[int64]chan<- message{}, sessions: map[string]*Tab{}}
	go func() {
		defer close(b.ended)
		b.read(ours[0])
		_ = ours[0].Close() // it was read to its end
	}()
	return b, nil
}

// pipes returns our ends, to read and to write, and those of the browser.
func pipes() (ours, theirs []*os.File, err error) {
	read, written, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	asked, ask, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, read.Close(), written.Close())
	}
	return []*os.File{read, ask}, []*os.File{asked, written}, nil
}

// Close ends the browser.
func (b *Browser) Close() error {
	b.child.Kill()
	_ = b.child.Wait() // it was killed
	<-b.ended
	return errors.Join(b.to.Close(), os.RemoveAll(b.profile))
}

// read hands answers and events on until the browser ends.
func (b *Browser) read(from io.Reader) {
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			b.fail(errors.New("the browser has ended"))
			return
		}
		var m message
		if err := json.Unmarshal(bytes.TrimRight(text, "\x00"), &m); err != nil {
			b.fail(fmt.Errorf("the browser sends what is no message: %w", err))
			return
		}
		b.mu.Lock()
		answer, tab := b.calls[m.ID], b.sessions[m.Session]
		delete(b.calls, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && answer != nil:
			answer <- m
		case m.ID == 0 && tab != nil:
			tab.event(&m)
		}
	}
}

// fail ends all calls.
func (b *Browser) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
	for _, answer := range b.calls {
		close(answer)
	}
	b.calls = nil
}

// call asks for a method, and decodes the answer into result, unless that is nil.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	id := b.next.Add(1)
	text, err := json.Marshal(struct {
		ID      int64  `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{id, session, method, params})
	if err != nil {
		return err
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	if b.broken != nil {
		b.mu.Unlock()
		return b.broken
	}
	b.calls[id] = answer
	b.mu.Unlock()
	b.writing.Lock()
	_, err = b.to.Write(append(text, 0))
	b.writing.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		b.mu.Lock()
		delete(b.calls, id)
		b.mu.Unlock()
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case m, ok := <-answer:
		switch {
		case !ok:
			return b.broken
		case m.Error != nil:
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	}
}
