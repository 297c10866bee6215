// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Read returns the body of a request and closes it. A body longer than limit bytes is a
// 413; 0 means no limit. A body that does not arrive before the read deadline is a
// [context.DeadlineExceeded].
func Read(r *http.Request, limit int64) ([]byte, error) {
	defer func() { _ = r.Body.Close() }()
	var from io.Reader = r.Body
	if limit > 0 {
		from = io.LimitReader(from, limit+1)
	}
	size := r.ContentLength
	if size < 0 || limit > 0 && size > limit {
		size = 512
	}
	buffer := make([]byte, 0, size+1)
	for {
		n, err := from.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", tooLarge.Limit))
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, fmt.Errorf("read the body: %w", context.DeadlineExceeded)
			}
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the body could not be read: %v", err))
		}
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
	}
	if limit > 0 && int64(len(buffer)) > limit {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
	}
	return buffer, nil
}
