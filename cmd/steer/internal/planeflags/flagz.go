// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags

import "github.com/spf13/pflag"

// Values returns the flags of a command with their values, for /flagz. No flag of ours has a
// secret for its value: those that need one name a file.
func Values(f *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	f.VisitAll(func(flag *pflag.Flag) { out[flag.Name] = flag.Value.String() })
	return out
}
