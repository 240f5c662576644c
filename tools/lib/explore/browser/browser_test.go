package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// command is aton, built once.
var command string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "aton-browser")
	if err != nil {
		panic(err)
	}
	command = filepath.Join(dir, "aton")
	build := exec.Command("go", "build", "-o", command, "./tools/cmd/aton")
	build.Dir, build.Env = "../../../..", append(os.Environ(), "GOWORK=") // of the workspace, which this module is no part of
	build.Stderr = os.Stderr
	status := 1
	if err := build.Run(); err == nil {
		status = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(status)
}

// models are the pages of the documentation, with the options that they need.
var models = map[string][]string{
	"resnet18.pt2": {"--size", "batch=1"},
	"bert.pt2":     nil,
	"search.pt":    {"--input", "first:i64[2]", "--input", "limit:int=4"},
	"quantized.pt": {"--input", "x:f32[N,3,8,8]"},
	"refused.pt":   {"--input", "x:f32[4,4]"},
}

// page writes a model's page to a file, and gives its address.
func pageOf(t *testing.T, model string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "page.html")
	c := exec.Command(command, append([]string{"explore", model, "--html", out}, args...)...)
	said, err := c.CombinedOutput()
	if _, statErr := os.Stat(out); statErr != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, said)
	}
	return "file://" + out
}

// serve starts a server of a model's page, which ends with the test, and gives its address.
func serve(t *testing.T, model string, args ...string) string {
	t.Helper()
	c := exec.Command(command, append([]string{"explore", model, "--no-open"}, args...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// fixture is the page of one of the models, with numbers.
func fixture(t *testing.T, name string) string {
	t.Helper()
	args := models[name]
	if name != "refused.pt" {
		args = append([]string{"--random"}, args...)
	}
	return pageOf(t, filepath.Join("testdata", name), args...)
}

// tab is a tab of the browser that collects what the page complains of.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	bad []string
}

// newTab opens a tab of a browser of its own; the test fails at its end if there were errors in the console.
func newTab(t *testing.T) *tab {
	t.Helper()
	chromium := os.Getenv("CHROMIUM")
	if chromium == "" {
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if p, err := exec.LookPath(name); err == nil {
				chromium = p
				break
			}
		}
	}
	if chromium == "" {
		t.Fatal("there is no Chromium: apt-get install chromium, or set CHROMIUM")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1440, 900),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"), chromedp.WSURLReadTimeout(time.Minute))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // starts the browser
		t.Fatal(err)
	}
	said := chromedp.Console(ctx)
	go func() {
		for m, err := range said {
			if err != nil {
				return // the tab is closed
			}
			if m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning {
				b.mu.Lock()
				b.bad = append(b.bad, m.String())
				b.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, s := range b.bad {
			t.Errorf("the page complains: %s", s)
		}
	})
	return b
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open shows an address, and waits until the model is there.
func (b *tab) open(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("html[data-ready]")))
}

// text is what stands in an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return js[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// js is the result of an expression as JSON would have it.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(15*time.Second))); err != nil {
		b.t.Fatalf("%s: %v; the address is %s", expression, err, js[string](b, "location.href"))
	}
}

// has waits for a text in an element: lists draw their rows a frame after the page is ready.
func (b *tab) has(selector, want string) {
	b.t.Helper()
	find := fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, want)
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("!!("+find+")", chromedp.WithPollingTimeout(15*time.Second))); err != nil {
		b.t.Errorf("%s has no %q: %.300s", selector, want, b.text(selector))
	}
}

// click has the mouse click the first element that has a text.
func (b *tab) click(selector, text string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].find((e) => (e.getAttribute('aria-label') || e.textContent).includes(%q))", selector, text)
	b.until(find)
	js[bool](b, "("+find+".scrollIntoView({ block: 'nearest', inline: 'nearest' }), true)")
	b.run(chromedp.Sleep(100 * time.Millisecond)) // lists draw anew
	at := js[[]float64](b, "(() => { const r = "+find+".getBoundingClientRect(); return [r.x + Math.min(r.width / 2, 120), r.y + r.height / 2]; })()")
	b.run(chromedp.MouseClickXY(at[0], at[1]))
}

