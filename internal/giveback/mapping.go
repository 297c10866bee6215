// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// mapping is a range of addresses of the process.
type mapping struct {
	start, end uintptr
	modes      string // such as r-xp
	// file is its device and inode as the kernel shows them here, which on layered
	// file systems are not those of stat; empty for what is no file's.
	file string
	// anonymous and swapped are the kilobytes of pages that are not the file's: what
	// was written to them lives nowhere else.
	anonymous, swapped string
}

// executable finds the mappings whose pages can all be read again from the file
// that the code at address here comes from. smaps has the form of /proc/PID/smaps.
//
// They are private and not writable, and never have been written to:
// relocations made before a range became read-only and breakpoints of debuggers live
// in anonymous copies of pages, which would be lost.
func executable(smaps io.Reader, here uintptr) ([]mapping, error) {
	all, err := readMappings(smaps)
	if err != nil {
		return nil, err
	}
	var file string
	for _, m := range all {
		if m.start <= here && here < m.end {
			file = m.file
		}
	}
	if file == "" {
		return nil, fmt.Errorf("no file is mapped at %x, where the code is", here)
	}
	var out []mapping
	for _, m := range all {
		if m.file == file && strings.HasPrefix(m.modes, "r-") && strings.HasSuffix(m.modes, "p") && m.anonymous == "0" && m.swapped == "0" {
			out = append(out, m)
		}
	}
	return out, nil
}

func readMappings(smaps io.Reader) ([]mapping, error) {
	var out []mapping
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		label, isValue := strings.CutSuffix(fields[0], ":")
		switch {
		case !isValue:
			m, err := header(fields)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		case len(out) == 0:
			return nil, fmt.Errorf("%q comes before any mapping", lines.Text())
		case label == "Anonymous":
			out[len(out)-1].anonymous = fields[1]
		case label == "Swap":
			out[len(out)-1].swapped = fields[1]
		}
	}
	return out, lines.Err()
}

// header reads the first line of a mapping, such as
//
//	00401000-00d0c000 r-xp 00001000 08:01 1234567    /manager
func header(fields []string) (mapping, error) {
	if len(fields) < 5 {
		return mapping{}, fmt.Errorf("a mapping of %d fields: %q", len(fields), fields)
	}
	from, to, _ := strings.Cut(fields[0], "-")
	start, err := strconv.ParseUint(from, 16, strconv.IntSize)
	if err != nil {
		return mapping{}, fmt.Errorf("the start of a mapping: %w", err)
	}
	end, err := strconv.ParseUint(to, 16, strconv.IntSize)
	if err != nil {
		return mapping{}, fmt.Errorf("the end of a mapping: %w", err)
	}
	m := mapping{start: uintptr(start), end: uintptr(end), modes: fields[1]}
	if fields[4] != "0" {
		m.file = fields[3] + " " + fields[4]
	}
	return m, nil
}
