// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/mod/modfile"
)

// files are the names and contents of a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		out[e.Name()] = read(t, filepath.Join(dir, e.Name()))
	}
	return out
}

// TestBuildMakesEveryFileOfARelease builds for three systems, twice.
func TestBuildMakesEveryFileOfARelease(t *testing.T) {
	t.Parallel()
	const platforms = "linux/amd64,linux/arm64,windows/amd64"
	repo, out := repository(t, tree()), filepath.Join(t.TempDir(), "out")
	mustSteer(t, repo, "build", "-version", version, "-out", out, "-platforms", platforms)
	got := files(t, out)
	want := []string{
		"SHA256SUMS", "THIRD_PARTY_LICENSES", "steer_v1.2.0_image.tar", "steer_v1.2.0_linux_amd64.tar.gz",
		"steer_v1.2.0_linux_arm64.tar.gz", "steer_v1.2.0_sbom.cdx.json", "steer_v1.2.0_windows_amd64.zip",
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Fatalf("got %v", names)
	}
	for name, text := range got {
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), name); name != checksumsFile && !strings.Contains(got[checksumsFile], line) {
			t.Errorf("%s has no line %q", checksumsFile, line)
		}
	}
	content := map[string][]string{}
	for name, text := range got {
		if strings.HasSuffix(name, ".tar.gz") {
			content[name] = untar(t, text)
		} else if strings.HasSuffix(name, ".zip") {
			content[name] = unzip(t, text)
		}
	}
	for name, list := range content {
		suffix := ""
		if strings.Contains(name, "windows") {
			suffix = ".exe"
		}
		if !slices.Equal(list, []string{"LICENSE", "THIRD_PARTY_LICENSES", "steer" + suffix, "steer-etcd" + suffix}) {
			t.Errorf("%s has %v", name, list)
		}
	}
	again := filepath.Join(t.TempDir(), "again")
	mustSteer(t, repo, "build", "-version", version, "-out", again, "-platforms", platforms)
	if !maps.Equal(files(t, again), got) {
		t.Error("a second build of the same commit has other bytes")
	}
	if _, err := steer(t, repo, "build", "-version", version, "-out", out); err == nil {
		t.Error("files that exist are replaced")
	}
	if tags := command(t, repo, "git", "tag"); tags != "" {
		t.Errorf("tags were made: %s", tags)
	}
}

func untar(t *testing.T, text string) (names []string) {
	t.Helper()
	decompressed, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(decompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if executable := header.Mode&0o111 != 0; executable != strings.HasPrefix(header.Name, "steer") {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
	}
}

func unzip(t *testing.T, text string) (names []string) {
	t.Helper()
	r, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	return names
}

// TestImageIsAValidLayout reads it with the checks of a registry's library.
func TestImageIsAValidLayout(t *testing.T) {
	t.Parallel()
	repo, out, dir := repository(t, tree()), filepath.Join(t.TempDir(), "out"), t.TempDir()
	mustSteer(t, repo, "build", "-version", version, "-out", out, "-platforms", "linux/amd64,linux/arm64")
	command(t, dir, "tar", "-xf", filepath.Join(out, "steer_v1.2.0_image.tar"))
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	outer, err := index.IndexManifest()
	if err != nil || len(outer.Manifests) != 1 || outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("the layout has %+v, %v", outer, err)
	}
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifests.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := inner.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != m.Platform.Architecture || config.Config.User != "65532" {
			t.Errorf("%v: the configuration is %+v, %v", m.Platform, config, err)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the image is for %v", platforms)
	}
}

// TestReleasedModulesWorkFromAProxy uses them as users do: none has a replace.
func TestReleasedModulesWorkFromAProxy(t *testing.T) {
	t.Parallel()
	repo, proxy, dir := repository(t, tree()), t.TempDir(), t.TempDir()
	mustSteer(t, repo, "proxy", "-version", version, "-out", proxy)
	for _, folder := range releasedModules() {
		name := filepath.Join(proxy, filepath.FromSlash(modulePath(folder)), "@v", version+".mod")
		mod, err := modfile.Parse(name, []byte(read(t, name)), nil)
		if err != nil || len(mod.Replace) > 0 {
			t.Errorf("%s: %v, %v", modulePath(folder), mod.Replace, err)
		}
		for _, required := range mod.Require {
			if required.Mod.Version != version {
				t.Errorf("%s requires %s", modulePath(folder), required.Mod)
			}
		}
	}
	env := []string{"GOPROXY=" + fileURL(proxy), "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOMODCACHE=" + filepath.Join(dir, "cache"), "GOBIN=" + filepath.Join(dir, "bin"), "GOWORK=off"}
	commandWith(t, dir, env, "go", "install", steerPath+"/cmd/steer@latest")
	if got := command(t, dir, filepath.Join(dir, "bin", "steer")); got != version {
		t.Errorf("steer is of version %q", got)
	}
	write(t, filepath.Join(dir, "user", "main.go"), "package main\n\nimport (\n\t\""+steerPath+"/interop\"\n\t\""+steerPath+"/trace/otel\"\n)\n\nfunc main() { print(interop.Name, otel.Name) }\n")
	user := filepath.Join(dir, "user")
	commandWith(t, user, env, "go", "mod", "init", "example.com/user")
	commandWith(t, user, env, "go", "mod", "tidy")
	commandWith(t, user, env, "go", "build", "./...")
}

