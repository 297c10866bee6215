// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/trace"
)

const (
	// leftBytes bounds the versions in a file of a failed test, and leftRecords the records,
	// of which the newest are kept.
	leftBytes, leftRecords = 16 << 20, 20000
	// leftFiles is how many such files there are at most, but for those that go test keeps.
	leftFiles = 20
	// leftWithin bounds the time to write one.
	leftWithin = 30 * time.Second
)

// Leave writes what a control plane and an operator have done to a new file, and returns the
// line that opens it. The file begins with name. With an empty dir it is below one of the
// user's among the temporary ones, which outlives the test; of those the newest 20 stay. A nil
// config is for a server that others use: the file has records alone.
func Leave(config *rest.Config, dir, name string, recorders []*trace.Recorder) (line string, err error) {
	var records []trace.Record
	for _, recorder := range recorders {
		for r := range recorder.Records() {
			records = append(records, r)
		}
	}
	records = records[max(len(records)-leftRecords, 0):]
	own := dir == ""
	if own {
		if dir, err = ownTemporary(); err != nil {
			return "", err
		}
	}
	name = strings.Map(plainRune, name)
	file, err := os.CreateTemp(dir, name[:min(len(name), 100)]+"-*.jsonl")
	if err != nil {
		return "", err
	}
	if err := errors.Join(writeLeft(file, config, records), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	if own {
		forget(dir)
	}
	flag := "--from"
	if config == nil {
		flag = "--records" // the server has the versions
	}
	return "steer why " + flag + " " + file.Name() + " " + subjectOf(records), nil
}

func writeLeft(to io.Writer, config *rest.Config, records []trace.Record) error {
	if config == nil {
		return trace.WriteJSON(to, slices.Values(records))
	}
	ctx, cancel := context.WithTimeout(context.Background(), leftWithin)
	defer cancel()
	server, err := Connect(ctx, config)
	if err != nil {
		return err
	}
	file, err := server.Gather(ctx, leftBytes)
	if err != nil {
		return err
	}
	file.Records = records
	return file.Write(to)
}

// subjectOf is the object that was reconciled last, as an argument of steer why.
func subjectOf(records []trace.Record) string {
	for _, r := range slices.Backward(records) {
		if r.Object.Name == "" {
			continue
		}
		subject := strings.ToLower(r.Object.Kind) + "/" + r.Object.Name
		if r.Object.Namespace != "" && r.Object.Namespace != "default" {
			subject += " -n " + r.Object.Namespace
		}
		return subject
	}
	return "KIND/NAME"
}

func plainRune(r rune) rune {
	if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-') {
		return r
	}
	return '_'
}

// ownTemporary is a directory that only this user can read.
func ownTemporary() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprint("steertest-", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || os.PathSeparator == '/' && info.Mode().Perm() != 0o700 {
		return "", fmt.Errorf("%s is no directory of the user alone (mode 0700): remove it", dir)
	}
	return dir, nil
}

// forget removes the oldest files of a directory. What cannot be removed stays: another test
// may have been faster.
func forget(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	age := func(e os.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int {
		return cmp.Or(age(a).Compare(age(b)), cmp.Compare(a.Name(), b.Name()))
	})
	for _, old := range entries[:max(len(entries)-leftFiles, 0)] {
		_ = os.Remove(filepath.Join(dir, old.Name()))
	}
}
