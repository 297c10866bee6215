// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"slices"
	"strings"
	"testing"
)

// entry is one mapping as smaps shows it, shortened.
func entry(head, anonymous, swap string) string {
	return head + "\nSize:   1024 kB\nRss:   512 kB\nAnonymous:   " + anonymous + " kB\nSwap:   " + swap + " kB\nSwapPss:   0 kB\nVmFlags: rd ex mr mw me sd \n"
}

func TestOnlyWhatTheExecutableStillHasIsGivenBack(t *testing.T) {
	t.Parallel()
	const exe = "00000000 00:2b 77                         /manager"
	smaps := entry("00400000-00d00000 r-xp "+exe, "0", "0") +
		entry("00d00000-01200000 r--p "+exe+" (deleted)", "0", "0") + // replaced while it runs
		entry("01200000-01300000 r--p "+exe, "16", "0") + // relocations, a breakpoint
		entry("01300000-01400000 r--p "+exe, "0", "4") + // the same, swapped out
		entry("01400000-01500000 rw-p "+exe, "0", "0") + // variables
		entry("01500000-01600000 r--s "+exe, "0", "0") +
		entry("01600000-01700000 ---p "+exe, "0", "0") +
		entry("01700000-01800000 r--p 00000000 00:2b 78                         /lib/other.so", "0", "0") +
		entry("01800000-01900000 r--p 00000000 00:2c 77                         /of/another/device", "0", "0") +
		"01900000-01a00000 r--p " + exe + "\nSize: 1024 kB\nSwap: 0 kB\n" + // a kernel that does not tell
		entry("c000000000-c000400000 rw-p 00000000 00:00 0 ", "2048", "0") +
		entry("7ffe0000-7fff0000 r-xp 00000000 00:00 0                          [vdso]", "0", "0")
	got, err := executable(strings.NewReader(smaps), 0x401000)
	if err != nil {
		t.Fatal(err)
	}
	var ranges []uintptr
	for _, m := range got {
		ranges = append(ranges, m.start, m.end)
	}
	if want := []uintptr{0x400000, 0xd00000, 0xd00000, 0x1200000}; !slices.Equal(ranges, want) {
		t.Errorf("got %x, want %x", ranges, want)
	}
}

func TestNothingIsGivenBackOfWhatIsNotUnderstood(t *testing.T) {
	t.Parallel()
	for name, smaps := range map[string]string{
		"no mappings":                 "",
		"a value before all mappings": "Anonymous: 0 kB\n",
		"too few fields":              "00400000-00d00000 r-xp\n",
		"no range":                    "00400000 r-xp 0 00:2b 77 /manager\n",
		"no number":                   "0040000g-00d00000 r-xp 0 00:2b 77 /manager\n",
		"code that is no file's":      entry("00400000-00d00000 r-xp 00000000 00:00 0", "0", "0"),
	} {
		if got, err := executable(strings.NewReader(smaps), 0x401000); err == nil || len(got) > 0 {
			t.Errorf("%s: got %v, %v; want an error", name, got, err)
		}
	}
}
