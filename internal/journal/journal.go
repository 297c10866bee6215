// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal is what a simulation notes while it goes on: how many plans there are,
// which of them run, what was found. A plan is noted before it runs, so that a process that
// is killed leaves behind what it was at; and a command can follow a test of which go test
// shows nothing until it is over.
//
// A journal is a file of lines of JSON that grows. It is private to Steer: its lines may
// change with each version.
package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Variable is the environment variable with the folder in which journals are written for a
// command that follows them, and stay. Without it they are in the cache folder of the user,
// and go with the end of the test.
const Variable = "STEER_SIM_JOURNALS"

// extension of the files.
const extension = ".journal"

// Folder returns the folder for journals, and whether a command follows them.
func Folder() (dir string, followed bool, err error) {
	if dir := os.Getenv(Variable); dir != "" {
		return dir, true, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", false, err
	}
	return filepath.Join(cache, "steer", "sim"), false, nil
}

// line of a journal; each has one of these.
type line struct {
	Head  *Head   `json:",omitempty"`
	Plans int     `json:",omitempty"`
	Begun *Run    `json:",omitempty"`
	Over  string  `json:",omitempty"`
	Found string  `json:",omitempty"`
	End   *string `json:",omitempty"`
}

// Head says whose journal it is.
type Head struct {
	// Folder of the package, absolute, and the name of the test.
	Folder, Test string
}

// Run is one of a plan.
type Run struct {
	// Name of the plan, and its text for a file.
	Name, Text string
}

// Journal is one that is written. Its methods are safe for concurrent use; those of a nil
// Journal do nothing. A line that cannot be written is left out.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

// Create begins a journal in dir, which is made if need be.
func Create(dir string, of Head) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, of.prefix()+strconv.Itoa(os.Getpid())+"-*"+extension)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: file}
	j.write(line{Head: &of})
	return j, nil
}

// prefix of the files of a test.
func (h Head) prefix() string {
	sum := sha256.Sum256([]byte(h.Folder + "\x00" + h.Test))
	return hex.EncodeToString(sum[:8]) + "-"
}

func (j *Journal) write(l line) {
	if j == nil {
		return
	}
	text, err := json.Marshal(l)
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.file.Write(append(text, '\n'))
}

// Plans notes how many plans are to be run.
func (j *Journal) Plans(n int) { j.write(line{Plans: n}) }

// Begins notes that a plan begins to run.
func (j *Journal) Begins(name, text string) { j.write(line{Begun: &Run{name, text}}) }

// Over notes that a plan has run.
func (j *Journal) Over(name string) { j.write(line{Over: name}) }

// Found notes a failure by the name of its plan.
func (j *Journal) Found(name string) { j.write(line{Found: name}) }

// End ends the journal: the test is over. The summary is for a reader.
func (j *Journal) End(summary string) error {
	if j == nil {
		return nil
	}
	j.write(line{End: &summary})
	return j.file.Close()
}

// Remove removes the file of a journal that has ended.
func (j *Journal) Remove() error {
	if j == nil {
		return nil
	}
	return os.Remove(j.file.Name())
}

// State is what a journal says.
type State struct {
	// File of the journal.
	File string
	Head
	// Plans is how many are to be run; 0 while it is not known: the test runs as it is. Over
	// is how many of them have run.
	Plans, Over int
	// Running are the plans that have begun and are not over, by their names.
	Running []Run
	// Found are the names of plans that failed.
	Found []string
	// Ended reports that the test is over; then Summary says how it went.
	Ended   bool
	Summary string
}

// Read reads a journal. The last line may be missing its end: a process was killed.
func Read(file string) (State, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return State{}, err
	}
	s := State{File: file}
	running, over := map[string]Run{}, map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue
		}
		switch {
		case l.Head != nil:
			s.Head = *l.Head
		case l.Begun != nil:
			running[l.Begun.Name] = *l.Begun
		case l.Over != "":
			delete(running, l.Over)
			over[l.Over] = true
		case l.Found != "":
			s.Found = append(s.Found, l.Found)
		case l.End != nil:
			s.Ended, s.Summary = true, *l.End
		default:
			s.Plans = l.Plans
			clear(over) // the references
		}
	}
	s.Over = min(len(over), s.Plans) // those that look closer at one that failed are more
	for _, name := range slices.Sorted(maps.Keys(running)) {
		s.Running = append(s.Running, running[name])
	}
	if s.Test == "" {
		return s, fmt.Errorf("%s is no journal of a simulation", file)
	}
	return s, nil
}

// All returns what the journals of a folder say, in the order of their tests.
func All(dir string) ([]State, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		return nil, err
	}
	var out []State
	for _, file := range files {
		s, err := Read(file)
		if err != nil {
			continue // it begins, or goes
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b State) int {
		return slices.Compare([]string{a.Folder, a.Test}, []string{b.Folder, b.Test})
	})
	return out, nil
}

// Left takes the journals of a test out of a folder that processes have left behind which are
// gone, and returns the plans that had begun and were not over.
func Left(dir string, of Head) ([]Run, error) {
	files, err := filepath.Glob(filepath.Join(dir, of.prefix()+"*"+extension))
	if err != nil {
		return nil, err
	}
	var out []Run
	var errs []error
	for _, file := range files {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(file), of.prefix()), "-")
		if n, err := strconv.Atoi(pid); err == nil && alive(n) {
			continue
		}
		if s, err := Read(file); err == nil && s.Head == of {
			out = append(out, s.Running...)
		}
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}
