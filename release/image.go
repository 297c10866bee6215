// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	imageUser = 65532 // nonroot, as in the images of distroless
	imageData = "/data"
	imagePort = "6443"
)

// image is steer up as a container image for the Linux binaries: an OCI layout in a tar
// archive, which docker load, podman load and skopeo oci-archive: read. It is nil
// without a binary for Linux.
func (r *release) image(binaries []binary, licenses []byte) ([]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	found := false
	for _, b := range binaries {
		if b.system != "linux" {
			continue
		}
		found = true
		image, err := r.imageOf(b, licenses)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.system, Architecture: b.architecture}},
		})
	}
	if !found {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "steer-image-")
	if err != nil {
		return nil, err
	}
	defer removeAll(dir)
	outer := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version}},
	})
	if _, err := layout.Write(dir, outer); err != nil {
		return nil, err
	}
	var files []zipFile
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		files = append(files, zipFile{filepath.ToSlash(rel), file{data, 0o644}})
		return err
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = writeTar(tar.NewWriter(&out), files, r.time)
	return out.Bytes(), err
}

// imageOf is the image for one architecture. It has no shell and no root: data is in a
// folder that a volume can take the place of.
func (r *release) imageOf(b binary, licenses []byte) (v1.Image, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, dir := range []struct {
		name  string
		mode  int64
		owner int
	}{{"data/", 0o700, imageUser}, {"tmp/", 0o1777, 0}} {
		header := &tar.Header{Name: dir.name, Typeflag: tar.TypeDir, Mode: dir.mode, Uid: dir.owner, Gid: dir.owner, ModTime: r.time}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	files := []zipFile{
		{"LICENSE", file{r.files["LICENSE"].data, 0o644}},
		{licensesFile, file{licenses, 0o644}},
	}
	for _, p := range b.programs {
		files = append(files, zipFile{p.name, file{p.data, 0o755}})
	}
	if err := writeTar(w, files, r.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "steer release"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	r.configure(config, b)
	return mutate.ConfigFile(image, config)
}

// configure says how a container of the image runs.
func (r *release) configure(config *v1.ConfigFile, b binary) {
	config.OS, config.Architecture, config.Created = b.system, b.architecture, v1.Time{Time: r.time}
	config.Config = v1.Config{
		User:         strconv.Itoa(imageUser),
		Entrypoint:   []string{"/steer"},
		Cmd:          []string{"up", "--listen=0.0.0.0:" + imagePort, "--data-dir=" + imageData},
		ExposedPorts: map[string]struct{}{imagePort + "/tcp": {}},
		Volumes:      map[string]struct{}{imageData: {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "steer", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://" + steerPath,
			"org.opencontainers.image.revision": r.parent,
		},
	}
}