func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.run(chromedp.KeyEvent(k))
	}
}

// shot takes a picture for the documentation, where that is asked for.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("ATON_SCREENSHOTS")
	if dir == "" {
		return
	}
	b.run(chromedp.Sleep(300 * time.Millisecond))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o666); err != nil {
		b.t.Fatal(err)
	}
}

// small sets the size that pictures have.
func (b *tab) small() {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(1360, 800))
}

// Every model opens, and all its views show what they are for.
func TestModels(t *testing.T) {
	for name := range models {
		t.Run(name, func(t *testing.T) {
			b := newTab(t)
			b.small()
			b.open(fixture(t, name))
			b.has("header h1", name)
			views := map[string]string{"code": "%", "graph": "boxes", "pipeline": "passes in", "numbers": "Data set random", "cost": "Operations by operator", "weights": "weights", "kernels": "launches of", "problems": ""}
			if name == "refused.pt" {
				views = map[string]string{"code": "%", "graph": "not converted", "pipeline": "passes in", "problems": "linalg_eigvals"}
			}
			for view, want := range views {
				b.click("#tab-"+view, "")
				b.until(fmt.Sprintf("document.querySelector('main').innerText.includes(%q)", want))
				if got := js[string](b, "document.querySelector('[aria-selected=true]').id"); got != "tab-"+view {
					t.Errorf("the view is %s", got)
				}
			}
		})
	}
}

// The pictures of the documentation, each with what it shows.
func TestPictures(t *testing.T) {
	t.Run("resnet18", func(t *testing.T) {
		b := newTab(t)
		b.small()
		url := fixture(t, "resnet18.pt2")
		b.open(url + "#view=graph")
		b.click("main button", "Open all")
		if n := js[int](b, "document.querySelectorAll('.box').length"); n < 40 {
			t.Errorf("%d boxes", n)
		}
		b.click(".box", "bn1")
		b.has("aside", "fold-batchnorm")
		b.has("aside", "made by lower")
		b.has("aside", "Numbers, data set random")
		b.shot("resnet18-graph")
		b.open(url + "#view=cost")
		b.has("main", "Conv")
		b.shot("resnet18-cost")
	})
	t.Run("bert", func(t *testing.T) {
		b := newTab(t)
		b.small()
		url := fixture(t, "bert.pt2")
		b.open(url + "#view=graph")
		b.shot("bert-graph")
		b.open(url + "#view=kernels&code=ptx")
		b.until("document.querySelector('main').innerText.includes('.entry')")
		b.shot("bert-kernels")
	})
	t.Run("search", func(t *testing.T) {
		b := newTab(t)
		b.small()
		b.open(fixture(t, "search.pt") + "#view=code")
		b.click("section[aria-label=sources] .row", "self.cell")
		b.has("aside", "ONNX nodes")
		if n := js[int](b, "document.querySelectorAll('section[aria-label=\"right stage\"] .soft, section[aria-label=\"right stage\"] .hit').length"); n == 0 {
			t.Error("no line of the stage belongs to the line of Python")
		}
		b.shot("search-code")
	})
	t.Run("quantized", func(t *testing.T) {
		b := newTab(t)
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}); err != nil {
			t.Fatal(err)
		}
		b.small()
		b.open(fixture(t, "quantized.pt") + "#view=numbers")
		if got := js[string](b, "document.documentElement.dataset.theme"); got != "dark" {
			t.Errorf("the theme is %s", got)
		}
		b.has("main", "QuantizeLinear")
		b.click("main .row", "Conv")
		b.has("aside", "Conv")
		b.shot("quantized-numbers")
	})
	t.Run("refused", func(t *testing.T) {
		b := newTab(t)
		b.small()
		b.open(fixture(t, "refused.pt"))
		if got := js[string](b, "document.querySelector('[aria-selected=true]').id"); got != "tab-problems" {
			t.Errorf("the first view is %s", got)
		}
		b.has("main", "models.py:")
		b.has("main", "What it means")
		b.shot("refused")
	})
}

