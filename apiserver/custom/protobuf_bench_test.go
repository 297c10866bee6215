// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/custom"
	boats "github.com/steer-dev/steer/apiserver/custom/testdata/boats/v1"
	"github.com/steer-dev/steer/storage"
)

// BenchmarkForms writes and lists boats in JSON and in protobuf: the server's work, and for
// lists that of a client that decodes them.
func BenchmarkForms(b *testing.B) {
	store := storage.NewMemory(storage.MemoryOptions{})
	defer store.Close()
	server, err := apiserver.New(apiserver.Options{Store: store, Authorizer: auth.AllowAll{}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Stop(context.Background()) }() // the benchmark has ended
	r, err := custom.Kind[*boats.Boat]{Definition: []byte(boatDefinition)}.Resource()
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Install(r); err != nil {
		b.Fatal(err)
	}
	rt := server.RoundTripper(&auth.User{Name: "ann"})
	send := func(method, path, media string, body []byte, want int) []byte {
		q, err := http.NewRequestWithContext(b.Context(), method, "https://in-process"+path, strings.NewReader(string(body)))
		if err != nil {
			b.Fatal(err)
		}
		q.Header.Set("Content-Type", media)
		q.Header.Set("Accept", media)
		answer, err := rt.RoundTrip(q)
		if err != nil {
			b.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != want {
			b.Fatal(answer.StatusCode, string(text), err)
		}
		return text
	}
	body := func(media string, o *boats.Boat) (out []byte) {
		o.TypeMeta = metav1.TypeMeta{APIVersion: boatsV1.String(), Kind: "Boat"}
		if media != protobuf {
			out, err = json.Marshal(o)
			return out
		}
		raw, err := o.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		out, err = (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: boatsV1.String(), Kind: "Boat"}, Raw: raw}).Marshal()
		if err != nil {
			b.Fatal(err)
		}
		return append([]byte("k8s\x00"), out...)
	}
	for i := range 500 {
		send("POST", boatsPath, "application/json", body("application/json", full(fmt.Sprint("b", i))), 201)
	}
	for name, media := range map[string]string{"json": "application/json", "protobuf": protobuf} {
		b.Run("create/"+name, func(b *testing.B) {
			o := full("")
			o.GenerateName = "new-"
			data := body(media, o)
			for b.Loop() {
				send("POST", boatsPath+"?dryRun=All", media, data, 201)
			}
		})
		b.Run("list500/"+name, func(b *testing.B) {
			var size int
			for b.Loop() {
				size = len(send("GET", boatsPath, media, nil, 200))
			}
			b.ReportMetric(float64(size), "bytes")
		})
		b.Run("list500decoded/"+name, func(b *testing.B) {
			for b.Loop() {
				text, list := send("GET", boatsPath, media, nil, 200), &boats.BoatList{}
				if media != protobuf {
					err = json.Unmarshal(text, list)
				} else {
					var unknown runtime.Unknown
					if err = unknown.Unmarshal(text[4:]); err == nil {
						err = list.Unmarshal(unknown.Raw)
					}
				}
				if err != nil || len(list.Items) != 500 {
					b.Fatal(len(list.Items), err)
				}
			}
		})
	}
}
