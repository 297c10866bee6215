// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

// SetProtocol makes a server one of another version. It is called before its first request.
func (s *Server) SetProtocol(version string) { s.protocol = version }
