// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package walkthrough

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	duration = regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h|d))+\b|\(cached\)`)
	moment   = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|[+-]\d\d:\d\d)?|\b\d\d:\d\d:\d\d(?:\.\d+)?\b`)
	// Differences of go-cmp have no-break spaces in some builds.
	spaces = regexp.MustCompile(`[ \t\x{a0}]+`)
	// progress is what the go command says while it fills its cache.
	progress = regexp.MustCompile(`(?m)^go: (?:downloading|finding) .*\n`)
)

// plain leaves out what differs between two runs of a command.
func plain(text string) string {
	text = progress.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	text = moment.ReplaceAllString(text, "T")
	text = duration.ReplaceAllString(text, "0s")
	text = spaces.ReplaceAllString(text, " ")
	return strings.ReplaceAll(text, " \n", "\n")
}

// anyLines reports whether a line of a page stands for any lines.
func anyLines(line string) bool { return strings.TrimSpace(line) == "..." }

// shows reports where the output that a page shows ends in what was printed, -1 if it
// is not the beginning of it.
func shows(shown []string, printed string) int {
	var re strings.Builder
	re.WriteString(`^`)
	for _, line := range shown {
		if anyLines(line) {
			re.WriteString(`(?:.*\n)*?`)
			continue
		}
		parts := strings.Split(strings.TrimRight(plain(line), " "), "...")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		re.WriteString(strings.Join(parts, `.*?`) + `\n`)
	}
	at := regexp.MustCompile(re.String()).FindStringIndex(printed)
	if at == nil {
		return -1
	}
	return at[1]
}

// compare is the error of output that differs from what a page shows.
func compare(shown []string, printed string) error {
	text := strings.TrimRight(plain(printed), "\n")
	if text != "" {
		text += "\n"
	}
	end := shows(shown, text)
	if end < 0 || end < len(text) && !anyLines(shown[len(shown)-1]) {
		return fmt.Errorf("the page shows\n%s\nand the command printed\n%s", strings.Join(shown, "\n"), printed)
	}
	return nil
}

// edit applies a diff to a text. The lines that are kept or taken out are in it once, in
// a row.
func edit(text string, diff []string) (string, error) {
	var before, after strings.Builder
	for _, line := range diff {
		sign, rest := " ", ""
		if line != "" {
			sign, rest = line[:1], line[1:]
		}
		switch sign {
		case " ":
			before.WriteString(rest + "\n")
			after.WriteString(rest + "\n")
		case "-":
			before.WriteString(rest + "\n")
		case "+":
			after.WriteString(rest + "\n")
		default:
			return "", fmt.Errorf("the line %q of the diff begins with neither a space nor + nor -", line)
		}
	}
	if before.Len() == 0 {
		return "", errors.New("the diff names no line of the file")
	}
	switch strings.Count("\n"+text, "\n"+before.String()) {
	case 0:
		return "", fmt.Errorf("these lines are not in it:\n%s", before.String())
	case 1:
		return strings.TrimPrefix(strings.Replace("\n"+text, "\n"+before.String(), "\n"+after.String(), 1), "\n"), nil
	default:
		return "", fmt.Errorf("these lines are in it more than once:\n%s", before.String())
	}
}
