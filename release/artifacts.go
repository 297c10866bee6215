// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

const (
	checksumsFile = "SHA256SUMS"
	signatureFile = checksumsFile + ".sig"
	licensesFile  = "THIRD_PARTY_LICENSES"
)

// artifacts are the files of a release: an archive for every system, image, SBOM,
// licenses, and checksums of all. The same commit and the same Go give the same bytes.
func (r *release) artifacts(binaries []binary, parts []part) (map[string]file, error) {
	licenses := []byte(licenseTexts(parts))
	files := map[string]file{licensesFile: {licenses, 0o644}}
	for _, b := range binaries {
		content := []zipFile{
			{"LICENSE", file{r.files["LICENSE"].data, 0o644}},
			{licensesFile, file{licenses, 0o644}},
		}
		for _, p := range b.programs {
			content = append(content, zipFile{p.name, file{p.data, 0o755}})
		}
		base := fmt.Sprintf("steer_%s_%s_%s", r.version, b.system, b.architecture)
		pack, suffix := tarGzip, ".tar.gz"
		if b.system == "windows" {
			pack, suffix = zipArchive, ".zip"
		}
		data, err := pack(content, r.time)
		if err != nil {
			return nil, err
		}
		files[base+suffix] = file{data, 0o644}
	}
	var err error
	if files["steer_"+r.version+"_sbom.cdx.json"], err = r.sbom(parts); err != nil {
		return nil, err
	}
	image, err := r.image(binaries, licenses)
	if err != nil {
		return nil, err
	}
	if image != nil {
		files["steer_"+r.version+"_image.tar"] = file{image, 0o644}
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name].data), name)
	}
	files[checksumsFile] = file{[]byte(sums.String()), 0o644}
	return files, nil
}

// tarGzip is a compressed tar archive, with one time for all files.
func tarGzip(files []zipFile, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTar(tar.NewWriter(compressor), files, at); err != nil {
		return nil, err
	}
	err = compressor.Close()
	return out.Bytes(), err
}

func writeTar(w *tar.Writer, files []zipFile, at time.Time) error {
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: at, Typeflag: tar.TypeReg}
		if f.mode.IsDir() {
			header.Typeflag, header.Mode = tar.TypeDir, int64(f.mode.Perm())
			if f.mode&os.ModeSticky != 0 {
				header.Mode |= 0o1000
			}
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}

func zipArchive(files []zipFile, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// sbom is a software bill of materials in the form of CycloneDX.
func (r *release) sbom(parts []part) (file, error) {
	steer := cyclonedx.Component{
		BOMRef: purl(steerPath, r.version), Type: cyclonedx.ComponentTypeApplication, Name: steerPath, Version: r.version,
		PackageURL: purl(steerPath, r.version), Licenses: licenseChoices("Apache-2.0"),
	}
	var components []cyclonedx.Component
	var refs []string
	digest := sha256.New()
	for _, p := range parts {
		c := cyclonedx.Component{
			BOMRef: purl(p.Path, p.Version.Version), Type: cyclonedx.ComponentTypeLibrary, Name: p.Path, Version: p.Version.Version,
			PackageURL: purl(p.Path, p.Version.Version), Licenses: licenseChoices(p.license),
		}
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.sum, "h1:")); p.sum != "" && err == nil {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}}
		}
		components, refs = append(components, c), append(refs, c.BOMRef)
		fmt.Fprintln(digest, c.BOMRef)
	}
	id := digest.Sum(nil)
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID made of the contents
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &steer}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: steer.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return file{out.Bytes(), 0o644}, err
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

func licenseChoices(license string) *cyclonedx.Licenses {
	if strings.Contains(license, " ") {
		return &cyclonedx.Licenses{{Expression: license}}
	}
	return &cyclonedx.Licenses{{License: &cyclonedx.License{ID: license}}}
}

// sign is the signature of a file, for which it is written under a name. ssh-keygen asks
// ssh-agent and security keys where the key is there. To verify:
//
//	ssh-keygen -Y verify -f ALLOWED_SIGNERS -I IDENTITY -n file -s SHA256SUMS.sig <SHA256SUMS
func sign(ctx context.Context, key, name string, f file) (file, error) {
	if err := os.WriteFile(name, f.data, f.mode); err != nil {
		return file{}, err
	}
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-Y", "sign", "-f", key, "-n", "file", name)
	cmd.Stdin = os.Stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return file{}, commandError(cmd, err, out)
	}
	signature, err := os.ReadFile(name + ".sig")
	return file{signature, f.mode}, err
}

func removeAll(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "release: cannot remove:", err)
	}
}
