// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

var update = flag.Bool("update", false, "rewrite the golden directory of the current format")

func commit(t testing.TB, s storage.Store, w storage.Write) {
	t.Helper()
	if _, err := s.Commit(context.Background(), w); err != nil {
		t.Fatal(err)
	}
}

// fill makes some writes of every kind.
func fill(t testing.TB, s storage.Store) {
	t.Helper()
	for i := range 20 {
		k := storage.Key{Bucket: fmt.Sprint("example.com/b", i%3), Name: fmt.Sprint("ns/", i)}
		commit(t, s, storage.Write{Key: k, Value: fmt.Appendf(nil, `{"rv":"","n":%d}`, i), Stamp: 7})
	}
	for i := range 7 {
		k := storage.Key{Bucket: fmt.Sprint("example.com/b", i%3), Name: fmt.Sprint("ns/", i)}
		commit(t, s, storage.Write{Key: k, Expect: storage.Revision(i + 1)})
	}
	commit(t, s, storage.Write{Key: storage.Key{Bucket: "plain", Name: "empty"}, Value: []byte{}})
}

// dump lists the newest state and the history of a store.
func dump(t testing.TB, s storage.Store) string {
	t.Helper()
	v, err := s.View(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "revision %d\n", v.Revision())
	for bucket := range v.Buckets() {
		for r := range v.Ascend(bucket, "", "") {
			fmt.Fprintf(&b, "%s created %d modified %d stamp %d %q\n", r.Key, r.Created, r.Modified, r.Stamp, r.Value)
		}
	}
	return b.String()
}

func TestFilesAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "data")
	s := openIn(t, dir)
	fill(t, s)
	if err := s.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", d.Name(), got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openIn(t, dir)
	_, err := local.Open(dir, local.Options{})
	if inUse, ok := errors.AsType[*local.InUseError](err); !ok || inUse.Dir != dir {
		t.Fatalf("got error %v, want InUseError", err)
	}
	if err := local.Restore(dir, bytes.NewReader(nil)); err == nil {
		t.Fatal("restored into a directory in use")
	}
	s.Close()
	openIn(t, dir)
}

func TestDirectoriesThatCannotBeUsedAreNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := local.Open(filepath.Join(file, "data"), local.Options{})
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "choose a directory") {
		t.Fatalf("got error %v", err)
	}
}

func TestFormatsAreCheckedBeforeAnythingIsTouched(t *testing.T) {
	t.Parallel()
	for format, found := range map[string]int{
		"steer-storage 2\n": 2, "steer-storage 1000\n": 1000, "": 0, "something else\n": 0, "steer-storage -1\n": 0,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "FORMAT"), []byte(format), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := local.Open(dir, local.Options{})
		if bad, ok := errors.AsType[*local.FormatError](err); !ok || bad.Found != found {
			t.Errorf("%q: got error %v, want FormatError of version %d", format, err, found)
		}
	}
	dir := t.TempDir()
	fill(t, openIn(t, dir))
	other := t.TempDir()
	copyDir(t, dir, other)
	os.Remove(filepath.Join(other, "FORMAT"))
	if _, err := local.Open(other, local.Options{}); err == nil {
		t.Fatal("a directory without its format was taken for an empty one")
	}
}

func TestASnapshotMakesANewDirectory(t *testing.T) {
	t.Parallel()
	from := openIn(t, t.TempDir())
	fill(t, from)
	v, err := from.View(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var snapshot bytes.Buffer
	if err := storage.Save(context.Background(), &snapshot, v); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if err := local.Restore(dir, bytes.NewReader(snapshot.Bytes())); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, dir)
	if diff := cmp.Diff(dump(t, from), dump(t, s)); diff != "" {
		t.Fatalf("(-saved +restored)\n%s", diff)
	}
	commit(t, s, storage.Write{Key: storage.Key{Bucket: "b", Name: "next"}, Value: []byte("v")})
	if r, _ := s.View(context.Background(), 0); r.Revision() != v.Revision()+1 {
		t.Fatalf("went on with revision %d", r.Revision())
	}
	s.Close()
	if err := local.Restore(dir, bytes.NewReader(snapshot.Bytes())); !errors.Is(err, local.ErrNotEmpty) {
		t.Fatalf("got error %v, want ErrNotEmpty", err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := local.Restore(damaged, bytes.NewReader(snapshot.Bytes()[:snapshot.Len()-1])); !errors.Is(err, storage.ErrCorrupt) {
		t.Fatalf("got error %v, want ErrCorrupt", err)
	}
}

// Every format that was ever released has a directory in testdata, with a
// segment that was closed, a checkpoint and a segment that was not.
func TestDirectoriesOfEveryFormatOpen(t *testing.T) {
	t.Parallel()
	if *update {
		writeGolden(t, "testdata/format-1")
	}
	goldens, err := filepath.Glob("testdata/format-*")
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden directories: %v", err)
	}
	for _, golden := range goldens {
		dir := t.TempDir()
		copyDir(t, golden, dir)
		s := openIn(t, dir)
		want, err := os.ReadFile(filepath.Join(golden, "contents.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), dump(t, s)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", golden, diff)
		}
	}
}

func writeGolden(t *testing.T, golden string) {
	t.Helper()
	dir := t.TempDir()
	s := openIn(t, dir)
	fill(t, s)
	if err := s.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"closed", "open"} {
		commit(t, s, storage.Write{Key: storage.Key{Bucket: "later", Name: name}, Value: []byte(name)})
		if name == "closed" {
			s.Close()
			s = openIn(t, dir)
		}
	}
	os.RemoveAll(golden)
	copyDir(t, dir, golden)
	os.Remove(filepath.Join(golden, "LOCK"))
	if err := os.WriteFile(filepath.Join(golden, "contents.txt"), []byte(dump(t, s)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func copyDir(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
