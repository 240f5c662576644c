package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// reference is a page of testdata/pictures, in four sizes, light and dark.
type reference struct {
	name, file, hash string
	args             []string
}

const torch = "../../../../testdata/fixtures/torch2.15/"

var references = []reference{
	{"resnet18", "testdata/resnet18.pt2", "", models["resnet18.pt2"]},
	{"bert", "testdata/bert.pt2", "", models["bert.pt2"]},
	{"search", "testdata/search.pt", "view=graph&open=@0,@0.0", models["search.pt"]},
	{"quantized", "testdata/quantized.pt", "view=numbers", models["quantized.pt"]},
	{"refused", "testdata/refused.pt", "view=code", models["refused.pt"]},
	{"attention", torch + "attention.pt2", "view=code", nil},
	{"convnet", torch + "convnet.script.pt", "view=cost", []string{"--input", "x:f32[N,3,18,18]"}},
	{"words", torch + "words_gru.script.pt", "view=weights", []string{"--input", "x:i64[N,T]"}},
	{"resolution", torch + "super_resolution.script.pt", "view=graph&colour=cost", []string{"--input", "x:f32[N,1,32,32]"}},
	{"residual", torch + "residual.pt2", "view=graph&graph=0&colour=layer", nil},
}

var sizes = [][2]int{{1600, 1000}, {1280, 800}, {820, 1180}, {390, 844}}

const (
	// A browser of another version draws letters otherwise: so many pixels of a thousand may differ by more than a little.
	pixelLimit = 4.0
	// Firefox has other letters and widgets: so many squares of 20 pixels of a hundred may differ in their middle colour.
	squareLimit = 4.0
)

func (r reference) url(t *testing.T) string {
	args := r.args
	if r.name != "refused" {
		args = append([]string{"--random"}, args...)
	}
	return pageOf(t, r.file, args...) + "#" + r.hash
}

func picture(t *testing.T, b []byte) image.Image {
	t.Helper()
	p, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReferences compares the pages of ten models with the pictures of testdata/pictures, in four sizes, light and dark. Where ATON_PICTURES is
// set, it writes them there.
func TestReferences(t *testing.T) {
	if len(references) != 10 {
		t.Fatalf("there are %d models", len(references))
	}
	into := os.Getenv("ATON_PICTURES")
	for _, r := range references {
		t.Run(r.name, func(t *testing.T) {
			b := newTab(t)
			url := r.url(t)
			for _, theme := range []string{"light", "dark"} {
				if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
					t.Fatal(err)
				}
				for _, size := range sizes {
					b.run(chromedp.EmulateViewport(int64(size[0]), int64(size[1])))
					b.open(url)
					b.run(chromedp.Sleep(250 * time.Millisecond)) // lists draw their rows a frame later
					if over := js[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
						t.Errorf("at %d pixels the page is %v too wide", size[0], over)
					}
					shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
					if err != nil {
						t.Fatal(err)
					}
					name := fmt.Sprintf("%s-%d-%s.png", r.name, size[0], theme)
					if into != "" {
						if err := os.WriteFile(filepath.Join(into, name), packed(t, picture(t, shot)), 0o666); err != nil {
							t.Fatal(err)
						}
						continue
					}
					compare(t, name, shot, pixelsApart, pixelLimit)
				}
			}
		})
	}
}

// The same pages in Firefox have everything in the same places.
func TestFirefox(t *testing.T) {
	f := newFirefox(t)
	for _, r := range references {
		url := r.url(t)
		for _, theme := range []string{"light", "dark"} {
			for _, size := range sizes[:3] { // a window of Firefox is not so narrow as a phone
				f.open(url, size[0], size[1])
				f.run(`const root = document.documentElement; if (root.dataset.theme !== "`+theme+`") document.querySelector("[aria-label='dark or light']").click(); return true`, new(bool))
				time.Sleep(250 * time.Millisecond)
				compare(t, fmt.Sprintf("%s-%d-%s.png", r.name, size[0], theme), f.shot(), squaresApart, squareLimit)
			}
		}
	}
	// and it works: a click, a key, a module that opens
	f.open(pageOf(t, "testdata/resnet18.pt2", "--random"), 1280, 800)
	f.run(`document.querySelector(".box.matrix").dispatchEvent(new MouseEvent("click", { bubbles: true })); return true`, new(bool))
	f.until(`document.querySelector("aside h2").innerText === "onnx::Conv" && location.hash.includes("op=")`)
	f.run(`dispatchEvent(new KeyboardEvent("keydown", { key: "4" })); return true`, new(bool))
	f.until(`document.querySelector("main").innerText.includes("Data set random")`)
	f.run(`history.back(); return true`, new(bool))
	f.until(`document.querySelector("[aria-selected=true]").id === "tab-graph"`)
}

