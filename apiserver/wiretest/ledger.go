// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files of a ledger. Each line is "SCRIPT/REQUEST  TEXT"; # begins a comment.
const (
	// DifferencesFile lists the requests that are answered differently on purpose, with
	// the reason. The answer is in the script, with [OwnSuffix].
	DifferencesFile = "differences.txt"
	// PendingFile lists the requests whose answers are wrong. An entry whose request is
	// answered correctly fails, so that the list only shrinks.
	PendingFile = "pending.txt"
)

// Ledger lists the answers that may differ from the recorded ones.
type Ledger struct {
	// Intended and Pending map "SCRIPT/REQUEST" to a reason.
	Intended map[string]string
	Pending  map[string]string
}

// LoadLedger reads the two files of a directory; a missing file is empty.
func LoadLedger(dir string) (*Ledger, error) {
	intended, err := readTable(filepath.Join(dir, DifferencesFile))
	if err != nil {
		return nil, err
	}
	pending, err := readTable(filepath.Join(dir, PendingFile))
	if err != nil {
		return nil, err
	}
	return &Ledger{Intended: intended, Pending: pending}, nil
}

func readTable(file string) (map[string]string, error) {
	table := map[string]string{}
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return table, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason", file, number, key)
		}
		if table[key] != "" {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", file, number, key)
		}
		table[key] = reason
	}
	return table, lines.Err()
}

// Unknown returns the entries that name no request of the scripts.
func (l *Ledger) Unknown(scripts []*Script) []string {
	known := map[string]bool{}
	for _, script := range scripts {
		for _, step := range script.Steps {
			known[script.Name+"/"+step.Name] = true
		}
	}
	var unknown []string
	for _, table := range []map[string]string{l.Intended, l.Pending} {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if !known[key] {
				unknown = append(unknown, key)
			}
		}
	}
	return unknown
}

// Verdict is what comparing one answer found.
type Verdict int

const (
	// Same: the answer is the recorded one.
	Same Verdict = iota
	// Intended: the answer differs as recorded with [OwnSuffix].
	Intended
	// Pending: the answer is wrong and listed in [PendingFile].
	Pending
	// Differs: the answer is wrong and not listed.
	Differs
	// Mended: the answer is correct but still listed.
	Mended
)

// Judge compares an answer with the recorded one. want is the expected text.
func (l *Ledger) Judge(script *Script, answer Answer) (verdict Verdict, want string) {
	key := script.Name + "/" + answer.Step.Name
	_, intended := l.Intended[key]
	_, pending := l.Pending[key]
	if answer.Step.setup && !answer.Failed {
		if pending || intended {
			return Mended, answer.Text
		}
		return Same, answer.Text
	}
	want = answer.Step.Answer
	right := answer.Text == want
	if intended {
		if right {
			return Mended, want
		}
		want = answer.Step.Own
		right = answer.Text == want
	}
	switch {
	case right && pending:
		return Mended, want
	case right && intended:
		return Intended, want
	case right:
		return Same, want
	case pending:
		return Pending, want
	}
	return Differs, want
}