// TestModulesInstallFromAProxyWithAPrivateAuthority is the way of a company with a proxy
// of its own, whose certificate only its machines trust.
func TestModulesInstallFromAProxyWithAPrivateAuthority(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems keep authorities in a store of theirs, not in SSL_CERT_FILE")
	}
	repo, proxy, dir := repository(t, tree()), t.TempDir(), t.TempDir()
	mustSteer(t, repo, "proxy", "-version", version, "-out", proxy)
	server := httptest.NewTLSServer(http.FileServer(http.Dir(proxy)))
	t.Cleanup(server.Close)
	authority := filepath.Join(dir, "authority.pem")
	write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	cmd := exec.CommandContext(t.Context(), "go", "install", steerPath+"/cmd/steer@"+version)
	cmd.Dir = dir
	env := append(os.Environ(), "GOPROXY="+server.URL, "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOBIN="+filepath.Join(dir, "bin"))
	cmd.Env = append(env, "SSL_CERT_FILE="+filepath.Join(dir, "none.pem"), "SSL_CERT_DIR="+filepath.Join(dir, "none"))
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "certificate") {
		t.Errorf("without the authority: %v\n%s", err, out)
	}
	commandWith(t, dir, append(env, "SSL_CERT_FILE="+authority), "go", "install", steerPath+"/cmd/steer@"+version)
	if got := command(t, dir, filepath.Join(dir, "bin", "steer")); got != version {
		t.Errorf("steer is of version %q", got)
	}
}

// TestTagsAreMadeTogetherAndNameOneCommit makes them, and builds from them.
func TestTagsAreMadeTogetherAndNameOneCommit(t *testing.T) {
	t.Parallel()
	repo, dir := repository(t, tree()), t.TempDir()
	head := command(t, repo, "git", "rev-parse", "HEAD")
	out := mustSteer(t, repo, "build", "-version", version, "-out", filepath.Join(dir, "first"), "-platforms", "linux/amd64", "-tag")
	if !strings.Contains(out, "nothing is signed") {
		t.Errorf("it does not say that nothing is signed:\n%s", out)
	}
	if want := "git push --atomic origin v1.2.0 interop/v1.2.0 storage/etcd/v1.2.0 storage/sqlite/v1.2.0 trace/otel/v1.2.0"; !strings.Contains(out, want) {
		t.Errorf("the order is not said:\n%s", out)
	}
	commits := map[string]bool{}
	for _, tag := range []string{"v1.2.0", "interop/v1.2.0", "storage/etcd/v1.2.0", "storage/sqlite/v1.2.0", "trace/otel/v1.2.0"} {
		commits[command(t, repo, "git", "rev-parse", tag+"^{commit}")] = true
	}
	if len(commits) != 1 {
		t.Errorf("the tags name %v", commits)
	}
	for _, name := range []string{"interop/go.mod", "storage/etcd/go.mod", "storage/sqlite/go.mod", "trace/otel/go.mod"} {
		if text := command(t, repo, "git", "show", version+":"+name); strings.Contains(text, "replace") || !strings.Contains(text, steerPath+" "+version) {
			t.Errorf("%s is released as:\n%s", name, text)
		}
	}
	sums := command(t, repo, "git", "show", version+":interop/go.sum")
	if !strings.HasPrefix(sums, steerPath+" "+version+" h1:") {
		t.Errorf("go.sum is released as:\n%s", sums)
	}
	if now := command(t, repo, "git", "rev-parse", "HEAD"); now != head || command(t, repo, "git", "status", "--porcelain") != "" {
		t.Error("the branch or the working tree has changed")
	}
	// The tag is a release of its own: the same files come of it, and no other tags.
	command(t, repo, "git", "checkout", "-q", version)
	mustSteer(t, repo, "build", "-out", filepath.Join(dir, "second"), "-platforms", "linux/amd64")
	first, second := files(t, filepath.Join(dir, "first")), files(t, filepath.Join(dir, "second"))
	for name := range first {
		if strings.HasSuffix(name, "_image.tar") || name == checksumsFile {
			continue // the image names its commit
		}
		if first[name] != second[name] {
			t.Errorf("%s differs between commit and tag", name)
		}
	}
	if _, err := steer(t, repo, "build", "-version", version, "-out", filepath.Join(dir, "third"), "-platforms", "linux/amd64", "-tag"); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second tag: %v", err)
	}
}