// The first view is the graph, in a size that can be read: modules are closed, equal layers are one, and what computes sizes is left out.
func TestFirstView(t *testing.T) {
	b := newTab(t)
	b.run(chromedp.EmulateViewport(1280, 800))
	name := filepath.Join(t.TempDir(), "layers.ir")
	if err := os.WriteFile(name, []byte(layers()), 0o666); err != nil {
		t.Fatal(err)
	}
	b.open(pageOf(t, name))
	if got := js[string](b, "document.querySelector('[aria-selected=true]').id"); got != "tab-graph" {
		t.Errorf("the first view is %s", got)
	}
	if px := js[float64](b, "document.querySelector('.box .t').getScreenCTM().a * 12"); px < 10.9 {
		t.Errorf("text of %.1f pixels", px)
	}
	boxes := js[int](b, "document.querySelectorAll('.box').length")
	if boxes < 4 || boxes > 50 {
		t.Errorf("%d boxes", boxes)
	}
	b.has("main", "equal")
	b.click("main button", "Sizes")
	if n := js[int](b, "document.querySelectorAll('.box').length"); n <= boxes {
		t.Errorf("%d boxes without the arithmetic of sizes, %d with it", boxes, n)
	}
	b.click("main button", "Sizes")
	b.click(".box.group", "equal")
	if n := js[int](b, "document.querySelectorAll('.box').length"); n <= boxes {
		t.Errorf("equal layers do not open: %d boxes, then %d", boxes, n)
	}
	b.press("/")
	b.until("document.activeElement === document.querySelector('input[type=search]')")
	js[string](b, "document.activeElement.value = ''")
	b.press("q", "q", "q")
	b.has(".results", "nothing has this name")
}

// layers is a program of four equal layers, to which the numbers 0 to N - 1 are added.
func layers() string {
	var b strings.Builder
	b.WriteString("graph(%x : Float(4, N)):\n  %one : int = prim::Constant[value=1]()\n  %none : NoneType = prim::Constant()\n" +
		"  %n : int = aten::size(%x, %one)\n  %r : Tensor = aten::arange(%n, %none, %none, %none, %none)\n  %v0 : Tensor = aten::add(%x, %r, %one)\n")
	for i := range 4 {
		fmt.Fprintf(&b, "  %%a%d : Tensor = aten::sin(%%v%d), scope: layers.%d\n  %%b%d : Tensor = aten::relu(%%a%d), scope: layers.%d\n  %%v%d : Tensor = aten::add(%%b%d, %%v%d, %%one), scope: layers.%d\n", i, i, i, i, i, i, i+1, i, i, i)
	}
	b.WriteString("  return (%v4)\n")
	return b.String()
}

// The browser goes back to the view and the selection before, and forward again.
func TestHistory(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "resnet18.pt2"))
	b.click("#tab-cost", "")
	b.click("#tab-graph", "")
	b.click(".box", "Conv")
	b.has("aside h2", "Conv")
	view := "document.querySelector('[aria-selected=true]').id"
	js[bool](b, "(history.back(), true)")
	b.has("aside h2", "Nothing selected")
	js[bool](b, "(history.back(), true)")
	b.until(view + " === 'tab-cost'")
	js[bool](b, "(history.forward(), true)")
	b.until(view + " === 'tab-graph'")
	js[bool](b, "(history.forward(), true)")
	b.has("aside h2", "Conv")
}

// On a narrow screen the details are a sheet, which is there while something is selected.
func TestNarrow(t *testing.T) {
	b := newTab(t)
	b.run(chromedp.EmulateViewport(600, 900))
	b.open(fixture(t, "resnet18.pt2"))
	shown := "getComputedStyle(document.querySelector('aside')).display"
	if got := js[string](b, shown); got != "none" {
		t.Errorf("nothing is selected, and the sheet is %s", got)
	}
	b.click(".box", "Conv")
	b.until(shown + " === 'block'")
	b.click("aside .close", "")
	b.until(shown + " === 'none'")
	if over := js[float64](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		t.Errorf("the page is %v pixels too wide", over)
	}
	b.click("#tab-code", "")
	b.run(chromedp.EmulateViewport(390, 800))
	b.until("Math.abs(document.querySelector('.columns > section').getBoundingClientRect().width - innerWidth) < 2")
}

