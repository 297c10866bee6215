// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording keeps the records of a flight recorder in files, so that they
// outlive the process: [Writer] writes them, [Open] reads them.
//
// A directory has segments, which are bounded, and so is their sum: the oldest are
// deleted. A segment is a header with the version of the format, and frames with a
// checksum each; it is never changed but at its end, so that what a killed process leaves
// can be read up to its last whole frame. Beside a complete segment is an index by
// object; a segment without one is read as a whole.
//
// Nothing waits for the disk: the writer reads what the recorder has in memory, and what
// the recorder had to overwrite meanwhile is dropped and counted, in the next record as
// its Missed. Files hold what records hold, and are for their owner alone.
package recording