// TestTagsAreMadeForAllModulesOrNone has git refuse one in the middle: a tag of the name of
// its folder.
func TestTagsAreMadeForAllModulesOrNone(t *testing.T) {
	t.Parallel()
	repo := repository(t, tree())
	command(t, repo, "git", "tag", "storage/etcd")
	r, err := newRelease(t.Context(), repo, "HEAD", version)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.tag(t.Context(), "", io.Discard); err == nil {
		t.Fatal("a tag is a folder of tags")
	}
	if tags := command(t, repo, "git", "tag"); tags != "storage/etcd" {
		t.Errorf("tags are left: %s", tags)
	}
	command(t, repo, "git", "tag", "--delete", "storage/etcd")
	if err := r.tag(t.Context(), "", io.Discard); err != nil {
		t.Errorf("again: %v", err)
	}
}

// TestChecksumsAreSignedByTheKey verifies with OpenSSH, as users do. A key that does not
// sign leaves no files.
func TestChecksumsAreSignedByTheKey(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("OpenSSH is not installed")
	}
	repo, dir := repository(t, tree()), t.TempDir()
	key, out := filepath.Join(dir, "key"), filepath.Join(dir, "out")
	command(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	if _, err := steer(t, repo, "build", "-version", version, "-out", out, "-platforms", "linux/amd64", "-key", key+".none"); err == nil {
		t.Error("a key that is not there signs")
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unsigned files are there: %v", err)
	}
	mustSteer(t, repo, "build", "-version", version, "-out", out, "-platforms", "linux/amd64", "-key", key, "-tag")
	write(t, filepath.Join(dir, "signers"), "release@steer.dev "+read(t, key+".pub"))
	verify := func(text string) error {
		cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-f", filepath.Join(dir, "signers"), "-I", "release@steer.dev",
			"-n", "file", "-s", filepath.Join(out, checksumsFile+".sig"))
		cmd.Stdin = strings.NewReader(text)
		return cmd.Run()
	}
	sums := read(t, filepath.Join(out, checksumsFile))
	if err := verify(sums); err != nil {
		t.Errorf("the signature: %v", err)
	}
	if err := verify(sums + "x"); err == nil {
		t.Error("changed checksums are signed, too")
	}
	command(t, repo, "git", "-c", "gpg.ssh.allowedSignersFile="+filepath.Join(dir, "signers"), "verify-tag", version, "interop/"+version)
}