// Bodies of Loop and If have the names of the standard.
func TestBodies(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "search.pt"))
	b.click("main button", "Open all")
	labels := js[string](b, "[...document.querySelectorAll('.box')].map((e) => e.getAttribute('aria-label')).join(' | ')")
	if !strings.Contains(labels, "body") || strings.Contains(labels, "branch") || strings.Contains(labels, "undefined") {
		t.Errorf("the boxes are\n%s", labels)
	}
}

// What is chosen is in the address, and an address shows what was chosen: by a click on a source line, a stage and a node.
func TestLinks(t *testing.T) {
	b := newTab(t)
	url := fixture(t, "bert.pt2")
	b.open(url + "#view=code")
	b.press("/")
	b.until("document.activeElement === document.querySelector('input[type=search]')")
	js[string](b, "document.activeElement.value = ''")
	b.press("g", "e", "l", "u", kb.Enter)
	b.until("location.hash.includes('op=')")
	b.click("section[aria-label='right stage'] .row", "onnx::Gelu")
	hash := js[string](b, "location.hash")
	kind := b.text("aside h2")
	if kind != "onnx::Gelu" || !strings.Contains(b.text("aside"), "History") {
		t.Errorf("the inspector shows %s", kind)
	}
	if n := js[int](b, "document.querySelectorAll('section[aria-label=\"left stage\"] .hit').length"); n == 0 {
		t.Error("no line of the stage before is what the node was made of")
	}
	if n := js[int](b, "document.querySelectorAll('section[aria-label=sources] .hit, section[aria-label=sources] .soft').length"); n == 0 {
		t.Error("no line of source is marked")
	}
	// what the mouse is on is marked at both stages
	js[bool](b, `[...document.querySelectorAll("section[aria-label='right stage'] .row")].find((r) => r.innerText.includes("onnx::LayerNormalization")).dispatchEvent(new MouseEvent("mouseover", { bubbles: true }))`)
	b.until("document.querySelector('section[aria-label=\"left stage\"] .hover') && document.querySelector('section[aria-label=\"right stage\"] .hover')")
	b.open(url + hash)
	if got := b.text("aside h2"); got != kind || js[int](b, "document.querySelectorAll('.row.hit').length") == 0 {
		t.Errorf("the address shows %s", got)
	}
	b.open(url + strings.Replace(hash, "view=code", "view=graph", 1))
	b.until("document.querySelector('.box rect[stroke-width=\"2\"]')")
	// a module opens and closes
	b.click("main button", "Close all")
	closed := js[int](b, "document.querySelectorAll('.box').length")
	b.click(".box.group", "")
	if n := js[int](b, "document.querySelectorAll('.box').length"); n <= closed || !strings.Contains(js[string](b, "location.hash"), "open=") {
		t.Errorf("%d boxes, then %d", closed, n)
	}
}

// The picture is saved as SVG and as PNG.
func TestDownloads(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "quantized.pt") + "#view=graph")
	folder := t.TempDir()
	allowDownloads(b, folder)
	b.click("main button", "SVG")
	if got := downloaded(t, folder, "quantized.pt.svg"); !strings.HasPrefix(string(got), "<svg") || !strings.Contains(string(got), "MaxPool") {
		t.Errorf("the SVG is %.80s", got)
	}
	b.click("main button", "PNG")
	picture, err := png.Decode(bytes.NewReader(downloaded(t, folder, "quantized.pt.png")))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X < 200 || size.Y < 200 {
		t.Errorf("the PNG has %v pixels", size)
	}
}

