// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/steer-dev/steer/bench/browser"
)

// Pictures writes those of the docs into a directory: four views of a [Subject] that has run for
// two minutes, in both themes.
func Pictures(ctx context.Context, b *browser.Browser, steer, root, out string) (err error) {
	subject, err := Open(ctx, steer, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, subject.Close()) }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(2 * time.Minute):
	}
	tab, err := b.Tab(ctx, true)
	if err != nil {
		return err
	}
	if err := errors.Join(tab.Go(ctx, subject.URL), os.MkdirAll(out, 0o755)); err != nil {
		return err
	}
	const object = "/object?group=example.com&kind=Fleet&namespace=default&name=search"
	for _, view := range []struct {
		name, at      string
		width, height int
	}{{"pulse", "/", 1280, 860}, {"object", object, 1280, 860}, {"queue", "/queue", 1280, 720}, {"tree", object + "&view=tree", 1280, 620}} {
		for _, theme := range []string{"light", "dark"} {
			if err := errors.Join(tab.Size(ctx, view.width, view.height), tab.Theme(ctx, theme == "dark"), tab.Go(ctx, origin(subject.URL)+view.at)); err != nil {
				return err
			}
			if err := errors.Join(tab.Until(ctx, painted), tab.Until(ctx, `document.getElementById("state").innerText.includes("Live")`)); err != nil {
				return err
			}
			picture, err := tab.Picture(ctx)
			if err != nil {
				return err
			}
			if picture, err = small(picture); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(out, view.name+"-"+theme+".png"), picture, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// small is a picture with the 256 colours that it has most of, which is enough for text.
func small(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	count := map[color.Color]int{}
	for y := from.Bounds().Min.Y; y < from.Bounds().Max.Y; y++ {
		for x := from.Bounds().Min.X; x < from.Bounds().Max.X; x++ {
			count[from.At(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	to := image.NewPaletted(from.Bounds(), most[:min(len(most), 256)])
	draw.Draw(to, to.Bounds(), from, from.Bounds().Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}
