// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release of Steer: it writes the section of the changelog, the
// tags of all modules, and the files to publish. It pushes nothing, and tags only with
// -tag.
//
//	release cut -version v1.2.0      the changes that a release needs, to review and commit
//	release build -version v1.2.0    binaries, image, checksums, SBOM, licences
//	release proxy -version v1.2.0    a module proxy in a folder, to try the modules
//	release api                      what changed in the stable API since the last release
//
// A released module has no replace directive. The repository needs them, so a release is
// a commit of its own beside the branch, in which they are taken out; all tags name it.
package main
