// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

// ApplyKilledAt is [Apply] by a process that is killed at its n-th change of the disk. It
// reports whether there are so many.
func ApplyKilledAt(n int, changes []Change) (killed bool, err error) {
	type kill struct{}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case kill:
			killed = true
		default:
			panic(r)
		}
	}()
	const none = 1 << 30 // no system gives this number to a process
	w := &writer{pid: none, step: func() {
		if n--; n < 0 {
			panic(kill{})
		}
	}}
	return false, w.apply(changes)
}
