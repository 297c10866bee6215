// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package walkthrough

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/steer-dev/steer/internal/children"
)

const (
	// commandLimit bounds a command, which may compile everything on a cold machine.
	commandLimit = 15 * time.Minute
	// poll is how often the output of a terminal in the background is read.
	poll = 20 * time.Millisecond
	// done begins the line that bash prints after a command, with status and folder.
	done = "walkthrough: done"
)

// Options of Play.
type Options struct {
	// Dir is the folder in which the first page begins. Required.
	Dir string
	// Out gets a line for every command, with the seconds that it took. Required.
	Out io.Writer
	// WithoutServer leaves out terminals, and commands that ask their servers, for a machine
	// that has no kubectl: those that begin with kubectl, or with "go tool steer" and
	// history, why or tree.
	WithoutServer bool
}

// Play plays pages one after the other in one session of bash, and stops at the first
// command, edit or output that is not as the page says.
func Play(ctx context.Context, o Options, pages ...string) error {
	p, err := start(ctx, o)
	if err != nil {
		return err
	}
	for _, page := range pages {
		blocks, err := Read(page)
		if err != nil {
			return errors.Join(err, p.stop(ctx))
		}
		began := time.Now()
		for _, b := range blocks {
			if err := p.play(ctx, b); err != nil {
				return errors.Join(fmt.Errorf("%s:%d: %w", b.Page, b.Line, err), p.stop(ctx))
			}
		}
		for name := range p.terminals {
			return errors.Join(fmt.Errorf("%s: the terminal %s has no end", page, name), p.stop(ctx))
		}
		fmt.Fprintf(o.Out, "%6.1f s  %s\n", time.Since(began).Seconds(), page)
	}
	return p.stop(ctx)
}

// player is a session of bash.
type player struct {
	o         Options
	dir       string // where the session is
	logs      string // a folder for the output of terminals
	bash      *children.Child
	forget    func() bool // no longer kills bash when the context of Play ends
	in        io.WriteCloser
	lines     chan string
	terminals map[string]*terminal
	opened    int // how many terminals there were
}

// terminal is a command in the background.
type terminal struct {
	pid   string
	log   string
	shown map[int]bool // the lines of the log that pages have shown
}

func start(ctx context.Context, o Options) (*player, error) {
	logs, err := os.MkdirTemp("", "walkthrough")
	if err != nil {
		return nil, fmt.Errorf("walkthrough: %w", err)
	}
	p := &player{
		o: o, dir: o.Dir, logs: logs,
		lines: make(chan string, 1024), terminals: map[string]*terminal{},
	}
	bash := exec.Command("bash", "--norc")
	bash.Dir = o.Dir
	bash.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") }),
		"GIT_AUTHOR_NAME=reader", "GIT_AUTHOR_EMAIL=reader@example.com", "GIT_COMMITTER_NAME=reader", "GIT_COMMITTER_EMAIL=reader@example.com")
	if p.in, err = bash.StdinPipe(); err != nil {
		return nil, fmt.Errorf("walkthrough: %w", err)
	}
	out, into, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("walkthrough: %w", err)
	}
	bash.Stdout, bash.Stderr = into, into
	if p.bash, err = children.Start(bash); err != nil {
		return nil, fmt.Errorf("walkthrough: %w", err)
	}
	p.forget = context.AfterFunc(ctx, p.bash.Kill) // with what runs in its background
	go func() {                                    // ends with the pipe, which the session and its commands hold open
		defer close(p.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				p.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	_, err = io.WriteString(p.in, "set -o pipefail\n")
	return p, errors.Join(err, into.Close())
}

// stop ends the session and what runs in its background.
func (p *player) stop(ctx context.Context) error {
	defer p.forget()
	var errs []error
	for name := range p.terminals {
		errs = append(errs, p.end(ctx, name))
	}
	errs = append(errs, p.in.Close(), p.bash.Wait(), os.RemoveAll(p.logs))
	return errors.Join(errs...)
}

func (p *player) play(ctx context.Context, b Block) error {
	switch b.Kind {
	case File:
		return p.write(b)
	case Edit:
		return p.edit(b)
	case Console:
		return p.console(ctx, b)
	case Terminal:
		return p.background(ctx, b)
	case End:
		if p.o.WithoutServer {
			return nil
		}
		return p.end(ctx, b.Name)
	default:
		return nil
	}
}

func (p *player) write(b Block) error {
	name := filepath.Join(p.dir, filepath.FromSlash(b.Name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(strings.Join(b.Lines, "\n")+"\n"), 0o644)
}

func (p *player) edit(b Block) error {
	name := filepath.Join(p.dir, filepath.FromSlash(b.Name))
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := edit(string(data), b.Lines)
	if err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

func (p *player) console(ctx context.Context, b Block) error {
	commands := b.Commands()
	for i, c := range commands {
		if p.o.WithoutServer && asksServer(c.Text) {
			continue
		}
		want := 0
		if i == len(commands)-1 {
			want = b.Status
		}
		began := time.Now()
		printed, status, err := p.run(ctx, "{ "+c.Text+"\n} </dev/null")
		fmt.Fprintf(p.o.Out, "%6.1f s  %s:%d  %s\n", time.Since(began).Seconds(), filepath.Base(b.Page), c.Line, c.Text)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Text, err)
		}
		if status != want {
			return fmt.Errorf("%s: exit status %d, want %d\n%s", c.Text, status, want, printed)
		}
		if len(c.Shown) == 0 {
			continue
		}
		if err := compare(c.Shown, printed); err != nil {
			return fmt.Errorf("%s: %w", c.Text, err)
		}
	}
	return nil
}

// asksServer reports whether a command needs the server of a terminal.
func asksServer(command string) bool {
	return slices.ContainsFunc([]string{"kubectl ", "go tool steer history ", "go tool steer why ", "go tool steer tree "}, func(begin string) bool {
		return strings.HasPrefix(command, begin)
	})
}

// run has bash run a script, and returns what it printed and its status.
func (p *player) run(ctx context.Context, script string) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if _, err := fmt.Fprintf(p.in, "%s\nprintf '\\n%s %%d %%s\\n' $? \"$PWD\"\n", script, done); err != nil {
		return "", 0, err
	}
	var printed strings.Builder
	for {
		select {
		case <-ctx.Done():
			return "", 0, fmt.Errorf("%w, after it had printed\n%s", ctx.Err(), printed.String())
		case line, ok := <-p.lines:
			if !ok {
				return "", 0, fmt.Errorf("the session ended, after it had printed\n%s", printed.String())
			}
			rest, ended := strings.CutPrefix(line, done+" ")
			if !ended {
				printed.WriteString(line)
				continue
			}
			status, dir, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), " ")
			p.dir = dir
			n, err := strconv.Atoi(status)
			return strings.TrimSuffix(printed.String(), "\n"), n, err
		}
	}
}