// compare fails if a picture is further from the one of testdata/pictures than a limit. The picture is kept where ATON_DIFFERENT says.
func compare(t *testing.T, name string, shot []byte, apart func(a, b image.Image) float64, limit float64) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", "pictures", name))
	if err != nil {
		t.Error(err)
		return
	}
	far := apart(picture(t, want), picture(t, shot))
	t.Logf("%s: %.2f", name, far)
	if far > limit {
		t.Errorf("%s differs by %.2f, which is more than %v: look at both; ATON_PICTURES=testdata/pictures takes the new ones", name, far, limit)
		if dir := os.Getenv("ATON_DIFFERENT"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, t.Name()[4:9]+"-"+name), shot, 0o666); err != nil {
				t.Error(err)
			}
		}
	}
}

func difference(a, b color.Color) int {
	r1, g1, b1, _ := a.RGBA()
	r2, g2, b2, _ := b.RGBA()
	far := func(x, y uint32) int { return int(max(x, y)-min(x, y)) >> 8 }
	return max(far(r1, r2), far(g1, g2), far(b1, b2))
}

// pixelsApart is how many of a thousand pixels differ by more than a quarter of the range of a colour; 1000 for pictures of other sizes.
func pixelsApart(a, b image.Image) float64 {
	if a.Bounds().Size() != b.Bounds().Size() {
		return 1000
	}
	n, size := 0, a.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			if difference(a.At(x, y), b.At(x, y)) > 64 {
				n++
			}
		}
	}
	return 1000 * float64(n) / float64(size.X*size.Y)
}

// squaresApart is how many of a hundred squares have another middle colour; 100 for pictures of other sizes.
func squaresApart(a, b image.Image) float64 {
	const side = 20
	if a.Bounds().Size() != b.Bounds().Size() {
		return 100
	}
	middle := func(p image.Image, x, y int) color.Color {
		var sum [3]uint32
		for dy := range side {
			for dx := range side {
				r, g, b, _ := p.At(x+dx, y+dy).RGBA()
				sum[0], sum[1], sum[2] = sum[0]+r>>8, sum[1]+g>>8, sum[2]+b>>8
			}
		}
		const n = side * side
		return color.RGBA{uint8(sum[0] / n), uint8(sum[1] / n), uint8(sum[2] / n), 255}
	}
	n, all, size := 0, 0, a.Bounds().Size()
	for y := 0; y+side <= size.Y; y += side {
		for x := 0; x+side <= size.X; x += side {
			all++
			if difference(middle(a, x, y), middle(b, x, y)) > 14 {
				n++
			}
		}
	}
	return 100 * float64(n) / float64(all)
}

// packed is a picture as PNG with at most 128 colours, the most frequent ones.
func packed(t *testing.T, p image.Image) []byte {
	t.Helper()
	size := p.Bounds()
	counts := map[color.RGBA]int{}
	for y := range size.Dy() {
		for x := range size.Dx() {
			r, g, b, _ := p.At(x, y).RGBA()
			counts[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}]++
		}
	}
	order := slices.SortedFunc(maps.Keys(counts), func(c, d color.RGBA) int {
		return cmp.Or(counts[d]-counts[c], int(c.R)-int(d.R), int(c.G)-int(d.G), int(c.B)-int(d.B))
	})
	var palette color.Palette
	for _, c := range order[:min(len(order), 128)] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(size, palette)
	draw.Draw(out, size, p, image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The two ways to compare tell a box that is missing, and do not tell what is equal.
func TestApart(t *testing.T) {
	whole := image.NewRGBA(image.Rect(0, 0, 400, 400))
	draw.Draw(whole, whole.Bounds(), image.White, image.Point{}, draw.Src)
	missing := image.NewRGBA(whole.Bounds())
	draw.Draw(missing, whole.Bounds(), whole, image.Point{}, draw.Src)
	draw.Draw(whole, image.Rect(100, 100, 220, 180), image.Black, image.Point{}, draw.Src)
	if pixelsApart(whole, whole) != 0 || squaresApart(whole, whole) != 0 {
		t.Error("a picture differs from itself")
	}
	if p, s := pixelsApart(whole, missing), squaresApart(whole, missing); p < pixelLimit || s < squareLimit {
		t.Errorf("a missing box is %.1f and %.1f", p, s)
	}
	if pixelsApart(whole, image.NewRGBA(image.Rect(0, 0, 1, 1))) != 1000 {
		t.Error("sizes do not matter")
	}
	if p := pixelsApart(whole, picture(t, packed(t, whole))); p != 0 {
		t.Errorf("a packed picture differs by %.2f", p)
	}
}
