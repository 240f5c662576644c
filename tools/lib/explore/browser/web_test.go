package browser

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// web opens the page that converts by itself, which ATON_WEB has (make web).
func web(t *testing.T) *tab {
	t.Helper()
	dir := os.Getenv("ATON_WEB")
	if dir == "" {
		t.Fatal("ATON_WEB names no folder with the page: make browser-test")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	b := newTab(t)
	b.small()
	b.run(chromedp.Navigate(server.URL+"/index.html"), chromedp.WaitReady(chromedp.CSS("html[data-waiting]")))
	return b
}

// wait is until for what may take minutes.
func (b *tab) wait(expression string) {
	b.t.Helper()
	for range 1200 {
		if js[bool](b, "!!("+expression+")") {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	b.t.Fatalf("%s: it did not come; the page says %q", expression, js[string](b, "document.getElementById('said')?.innerText || ''"))
}

// convert chooses a file, and waits for the model or for what is wrong with it.
func (b *tab) convert(file, inputs string) {
	b.t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{path}))
	js[string](b, "document.querySelector('textarea').value = "+strconv.Quote(inputs))
	b.click("#convert", "")
	b.wait("document.documentElement.dataset.ready || document.getElementById('said').innerText")
}

// The page converts a model, shows it, downloads it and runs it in onnxruntime-web, which gives the numbers of the interpreter. What is
// downloaded is what the command writes.
func TestWeb(t *testing.T) {
	b := web(t)
	folder := t.TempDir()
	allowDownloads(b, folder)
	b.shot("web")
	b.convert("testdata/search.pt", "nonsense")
	if said := js[string](b, "document.getElementById('said').innerText"); !strings.Contains(said, "nonsense") {
		t.Errorf("of a wrong input the page says %q", said)
	}
	js[bool](b, `(() => {
		const dropped = new DataTransfer();
		dropped.items.add(new File(["graph"], "dropped.ir"));
		return document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
	})()`)
	b.has(".drop", "dropped.ir")
	b = web(t)
	allowDownloads(b, folder)
	b.convert("testdata/resnet18.pt2", "")
	b.has("header", "49 nodes")
	b.press("4")
	b.click("main button", "Run in")
	b.wait("document.querySelector('main').innerText.includes('Data set random')")
	list := "document.querySelector('main .list')"
	js[int](b, list+".scrollTop = 1e6")
	b.until("[...document.querySelectorAll('main .row')].some((r) => r.innerText.includes('Gemm'))")
	row := js[string](b, "[...document.querySelectorAll('main .row')].find((r) => r.innerText.includes('Gemm')).querySelector('.c').innerText")
	b.click("#run-ort", "")
	b.wait("document.getElementById('outputs')")
	ort := js[[]string](b, "document.querySelector('#outputs td:last-child').innerText.split(/\\s+/)")
	for i, want := range strings.Fields(row) {
		x, err1 := strconv.ParseFloat(want, 64)
		y, err2 := strconv.ParseFloat(ort[i], 64)
		if err1 != nil || err2 != nil || math.Abs(x-y) > 1e-3+1e-2*math.Abs(x) {
			t.Errorf("element %d is %s in the interpreter and %s in onnxruntime-web", i, want, ort[i])
		}
	}
	b.click("#outputs button", "Close")
	b.click("#download", "")
	b.wait("document.getElementById('said').innerText.includes('MB in')")
	got := downloaded(t, folder, "resnet18.onnx")
	out := filepath.Join(t.TempDir(), "native.onnx")
	if said, err := exec.Command(command, "export", "testdata/resnet18.pt2", "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	native, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, native) {
		t.Errorf("the page wrote %d bytes, the command %d others", len(got), len(native))
	}
}

// How long each step takes for ResNet-18, or for a large model, such as AlexNet's 244 MB: ATON_LARGE names it, ATON_LARGE_INPUT has the type of
// its input.
func TestWebTimes(t *testing.T) {
	file, input := os.Getenv("ATON_LARGE"), os.Getenv("ATON_LARGE_INPUT")
	if file == "" {
		file = "testdata/resnet18.pt2"
	}
	b := web(t)
	said := "document.getElementById('said').innerText"
	t.Logf("the page is there after %.0f ms", js[float64](b, "+document.documentElement.dataset.waiting"))
	b.convert(file, input)
	b.wait("document.documentElement.dataset.converted")
	t.Logf("converted in %s ms: %s", js[string](b, "document.documentElement.dataset.converted"), b.text("header .meta"))
	b.click("#download", "")
	b.wait(said + ".includes('MB in')")
	t.Logf("written: %s", b.text("#said"))
	b.click("#run-ort", "")
	b.wait("document.getElementById('outputs')")
	t.Logf("run: %s", b.text("#outputs"))
}

// allowDownloads has files go to a folder.
func allowDownloads(b *tab, folder string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder}); err != nil {
		b.t.Fatal(err)
	}
}

// downloaded waits for a file to be there in full.
func downloaded(t *testing.T, folder, name string) []byte {
	t.Helper()
	for range 300 {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if rest, _ := filepath.Glob(filepath.Join(folder, "*.crdownload")); err == nil && len(rest) == 0 && len(b) > 0 {
			return b
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s did not come", name)
	return nil
}
