// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/storage"
)

// continuation is where the next page of a list begins. Clients may use a token after
// an upgrade: its JSON must stay compatible.
type continuation struct {
	Version string `json:"v"`
	// Revision at which all pages are read; -1 for the newest.
	Revision int64  `json:"rv"`
	Start    string `json:"start"`
}

const continuationVersion = "meta.k8s.io/v1"

// newestRevision continues a list at the newest revision, which makes the pages
// inconsistent.
const newestRevision = -1

func (c continuation) encode() string {
	c.Version = continuationVersion
	raw, _ := json.Marshal(c) // cannot fail: strings and a number
	return base64.RawURLEncoding.EncodeToString(raw)
}

// decodeContinuation decodes a token and refuses one that points outside of the listed
// collection.
func decodeContinuation(token string) (c continuation, err error) {
	bad := func(format string, args ...any) (continuation, error) {
		return continuation{}, apierrors.NewBadRequest("invalid continue token: continue key is not valid" + fmt.Sprintf(format, args...))
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return bad(": %v", err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return bad(": %v", err)
	}
	if c.Version != continuationVersion {
		return bad(": server does not recognize this encoded version %v", c.Version)
	}
	if c.Revision == 0 {
		return bad(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	}
	if c.Start == "" {
		return bad(": encoded start key empty (version meta.k8s.io/v1)")
	}
	key := "/" + strings.TrimPrefix(c.Start, "/")
	if path.Clean(key) != key {
		return bad(": %v", c.Start)
	}
	c.Start = key[1:]
	return c, nil
}

const (
	tooOldList     = "The resourceVersion for the provided list is too old."
	tooOldContinue = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between " +
		"the time the first chunk was returned and now may show up in the list."
)

// expiredList is the 410 for a compacted revision; with a start it carries the token
// that continues the list at the newest revision.
func expiredList(start string) error {
	if start == "" {
		return apierrors.NewResourceExpired(tooOldList)
	}
	err := apierrors.NewResourceExpired(tooOldContinue)
	err.ErrStatus.ListMeta.Continue = continuation{Revision: newestRevision, Start: start}.encode()
	return err
}

// isExpired reports whether the store has compacted a revision.
func isExpired(err error) bool { return errors.Is(err, storage.ErrCompacted) }
