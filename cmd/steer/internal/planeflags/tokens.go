// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags

import (
	"fmt"
	"os"

	"github.com/steer-dev/steer/controlplane"
)

// ReadTokens adds the users of a file with bearer tokens to the options; no name is no file.
func ReadTokens(options *controlplane.Options, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read the token file: %w", err)
	}
	defer file.Close()
	options.Authentication.Tokens, err = controlplane.ReadTokens(file)
	return err
}