// What differs from the recorded outputs is red: the output in the list of numbers, its node in the picture.
func TestWrong(t *testing.T) {
	b := newTab(t)
	dir := t.TempDir()
	model, data := filepath.Join(dir, "model.ir"), filepath.Join(dir, "data.safetensors")
	const header = `{"0/in/0/x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"0/out/0/y":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`
	recorded := safetensors(header, -1, 1, 0, 2) // relu gives 0, 1
	for file, text := range map[string]string{model: "graph(%x : Float(2)):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n", data: recorded} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b.open(pageOf(t, model, "--data", data) + "#view=numbers")
	b.until("document.querySelector('main .row.del .bad')")
	if got := b.text("main .row.del"); !strings.Contains(got, "Relu") {
		t.Errorf("the wrong node is %s", got)
	}
	b.click("nav button", "Graph")
	b.until("document.querySelector('.box rect[stroke-width=\"3\"]')")
}

// safetensors is a file of a header and floats.
func safetensors(header string, values ...float32) string {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	out = append(out, header...)
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return string(out)
}

// All of it can be done without a mouse.
func TestKeyboard(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "resnet18.pt2"))
	view := func(want string) {
		t.Helper()
		if got := js[string](b, "document.querySelector('[aria-selected=true]').id"); got != "tab-"+want {
			t.Errorf("the view is %s, not %s", got, want)
		}
	}
	for i, want := range []string{"code", "graph", "pipeline", "numbers", "cost", "weights", "kernels", "problems"} {
		b.press(fmt.Sprint(i + 1))
		view(want)
	}
	b.press("1", "[")
	first := js[string](b, "location.hash")
	b.press("]")
	if js[string](b, "location.hash") == first {
		t.Error("the stage stays")
	}
	b.press("2", "/")
	b.until("document.activeElement === document.querySelector('input[type=search]')")
	js[string](b, "document.activeElement.value = ''") // the key itself, which only a driven browser writes
	b.press("g", "e", "m", "m")
	b.until("document.querySelectorAll('.results li').length > 0")
	b.press(kb.Enter)
	b.until("location.hash.includes('op=')")
	b.has("aside h2", "Gemm")
	b.press(kb.Escape)
	b.has("aside h2", "Nothing selected")
	theme := js[string](b, "document.documentElement.dataset.theme")
	b.press("t")
	if js[string](b, "document.documentElement.dataset.theme") == theme {
		t.Error("the theme stays")
	}
	b.press("?")
	b.has(".help", "Keys")
	b.press(kb.Escape)
	b.until("!document.querySelector('.help')")
	b.press("1")
	b.run(chromedp.Focus(chromedp.CSS("section[aria-label='right stage'] .list")))
	b.press(kb.ArrowDown, kb.ArrowDown)
	b.run(chromedp.Focus(chromedp.CSS("#tab-graph")))
	b.press(kb.Enter)
	view("graph")
	b.run(chromedp.Focus(chromedp.CSS(".box.matrix")))
	b.press(kb.Enter)
	b.has("aside h2", "Conv")
}

// The page of a server runs the model, makes kernels, and runs other pipelines.
func TestServer(t *testing.T) {
	url := serve(t, "testdata/quantized.pt", "--input", "x:f32[N,3,8,8]")
	b := newTab(t)
	b.open(url)
	b.press("4")
	b.click("main button", "Run in")
	b.until("document.querySelector('main').innerText.includes('Data set random')")
	b.press("7")
	b.until("document.querySelector('main').innerText.includes('launches of')")
	b.press("3")
	b.run(chromedp.SetValue(chromedp.CSS("textarea"), "inline,dce"))
	b.click("main button", "Run")
	b.until("document.querySelector('main').innerText.includes('3 passes')")
	b.run(chromedp.SetValue(chromedp.CSS("textarea"), "no-such-pass"))
	b.mu.Lock()
	before := len(b.bad)
	b.mu.Unlock()
	b.click("main button", "Run")
	b.until("document.querySelector('.bar .bad').innerText.includes('no-such-pass')")
	b.run(chromedp.Sleep(200 * time.Millisecond))
	b.mu.Lock()
	b.bad = b.bad[:before] // the browser logs that the answer is a refusal
	b.mu.Unlock()
	b.click("main button", "The usual one")
	b.until("document.querySelector('header').innerText.includes('opset')")
}