// background starts the command of a terminal, or goes on with one that runs, and waits
// until it has printed what the page shows.
func (p *player) background(ctx context.Context, b Block) error {
	if p.o.WithoutServer {
		return nil
	}
	began := time.Now()
	for _, c := range b.Commands() {
		t := p.terminals[b.Name]
		if c.Text != "" {
			if t != nil {
				return fmt.Errorf("the terminal %s runs a command already", b.Name)
			}
			p.opened++
			t = &terminal{log: filepath.Join(p.logs, fmt.Sprintf("%s-%d", b.Name, p.opened)), shown: map[int]bool{}}
			printed, _, err := p.run(ctx, fmt.Sprintf("( exec %s ) </dev/null >%s 2>&1 &\necho $!", c.Text, t.log))
			if err != nil {
				return err
			}
			t.pid = strings.TrimSpace(printed)
			p.terminals[b.Name] = t
		}
		if t == nil {
			return fmt.Errorf("no terminal %s runs", b.Name)
		}
		if err := t.await(ctx, c.Shown); err != nil {
			return err
		}
		fmt.Fprintf(p.o.Out, "%6.1f s  %s:%d  %s [%s]\n", time.Since(began).Seconds(), filepath.Base(b.Page), c.Line, c.Text, b.Name)
	}
	return nil
}

// await waits until the log has what the page shows.
func (t *terminal) await(ctx context.Context, shown []string) error {
	if len(shown) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit/3)
	defer cancel()
	for {
		data, err := os.ReadFile(t.log)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		shown = t.take(shown, string(data))
		if len(shown) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: the page shows also\n%s\nand the terminal\n%s", ctx.Err(), strings.Join(shown, "\n"), data)
		case <-time.After(poll):
		}
	}
}

// take returns the lines of a page that are not in a log yet. A line of the log stands
// for one line of the pages.
func (t *terminal) take(shown []string, log string) []string {
	log = plain(log)
	lines := strings.SplitAfter(log[:strings.LastIndex(log, "\n")+1], "\n")
	return slices.DeleteFunc(slices.Clone(shown), func(want string) bool {
		if anyLines(want) {
			return true
		}
		for i, line := range lines {
			if !t.shown[i] && line != "" && shows([]string{want}, line) >= 0 {
				t.shown[i] = true
				return true
			}
		}
		return false
	})
}

// end ends a terminal as Ctrl-C does, and waits for it.
func (p *player) end(ctx context.Context, name string) error {
	t := p.terminals[name]
	if t == nil {
		return fmt.Errorf("no terminal %s runs", name)
	}
	delete(p.terminals, name)
	_, _, err := p.run(ctx, fmt.Sprintf("kill -TERM %s; wait %s", t.pid, t.pid))
	return err
}
