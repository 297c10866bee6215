// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// Entropy is the source of randomness in a server's answers. Implementations are safe
// for concurrent use. Keys and tokens never come from here.
type Entropy interface {
	// UID returns a random (version 4) UUID.
	UID() types.UID
	// AuditID returns a random UUID for the Audit-Id header, from a sequence of its
	// own: the number and order of requests do not change the UIDs of objects.
	AuditID() types.UID
	// Suffix returns n characters for the end of a generated name.
	Suffix(n int) string
	// Jitter returns a duration in [0, limit); 0 when limit is not positive.
	Jitter(limit time.Duration) time.Duration
}

// suffixAlphabet has no vowels and no digits that look like letters, so that suffixes
// do not form words.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// RandomEntropy returns the entropy for production, seeded from crypto/rand.
func RandomEntropy() Entropy {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails: the runtime aborts instead
	return newEntropy(seed)
}

// SeededEntropy returns the entropy for deterministic runs: the same sequence
// of calls gives the same sequence of answers.
func SeededEntropy(seed uint64) Entropy {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return newEntropy(key)
}

type entropy struct {
	mu            sync.Mutex
	chance, audit *rand.ChaCha8
}

func newEntropy(key [32]byte) *entropy {
	e := &entropy{chance: rand.NewChaCha8(key)}
	key[31] ^= 1
	e.audit = rand.NewChaCha8(key)
	return e
}

func (e *entropy) UID() types.UID { return e.uuid(e.chance) }

func (e *entropy) AuditID() types.UID { return e.uuid(e.audit) }

func (e *entropy) uuid(from *rand.ChaCha8) types.UID {
	var id uuid.UUID
	e.mu.Lock()
	_, _ = from.Read(id[:]) // never fails
	e.mu.Unlock()
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // RFC 4122
	return types.UID(id.String())
}

func (e *entropy) Suffix(n int) string {
	out := make([]byte, n)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range out {
		out[i] = suffixAlphabet[e.chance.Uint64()%uint64(len(suffixAlphabet))]
	}
	return string(out)
}

func (e *entropy) Jitter(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Duration(e.chance.Uint64() % uint64(limit))
}
