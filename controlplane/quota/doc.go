// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota enforces ResourceQuotas: an admission that charges them, and a
// controller that keeps their status true.
//
// What a quota has left is in its status. The [Admission] adds what an object is
// going to take up to status.used, with the resourceVersion as precondition,
// before the object is stored: of two creations that together are too much, one
// finds the quota used up. The [Controller] counts what is there and corrects
// status.used after deletions, and after creations that came to nothing.
//
// Between the charge and the write that it was made for, the object is in the
// quota and not yet in the store. A [Ledger] remembers such charges, so that the
// controller does not take them for mistakes: what it writes is what is stored
// and what is about to be.
package quota
