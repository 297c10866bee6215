// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/moby/spdystream/spdy"
)

// written is a connection that was written before it is read.
type written struct {
	net.Conn
	bytes.Buffer
}

func (w *written) Read(p []byte) (int, error)  { return w.Buffer.Read(p) }
func (w *written) Write(p []byte) (int, error) { return w.Buffer.Write(p) }

func TestFramesOfDataAreSplitAndStayTheSame(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, maxData - 1, maxData, maxData + 1, 3*maxData + 7, 1<<24 - 1} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i * 31)
		}
		var wire written
		client, err := spdy.NewFramer(&wire, &wire)
		if err != nil {
			t.Fatal(err)
		}
		for _, frame := range []spdy.Frame{
			&spdy.SettingsFrame{FlagIdValues: []spdy.SettingsFlagIdValue{{Id: 4, Value: 100}}},
			&spdy.SynStreamFrame{StreamId: 3, Headers: http.Header{"Port": {"7"}}},
			&spdy.WindowUpdateFrame{StreamId: 3, DeltaWindowSize: 9},
			&spdy.PingFrame{Id: 5},
			&spdy.DataFrame{StreamId: 3, Data: data, Flags: spdy.DataFlagFin},
			&spdy.RstStreamFrame{StreamId: 3, Status: spdy.Cancel},
			&spdy.GoAwayFrame{LastGoodStreamId: 2},
		} {
			if err := client.WriteFrame(frame); err != nil {
				t.Fatal(err)
			}
		}
		bounded := newFrames(&wire, nil)
		server, err := spdy.NewFramer(io.Discard, bounded)
		if err != nil {
			t.Fatal(err)
		}
		var got, others []byte
		ended := false
		for {
			frame, err := server.ReadFrame()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch frame := frame.(type) {
			case *spdy.DataFrame:
				if frame.StreamId != 3 || len(frame.Data) > maxData || ended {
					t.Fatalf("%d bytes for the stream %d, behind the end: %t", len(frame.Data), frame.StreamId, ended)
				}
				got, ended = append(got, frame.Data...), frame.Flags&spdy.DataFlagFin != 0
			case *spdy.SynStreamFrame:
				others = append(others, 's')
			case *spdy.PingFrame:
				others = append(others, 'p')
			case *spdy.RstStreamFrame:
				others = append(others, 'r')
			case *spdy.GoAwayFrame:
				others = append(others, 'g')
			default:
				t.Errorf("%T", frame)
			}
		}
		if !bytes.Equal(got, data) || !ended || string(others) != "sprg" {
			t.Errorf("%d bytes: got %d, ended %t, other frames %s", size, len(got), ended, others)
		}
	}
}

func TestFramesThatClientsDoNotSendEndTheConnection(t *testing.T) {
	t.Parallel()
	opening := func(ids ...spdy.StreamId) (out []spdy.Frame) {
		for _, id := range ids {
			out = append(out, &spdy.SynStreamFrame{StreamId: id, Headers: http.Header{"A": {"b"}}})
		}
		return out
	}
	for name, frames := range map[string][]spdy.Frame{
		"a stream a second time":     opening(1, 1),
		"a stream of a smaller id":   opening(5, 3),
		"a stream of a server's id":  opening(2),
		"more headers for a stream":  append(opening(1), &spdy.HeadersFrame{StreamId: 1, Headers: http.Header{"A": {"b"}}}),
		"a reply":                    {&spdy.SynReplyFrame{StreamId: 1, Headers: http.Header{"A": {"b"}}}},
		"settings that are too long": {&spdy.SettingsFrame{FlagIdValues: make([]spdy.SettingsFlagIdValue, maxControl/8)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wire written
			client, err := spdy.NewFramer(&wire, &wire)
			if err != nil {
				t.Fatal(err)
			}
			for _, frame := range frames {
				if err := client.WriteFrame(frame); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.Copy(io.Discard, newFrames(&wire, nil)); !errors.Is(err, errFrame) {
				t.Errorf("read: %v", err)
			}
		})
	}
}

func TestFramesThatOpenStreamsWaitForTheOnesBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wire written
		client, err := spdy.NewFramer(&wire, &wire)
		if err != nil {
			t.Fatal(err)
		}
		for i := range maxOpening + 1 {
			if err := client.WriteFrame(&spdy.SynStreamFrame{StreamId: spdy.StreamId(1 + 2*i), Headers: http.Header{"A": {"b"}}}); err != nil {
				t.Fatal(err)
			}
		}
		bounded := newFrames(&wire, nil)
		read := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, bounded)
			read <- err
		}()
		synctest.Wait()
		select {
		case err := <-read:
			t.Fatalf("%d streams were read at once: %v", maxOpening+1, err)
		default:
		}
		bounded.opened()
		if err := <-read; err != nil {
			t.Error(err)
		}
	})
}
