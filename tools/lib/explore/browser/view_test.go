package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// choose picks an entry of a list.
func (b *tab) choose(label, value string) {
	b.t.Helper()
	js[bool](b, fmt.Sprintf("(() => { const s = document.querySelector('select[aria-label=%s]'); s.value = %q; s.dispatchEvent(new Event('change')); return s.value === %q; })()", label, value, value))
}

// axe asks axe-core what is wrong with the page for people who use a keyboard or a screen reader.
func (b *tab) axe(where string) {
	b.t.Helper()
	file := os.Getenv("ATON_AXE")
	if file == "" {
		b.t.Fatal("ATON_AXE names no axe.min.js: make browser-test")
	}
	if !js[bool](b, "!!window.axe") {
		text, err := os.ReadFile(file)
		if err != nil {
			b.t.Fatal(err)
		}
		js[bool](b, string(text)+"\n;true")
	}
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string](`axe.run().then((r) => r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 3).map((n) => "  " + n.html.slice(0, 200) + n.failureSummary).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	if found != "" {
		b.t.Errorf("%s: axe-core finds\n%s", where, found)
	}
}

// axe-core finds nothing in any view, light and dark, on a screen, a tablet and a phone.
func TestAccessible(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		t.Run(theme, func(t *testing.T) {
			b := newTab(t)
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
				t.Fatal(err)
			}
			for _, model := range []string{"search.pt", "refused.pt"} {
				url := fixture(t, model)
				for _, size := range sizes[1:] {
					b.run(chromedp.EmulateViewport(int64(size[0]), int64(size[1])))
					b.open(url)
					for _, view := range []string{"code", "graph", "pipeline", "numbers", "cost", "weights", "kernels", "problems"} {
						b.click("#tab-"+view, "")
						if view == "code" {
							b.click("section[aria-label=sources] .row", "")
						}
						b.run(chromedp.Sleep(100 * time.Millisecond))
						b.axe(fmt.Sprintf("%s, %s, %d pixels", model, view, size[0]))
					}
				}
			}
		})
	}
}

// Boxes are coloured by operator, layer, type, cost or what a run has found, and a legend says how.
func TestColours(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "resnet18.pt2"))
	fill := "[...document.querySelectorAll('.box:not(.open):not(.io) > rect:first-of-type')].map((r) => r.getAttribute('fill'))"
	plain := js[int](b, "new Set("+fill+").size")
	for colour, want := range map[string]string{"layer": "layer1.0", "type": "f32", "cost": "% of them", "error": "finite"} {
		b.choose("colour", colour)
		b.has(".legend", want)
		b.until("location.hash.includes('colour=" + colour + "')")
	}
	b.choose("colour", "cost")
	if n := js[int](b, "new Set("+fill+").size"); n <= plain {
		t.Errorf("%d colours by cost", n)
	}
	b.choose("graph", "0")
	b.has(".legend", "not known")
	b.choose("colour", "operator")
	b.until("document.querySelector('.legend').innerText === '' && !location.hash.includes('colour')")
}

// The graph of any stage is drawn, with what loops carry, and what is chosen in it is marked at the other stages.
func TestStageGraph(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "search.pt"))
	labels := "[...document.querySelectorAll('.box')].map((e) => e.getAttribute('aria-label')).join(' | ')"
	last := js[int](b, "document.querySelector('select[aria-label=graph]').options.length - 1")
	for stage, want := range map[int][]string{0: {"prim::Loop", "prim::CallMethod", "token"}, last - 1: {"Loop", "Gemm", "If"}} {
		b.choose("graph", fmt.Sprint(stage))
		b.click("main button", "Open all")
		b.until(fmt.Sprintf("location.hash.includes('graph=%d')", stage))
		for _, w := range want {
			if got := js[string](b, labels); !strings.Contains(got, w) {
				t.Errorf("stage %d has no %s: %s", stage, w, got)
			}
		}
	}
	b.choose("graph", "")
	b.click("main button", "Open all")
	// the loop's input goes to a box in its body, and what the body gives to the box of the results
	for _, want := range []string{"token.2 i64[2]", "Loop results", "If results", "then", "else"} {
		if got := js[string](b, labels); !strings.Contains(got, want) {
			t.Errorf("the picture has no %s: %s", want, got)
		}
	}
	inside := `(() => {
		const r = (id) => document.querySelector('[data-id="' + id + '"] > rect').getBoundingClientRect();
		const body = r("g@0.0"), p = document.querySelector('.box.io[data-id^="p"]').getBoundingClientRect();
		return p.x >= body.x && p.right <= body.right && p.y >= body.y && p.bottom <= body.bottom;
	})()`
	if !js[bool](b, inside) {
		t.Error("a value that the loop carries is not in its body")
	}
	if n := js[int](b, `[...document.querySelectorAll(".arrow title")].filter((e) => e.textContent.startsWith("first: ")).length`); n != 1 {
		t.Errorf("%d arrows lead from the input", n)
	}
	b.open(fixture(t, "resnet18.pt2") + "#view=graph&graph=0")
	b.click(".box.norm", "aten::batch_norm")
	b.has("aside h2", "aten::batch_norm")
	b.has("aside", "onnx::Conv")
}

// The small picture in the corner says what is in sight, and leads elsewhere.
func TestMinimap(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "resnet18.pt2"))
	b.click("main button", "Open all")
	b.until("!document.querySelector('.minimap').hidden")
	view := "document.querySelector('.graph > svg').getAttribute('viewBox')"
	before := js[string](b, view)
	at := js[[]float64](b, "(() => { const r = document.querySelector('.minimap svg').getBoundingClientRect(); return [r.x + r.width / 2, r.bottom - 6]; })()")
	b.run(chromedp.MouseClickXY(at[0], at[1]))
	b.until(view + " !== " + fmt.Sprintf("%q", before))
	if y := js[float64](b, "+document.querySelector('.graph > svg').getAttribute('viewBox').split(' ')[1]"); y < 500 {
		t.Errorf("a click at the end of the small picture leads to %v", y)
	}
	b.open(fixture(t, "refused.pt") + "#view=graph")
	b.until("document.querySelector('.minimap').hidden")
}

// Operators stand beside what they became, types behind them, and what one side has alone is folded where it is long.
func TestAligned(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "bert.pt2") + "#view=code")
	beside := func(left, right string) {
		t.Helper()
		b.until(fmt.Sprintf(`(() => {
			const rows = (side) => [...document.querySelectorAll('section[aria-label="' + side + ' stage"] .row')];
			return rows("left").some((l) => l.innerText.includes(%q) && rows("right").some((r) => r.style.top === l.style.top && r.innerText.includes(%q)));
		})()`, left, right))
	}
	beside("aten::embedding", "onnx::Gather")
	beside("aten::layer_norm", "onnx::LayerNormalization")
	if wall := js[int](b, `(() => {
		let most = 0, n = 0;
		for (const r of document.querySelectorAll('section[aria-label="left stage"] .row')) { n = r.classList.contains("del") && !r.classList.contains("fold") ? n + 1 : 0; most = Math.max(most, n); }
		return most;
	})()`); wall > 4 {
		t.Errorf("%d lines in a row are on the left alone", wall)
	}
	if got := b.text("section[aria-label='left stage'] .row.mod"); strings.Index(got, " = ") > strings.Index(got, " : ") {
		t.Errorf("the type stands before the operator: %s", got)
	}
	before := js[int](b, "document.querySelectorAll('section[aria-label=\"left stage\"] .fold').length")
	if before == 0 {
		t.Fatal("nothing is folded")
	}
	b.click("section[aria-label='left stage'] .fold", "")
	b.until(fmt.Sprintf("document.querySelectorAll('section[aria-label=\"left stage\"] .fold').length < %d", before))
}

// A model that is refused has the graph of the last stage, with the operator that is wrong, and its line in the source.
func TestRefusedGraph(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "refused.pt") + "#view=graph")
	if got := js[[]string](b, `[...document.querySelectorAll(".box")].filter((e) => e.querySelector("rect").getAttribute("stroke-width") === "3").map((e) => e.getAttribute("aria-label"))`); len(got) != 1 || !strings.Contains(got[0], "linalg_eigvals") {
		t.Errorf("wrong is %v", got)
	}
	b.click("#tab-code", "")
	b.until("document.querySelector('section[aria-label=sources] .row.wrong')")
	if got := b.text("section[aria-label=sources] .row.wrong"); !strings.Contains(got, "eigvals") {
		t.Errorf("the line that is wrong is %s", got)
	}
	if got := b.text("section[aria-label='right stage'] .row.wrong"); !strings.Contains(got, "linalg_eigvals") {
		t.Errorf("the operator that is wrong is %s", got)
	}
}

// A convolution is found under the names of both modules that it comes from, and lists have heads, whole numbers and users.
func TestNames(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "resnet18.pt2"))
	b.press("/")
	b.until("document.activeElement === document.querySelector('input[type=search]')")
	js[string](b, "document.activeElement.value = ''")
	b.press("c", "o", "n", "v", "1", " ", "c", "o", "n", "v", kb.Enter)
	b.has("aside", "conv1")
	b.has("aside h2", "Conv")
	b.until("document.querySelector('.box.matrix').textContent.includes('conv1 + bn1')")
	b.press(kb.Escape)
	b.has("aside", "axis 0 of x")
	b.click("#tab-weights", "")
	b.has(".heads", "Used by")
	b.has("main .row", "Conv bn1")
	b.has("main section.scroll", "Used by")
	b.open(fixture(t, "search.pt") + "#view=numbers")
	b.has(".heads", "Greatest")
	b.until(`[...document.querySelectorAll("main .row")].some((r) => /Gather/.test(r.innerText))`)
	if got := js[string](b, `[...document.querySelectorAll("main .row")].find((r) => /ArgMax/.test(r.innerText)).innerText`); strings.Contains(got, ".") {
		t.Errorf("the row of integers is %s", got)
	}
}

// On a phone one pane is in sight, and buttons lead to the others; in print there are no controls.
func TestPhone(t *testing.T) {
	b := newTab(t)
	b.run(chromedp.EmulateViewport(390, 844))
	b.open(fixture(t, "search.pt") + "#view=code")
	b.click(".panes button", "After")
	b.until("Math.abs(document.querySelector('section[aria-label=\"right stage\"]').getBoundingClientRect().x) < 3")
	b.click(".panes button", "Source")
	b.until("Math.abs(document.querySelector('section[aria-label=sources]').getBoundingClientRect().x) < 3")
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		t.Fatal(err)
	}
	b.click("#tab-graph", "")
	for selector, want := range map[string]string{"nav": "none", "header button": "none", ".bar": "none", "footer": "none", "main": "flex"} {
		if got := js[string](b, fmt.Sprintf("getComputedStyle(document.querySelector(%q)).display", selector)); got != want {
			t.Errorf("in print, %s is %s", selector, got)
		}
	}
}

// Two models: what is added, removed and changed is in the picture, in a list, and in the numbers.
func TestCompared(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a-old": "graph(%x : Float(N, 4)):\n  %y : Tensor = aten::relu(%x), scope: first\n  %z : Tensor = aten::sin(%y), scope: second\n  return (%z)\n",
		"b-new": "graph(%x : Float(N, 4)):\n  %y : Tensor = aten::sigmoid(%x), scope: first\n  %z : Tensor = aten::sin(%y), scope: second\n  %e : Tensor = aten::exp(%z), scope: third\n  return (%e)\n",
	} {
		ir, onnx := filepath.Join(dir, name+".ir"), filepath.Join(dir, name+".onnx")
		if err := os.WriteFile(ir, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(command, "export", ir, "-o", onnx).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	old, model := filepath.Join(dir, "a-old.onnx"), filepath.Join(dir, "b-new.onnx")
	b := newTab(t)
	b.open(pageOf(t, old, model, "--random"))
	b.has(".legend", "removed")
	labels := js[string](b, "[...document.querySelectorAll('.box')].map((e) => e.getAttribute('aria-label')).join(' | ')")
	for _, want := range []string{"Relu", "Sigmoid", "Exp", "Sin"} {
		if !strings.Contains(labels, want) {
			t.Errorf("the picture has no %s: %s", want, labels)
		}
	}
	fill := func(kind string) string {
		return js[string](b, fmt.Sprintf("[...document.querySelectorAll('.box')].find((e) => e.getAttribute('aria-label').startsWith(%q)).querySelector('rect').getAttribute('fill')", kind))
	}
	if fill("Relu") == fill("Sigmoid") || fill("Sigmoid") != fill("Exp") || fill("Sin") == fill("Exp") {
		t.Errorf("Relu is %s, Sigmoid %s, Exp %s, Sin %s", fill("Relu"), fill("Sigmoid"), fill("Exp"), fill("Sin"))
	}
	b.press("9")
	b.has("main", "2 nodes added, 1 removed, 1 changed")
	b.has("main", "reads what the new Sigmoid gives")
	b.has("main", "Numbers, on the same inputs")
	b.axe("compared")
	b.click("main tr", "Exp")
	b.has("aside h2", "Exp")
	b.has("aside", "new")
}

// A size that the archive has no name for is shown as the axis of the input that it is, in all views.
func TestSizes(t *testing.T) {
	b := newTab(t)
	b.open(fixture(t, "resnet18.pt2"))
	b.has("aside", "s77 in the archive")
	b.has("aside", "--input 'x:f32[batch,3,64,64]'")
	for _, view := range []string{"graph", "code", "cost"} {
		b.click("#tab-"+view, "")
		b.has("main", "x.dim0")
		if text := b.text("main"); strings.Contains(text, "s77") {
			t.Errorf("%s has s77", view)
		}
	}
	b.click("#tab-graph", "")
	b.choose("graph", "1")
	b.has("main", "x.dim0")
}

// A box has the constants that its operator reads, by the standard's names.
func TestConstants(t *testing.T) {
	b := newTab(t)
	b.open(pageOf(t, torch+"residual.pt2"))
	b.has("main", "min=0, max=6")
	b.has("main", "W 4×4×1×1, B 4")
	if text := b.text("main"); strings.Contains(text, "dilations") {
		t.Error("the boxes have attributes that are the standard's defaults")
	}
}
