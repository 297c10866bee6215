// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/generate/load"
)

// record says what a run read and what it wrote, by content. While everything in
// it still holds, running again would change nothing. Files in the Go tree and the
// module cache are left out: their names carry their versions.
type record struct {
	Environment []string
	Files       map[string]string // inputs and outputs; "" for a file that is not there
	Dirs        map[string]string
}

// note remembers what the run read.
func (r *Result) note(resolver *load.Fast, request *Request) {
	dirs, files := resolver.Inputs()
	keep := func(paths []string) []string {
		slices.Sort(paths)
		return slices.DeleteFunc(slices.Compact(paths), resolver.Immutable)
	}
	r.dirs = keep(append(r.dirs, dirs...))
	r.inputs = keep(append(append(r.inputs, files...), request.headers()...))
}

// headers are the header files that the arguments name, or would name by default.
func (r *Request) headers() []string {
	headers := []string{filepath.Join(r.Dir, "hack", "boilerplate.go.txt")}
	for _, arg := range r.args {
		for part := range strings.FieldsFuncSeq(arg, func(c rune) bool { return c == ':' || c == ',' || c == '=' }) {
			part = strings.Trim(part, "\"`")
			if !filepath.IsAbs(part) {
				part = filepath.Join(r.Dir, part)
			}
			if info, err := os.Stat(part); err == nil && info.Mode().IsRegular() {
				headers = append(headers, part)
			}
		}
	}
	return headers
}

// Unchanged reports whether the same request ran before and nothing that it read
// or wrote has changed since.
func (r *Request) Unchanged() bool {
	if r.complete() != nil || r.Loader == "go" || r.Cache == "" {
		return false
	}
	text, err := os.ReadFile(r.recordFile())
	if err != nil {
		return false
	}
	var before record
	if json.Unmarshal(text, &before) != nil || !slices.Equal(before.Environment, r.environment()) {
		return false
	}
	for path, sum := range before.Dirs {
		if dirSum(path) != sum {
			return false
		}
	}
	for path, sum := range before.Files {
		if fileSum(path) != sum {
			return false
		}
	}
	return true
}

// Remember records that the result is on disk, for [Request.Unchanged], unless something was
// changed meanwhile. Failing to write the record costs nothing but time.
func (r *Request) Remember(result *Result) {
	if r.Cache == "" || result.inputs == nil || result.outdated() || r.has("schemapatch") { // whose manifests are not tracked
		return
	}
	now := record{Environment: r.environment(), Files: map[string]string{}, Dirs: map[string]string{}}
	for _, dir := range result.dirs {
		now.Dirs[dir] = dirSum(dir)
	}
	for _, path := range result.inputs {
		now.Files[path] = fileSum(path)
	}
	for _, file := range result.Files {
		if file.Path == "" {
			return // printed: it must be printed again
		}
		now.Files[file.Path] = fileSum(file.Path)
	}
	if text, err := json.Marshal(now); err == nil {
		keep(r.recordFile(), text)
	}
}

// writesInto reports whether a folder is to have an output, in itself or below.
func (r *Result) writesInto(dir string) bool {
	return slices.ContainsFunc(r.Files, func(f File) bool { return strings.HasPrefix(f.Path, dir+string(filepath.Separator)) })
}

// keep puts a file into the cache, if it can. The file may be empty.
func keep(path string, text []byte) {
	_ = Apply([]Change{{Path: path, After: append([]byte{}, text...)}}) // only a cache
}

// checkedFile stands for an output that this program has checked and found good.
func (r *Request) checkedFile(data []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n", program())
	sum.Write(data)
	return filepath.Join(r.Cache, "checked", hex.EncodeToString(sum.Sum(nil)[:16]))
}

// unchecked reports whether an output must be looked at more deeply.
func (r *Request) unchecked(data []byte) bool {
	if r.Cache == "" {
		return true
	}
	_, err := os.Stat(r.checkedFile(data))
	return err != nil
}

// recordFile names the record of a request after everything that was asked for.
func (r *Request) recordFile() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q %v %v", r.Dir, r.args, r.Tags, r.Loader, r.Mode, r.Lenient)
	return filepath.Join(r.Cache, hex.EncodeToString(sum.Sum(nil)[:16])+".json")
}

// environment is what outputs depend on besides files: this program, the Go tree
// and the variables that choose files.
func (r *Request) environment() []string {
	env := []string{runtime.Version(), program()}
	if resolver, err := load.NewFast(load.Build{Dir: r.Dir, Tags: r.Tags}); err == nil {
		env = append(env, resolver.Environment()...)
	}
	return env
}

// program identifies the running binary by its size and time: any other build of
// it starts afresh.
func program() string {
	path, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprint(path, info.Size(), info.ModTime().UnixNano())
}

// dirSum covers the names that decide which packages and files there are.
func dirSum(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	sum := sha256.New()
	for _, entry := range entries {
		if decides(entry) {
			fmt.Fprintf(sum, "%q %v ", entry.Name(), entry.IsDir())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// decides reports whether an entry of a folder says which packages and files there are.
func decides(entry os.DirEntry) bool {
	name := entry.Name()
	return entry.IsDir() || name == "go.mod" || strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "zz_generated.")
}

// clockTick is how far the times of files may be behind the clock.
const clockTick = 10 * time.Millisecond

// outdated reports whether what was read may be another now: a file was written or made since
// the run began, or is gone. What is on disk then says nothing about what was read.
func (r *Result) outdated() bool {
	newer := func(path string) bool {
		info, err := os.Stat(path)
		if err != nil {
			return strings.HasSuffix(path, ".go")
		}
		return info.ModTime().After(r.began.Add(-clockTick))
	}
	if slices.ContainsFunc(r.inputs, newer) {
		return true
	}
	for _, dir := range r.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return true
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if !decides(entry) || strings.HasPrefix(entry.Name(), ".") {
				continue
			}
			// Outputs make folders, and change the times of those that were read.
			if _, read := slices.BinarySearch(r.dirs, path); !read && !r.writesInto(path) && newer(path) {
				return true
			}
		}
	}
	return false
}

func fileSum(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