// Names of a model are text wherever they stand.
func TestHostile(t *testing.T) {
	bad := `<img src=x onerror=alert(1)>`
	text := "graph(%x : Float(2, 3)):\n" +
		"  %a : Tensor = aten::relu(%x), scope: " + strings.ReplaceAll(bad, " ", "/") + " # <script>alert(2)</script>.py:3:0\n" +
		"  %s : str = prim::Constant[value=\"" + bad + "\"]()\n" +
		"  %b : Tensor = aten::sin(%a) # javascript:alert(3):4:0\n  return (%b)\n"
	name := filepath.Join(t.TempDir(), "<img src=x onerror=alert(1)>.ir")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	b.open(pageOf(t, name, "--random"))
	for i := range 8 {
		b.press(fmt.Sprint(i + 1))
		if n := js[int](b, "document.querySelectorAll('img, iframe, body script:not([id]):not([type=module]) ~ script:not([type])').length"); n != 0 {
			t.Errorf("view %d: %d elements that the page does not make", i+1, n)
		}
	}
	b.press("2")
	b.click(".box.act", "")
	b.has("aside", "<img")
	b.has("header h1", "<img src=x")
}

// large is a program of blocks in modules, with some ten thousand operators.
func large() string {
	var b strings.Builder
	b.WriteString("graph(%x : Float(N, 64)):\n  %one : int = prim::Constant[value=1]()\n")
	at := "x"
	for layer := range 100 {
		for block := range 25 {
			scope := fmt.Sprintf("layers.%d.block%d", layer, block)
			n := fmt.Sprintf("v%d_%d", layer, block)
			for i, op := range []string{"aten::sin(%" + at + ")", "aten::relu(%" + n + "_0)", "aten::tanh(%" + n + "_1)", "aten::add(%" + n + "_2, %" + at + ", %one)"} {
				fmt.Fprintf(&b, "  %%%s_%d : Tensor = %s, scope: %s # model.py:%d:0\n", n, i, op, scope, 10+i)
			}
			at = n + "_3"
		}
	}
	fmt.Fprintf(&b, "  return (%%%s)\n", at)
	return b.String()
}

// A model of ten thousand nodes is there within two seconds, and so is each view of it.
func TestLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.ir")
	if err := os.WriteFile(name, []byte(large()), 0o666); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	url := serve(t, name)
	served := time.Since(began)
	b := newTab(t)
	b.open(url)
	b.has("header", "10000 nodes")
	paint := js[float64](b, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
	ready := js[float64](b, "+document.documentElement.dataset.ready")
	t.Logf("converted in %.2f s; first paint after %.0f ms, the model after %.0f ms", served.Seconds(), paint, ready)
	if limit := 2000.0; ready > limit || paint > limit {
		t.Errorf("it is there after %.0f ms", ready)
	}
	for i, view := range []string{"code", "graph", "pipeline", "numbers", "cost", "weights", "kernels", "problems"} {
		if view == "kernels" { // they are made when they are asked for
			continue
		}
		ms := js[float64](b, fmt.Sprintf("(() => { const t = performance.now(); document.getElementById('tab-%s').click(); document.body.offsetHeight; return performance.now() - t; })()", view))
		t.Logf("%s: %.0f ms, %d elements", view, ms, js[int](b, "document.querySelectorAll('*').length"))
		if ms > 2000 {
			t.Errorf("view %d, %s, takes %.0f ms", i+1, view, ms)
		}
		if n := js[int](b, "document.querySelectorAll('*').length"); n > 20000 {
			t.Errorf("view %s has %d elements", view, n)
		}
	}
	b.press("1")
	js[int](b, "document.querySelector('section[aria-label=\"right stage\"] .list').scrollTop = 90000")
	b.run(chromedp.Sleep(200 * time.Millisecond))
	if n := js[int](b, "document.querySelectorAll('.row').length"); n == 0 || n > 600 {
		t.Errorf("%d rows are on the page", n)
	}
}
