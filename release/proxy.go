// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// zip is the module of a folder in the form in which the go command downloads it. Files
// of nested modules are not in it.
func (r *release) zip(folder string) ([]byte, error) {
	prefix := folder + "/"
	if folder == "" {
		prefix = ""
	}
	var files []modzip.File
	licensed := false
	for name, f := range r.files {
		if rel, ok := strings.CutPrefix(name, prefix); ok {
			files = append(files, zipFile{rel, f})
			licensed = licensed || rel == "LICENSE"
		}
	}
	if !licensed { // as the go command does it
		files = append(files, zipFile{"LICENSE", r.files["LICENSE"]})
	}
	var out bytes.Buffer
	err := modzip.Create(&out, module.Version{Path: modulePath(folder), Version: r.version}, files)
	return out.Bytes(), err
}

// zipFile is a file of a commit for package zip.
type zipFile struct {
	name string
	file
}

func (f zipFile) Path() string                 { return f.name }
func (f zipFile) Lstat() (fs.FileInfo, error)  { return fileInfo{f}, nil }
func (f zipFile) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.data)), nil }

type fileInfo struct{ zipFile }

func (i fileInfo) Name() string       { return path.Base(i.name) }
func (i fileInfo) Size() int64        { return int64(len(i.data)) }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return false }
func (i fileInfo) Sys() any           { return nil }

// hashZip is the checksum of a module, as go.sum has it.
func hashZip(data []byte) (string, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	return dirhash.Hash1(names, func(name string) (io.ReadCloser, error) { return r.Open(name) })
}

// writeProxy writes the modules as a GOPROXY of files. Other versions that the folder
// has stay.
func (r *release) writeProxy(dir string) error {
	info, err := json.Marshal(map[string]any{"Version": r.version, "Time": r.time})
	if err != nil {
		return err
	}
	for _, m := range r.modules {
		versions := filepath.Join(dir, filepath.FromSlash(m.Path), "@v")
		if err := os.MkdirAll(versions, 0o755); err != nil {
			return err
		}
		list, err := os.ReadFile(filepath.Join(versions, "list"))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for name, data := range map[string][]byte{
			r.version + ".info": info, r.version + ".mod": m.mod, r.version + ".zip": m.zip,
			"list": []byte(withoutLines(string(list), r.version+"\n") + r.version + "\n"),
		} {
			if err := os.WriteFile(filepath.Join(versions, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
