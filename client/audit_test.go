// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
)

// text is an id of any form.
type text string

func (s text) String() string { return string(s) }

func TestRequestsCarryTheAuditIDOfTheirContext(t *testing.T) {
	t.Parallel()
	var got []string
	c, _ := newClient(t, func(r *http.Request, body []byte) *http.Response {
		got = append(got, strings.Join(r.Header.Values("Audit-ID"), ","))
		return echo(r, body)
	}, client.Options{})
	id := text("9f3c21aa65a1b2c3-42")
	for _, ctx := range []struct {
		id   interface{ String() string }
		want string
	}{
		{nil, ""}, {id, string(id)}, {text("a b"), ""}, {text("a\r\nb"), ""}, {text(strings.Repeat("x", 64)), strings.Repeat("x", 64)}, {text(strings.Repeat("x", 65)), ""},
	} {
		request := t.Context()
		if ctx.id != nil {
			request = wire.WithAuditID(request, ctx.id)
		}
		if err := c.Update(request, configMap()); err != nil {
			t.Fatal(err)
		}
		if last := got[len(got)-1]; last != ctx.want {
			t.Errorf("the request has the id %q, not %q", last, ctx.want)
		}
	}
}