// TestBuildRefusesWhatIsNotReady has a line for every reason.
func TestBuildRefusesWhatIsNotReady(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	attempt := func(change func(map[string]string), args ...string) func(*testing.T) error {
		return func(t *testing.T) error {
			files := tree()
			change(files)
			repo := repository(t, files)
			if slices.Contains(args, "dirty") {
				write(t, filepath.Join(repo, "new.go"), "package steer\n")
			}
			if slices.Contains(args, "later") {
				command(t, repo, "git", "tag", "v1.2.1")
			}
			_, err := steer(t, repo, append([]string{"build", "-out", out}, slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "dirty" || a == "later" })...)...)
			return err
		}
	}
	same := func(map[string]string) {}
	for want, build := range map[string]func(*testing.T) error{
		"HEAD has no tag":                attempt(same),
		"is no version":                  attempt(same, "-version", "1.2"),
		"the working tree has changes":   attempt(same, "-version", version, "dirty"),
		"v1.2.1 is released already":     attempt(same, "-version", version, "later"),
		"has no section v1.3.0":          attempt(same, "-version", "v1.3.0"),
		"-platforms has \"plan9/amd64\"": attempt(same, "-version", version, "-platforms", "plan9/amd64"),
		"entries stand under Unreleased": attempt(func(files map[string]string) {
			files[changelogFile] = strings.Replace(files[changelogFile], "## Unreleased\n", "## Unreleased\n\n- More.\n", 1)
		}, "-version", version),
		"go.mod replaces example.com/fork": attempt(func(files map[string]string) {
			files["go.mod"] += "\nreplace example.com/fork => example.com/other v1.0.0\n"
		}, "-version", version),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if err := build(t); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestCutNamesTheVersionInTheChangelog, keeps the list of the stable API, and makes the
// project that later versions upgrade.
func TestCutNamesTheVersionInTheChangelog(t *testing.T) {
	t.Parallel()
	tree := tree()
	tree[changelogFile] = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A command.\n\n## v1.1.0 - 2026-01-01\n\n- Old.\n"
	repo := repository(t, tree)
	mustSteer(t, repo, "cut", "-version", version)
	text := read(t, filepath.Join(repo, changelogFile))
	if !regexp.MustCompile(`(?s)^# Changelog\n\n## Unreleased\n\n## v1\.2\.0 - \d{4}-\d\d-\d\d\n\n### Added\n\n- A command\.\n\n## v1\.1\.0 - `).MatchString(text) {
		t.Errorf("got:\n%s", text)
	}
	if err := checkChangelog(text, version); err != nil {
		t.Error(err)
	}
	if got := read(t, filepath.Join(repo, releasedFile)); got != "# v1.2.0\n.: const Name\n" {
		t.Errorf("the released list is %q", got)
	}
	for _, again := range []string{version, "v1.3.0"} {
		if _, err := steer(t, repo, "cut", "-version", again); err == nil {
			t.Errorf("%s is cut with nothing to release", again)
		}
	}
	projects := filepath.Join(repo, filepath.FromSlash(projectsFolder))
	if made, err := os.ReadDir(projects); err != nil || len(made) != 1 || made[0].Name() != version {
		t.Fatalf("there are the projects %v, %v", made, err)
	}
	want := map[string]string{
		"PROJECT": "init --domain\ncreate api\ncreate webhook\ncreate api\ncreate webhook\n",
		"go.mod":  "module x\n",
	}
	if got := files(t, filepath.Join(projects, version)); !maps.Equal(got, want) {
		t.Errorf("the project is %q", got)
	}
}

// TestLicensesAreRecognised by their words, wrapped in any way.
func TestLicensesAreRecognised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Apache License\n  Version 2.0, January 2004":                                                                        {"Apache-2.0"},
		"Permission is hereby granted,\nfree of charge, to":                                                                  {"MIT"},
		"Redistribution and use in source and binary forms ... Neither the name":                                             {"BSD-3-Clause"},
		"Redistribution and use in source and binary forms, with":                                                            {"BSD-2-Clause"},
		"Permission to use, copy, modify, and/or distribute this software for":                                               {"ISC"},
		"Mozilla Public License Version 2.0":                                                                                 {"MPL-2.0"},
		"Permission is hereby granted, free of charge, ... Licensed under the Apache License, Version 2.0 (the \"License\")": {"Apache-2.0", "MIT"},
		"All rights reserved.": nil,
	} {
		if got := licensesIn(text); !slices.Equal(got, want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// TestSBOMListsWhatIsLinked reads it back.
func TestSBOMListsWhatIsLinked(t *testing.T) {
	t.Parallel()
	r := &release{version: version}
	one := part{sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", license: "Apache-2.0 AND MIT"}
	one.Path, one.Version.Version = "example.com/one", "v1.0.0"
	f, err := r.sbom([]part{one})
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(f.data), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	c := (*bom.Components)[0]
	if bom.Metadata.Component.PackageURL != "pkg:golang/"+steerPath+"@"+version || c.PackageURL != "pkg:golang/example.com/one@v1.0.0" ||
		(*c.Licenses)[0].Expression != one.license || !strings.HasPrefix((*c.Hashes)[0].Value, "000102030405") {
		t.Errorf("got %s", f.data)
	}
}

// TestModulesForUsersAreReleased keeps the list equal to the table of docs/depend.md.
func TestModulesForUsersAreReleased(t *testing.T) {
	t.Parallel()
	listed := []string{steerPath}
	for _, m := range regexp.MustCompile("(?m)^\\| `("+steerPath+"/[^`]+)` \\|").FindAllStringSubmatch(read(t, "../docs/depend.md"), -1) {
		listed = append(listed, m[1])
	}
	var released []string
	for _, folder := range releasedModules() {
		released = append(released, modulePath(folder))
	}
	slices.Sort(listed)
	slices.Sort(released)
	if !slices.Equal(listed, released) {
		t.Errorf("docs/depend.md lists %v, released are %v", listed, released)
	}
}
