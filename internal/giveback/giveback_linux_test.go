// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// resident is what of files is resident in this process, in kilobytes.
func resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "RssFile:"); ok {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Skip("the kernel does not tell what of files is resident")
	return 0
}

// work goes through code and tables of the executable.
func work(t *testing.T) {
	t.Helper()
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(w).Encode(map[string][]int{"a": {1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(flate.NewReader(&packed))
	if err != nil || string(text) != `{"a":[1,2,3]}`+"\n" {
		t.Fatalf("got %q, %v", text, err)
	}
}

func TestWhatIsGivenBackIsNotResidentAndStillThere(t *testing.T) { //nolint:paralleltest // what other tests touch would count
	work(t)
	before := resident(t)
	if err := unmapExecutable(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after > before*4/5 {
		t.Errorf("%d kB of files are resident, %d before: less than a fifth was given back", after, before)
	}
	work(t)
	Now()
	work(t)
}
