// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves the page of an operator: what fails, is stuck or keeps itself
// busy, the attempts of each object and what caused them, what comes next. It shows the
// records of a flight recorder, of a running operator or of files, and changes nothing.
//
// An operator has it only where its author adds it, and links none of it otherwise:
//
//	err = dashboard.Add(m, dashboard.Options{Address: "127.0.0.1:8082"})
//
// Others make a [Page] of a [Source], and serve it on loopback with [Page.Listen]. What a
// page shows is worked out when it is asked for, from the records that have come since: a
// page that no browser looks at costs nothing but its memory, and has no goroutine.
package dashboard
