package browser

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestBesideNetron makes a picture of each reference model in Netron and in the explorer, side by side, for a person to look at. It needs
// ATON_NETRON, the folder that netron.sh fills, and ATON_BESIDE, where the pictures go: make beside-netron.
func TestBesideNetron(t *testing.T) {
	page, into := os.Getenv("ATON_NETRON"), os.Getenv("ATON_BESIDE")
	if page == "" || into == "" {
		t.Skip("ATON_NETRON and ATON_BESIDE are not set: make beside-netron")
	}
	for _, r := range references {
		t.Run(r.name, func(t *testing.T) {
			b := newTab(t)
			b.run(chromedp.EmulateViewport(1280, 800))
			b.open(strings.TrimSuffix(r.url(t), r.hash))
			b.run(chromedp.Sleep(300 * time.Millisecond))
			ours := b.picture()

			model := r.file
			if r.name != "refused" { // Netron shows the archive of a model that has no ONNX file
				model = filepath.Join(t.TempDir(), r.name+".onnx")
				c := exec.Command(command, append([]string{"export", r.file, "-o", model, "--quiet"}, inputs(r.args)...)...)
				if said, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", c.Args, err, said)
				}
			}
			n := newTab(t)
			n.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(netron(t, page, model)))
			n.until("document.querySelector('g.node') || !document.body.classList.contains('spinner')")
			n.run(chromedp.Sleep(time.Second)) // it scales the picture
			theirs := n.picture()

			both := image.NewRGBA(image.Rect(0, 0, 2*1280, 800))
			draw.Draw(both, image.Rect(0, 0, 1280, 800), theirs, image.Point{}, draw.Src)
			draw.Draw(both, image.Rect(1280, 0, 2*1280, 800), ours, image.Point{}, draw.Src)
			var out bytes.Buffer
			if err := png.Encode(&out, both); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(into, r.name+".png"), out.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// inputs are the options of a page that an export has too.
func inputs(args []string) []string {
	var out []string
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == "--input" {
			out = append(out, args[i], args[i+1])
		}
	}
	return out
}

// netron serves Netron's page with a model, as its own server does, and gives the address.
func netron(t *testing.T, folder, model string) string {
	t.Helper()
	files := http.FileServer(http.Dir(folder))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name := filepath.Base(model); r.URL.Path {
		case "/data/" + name:
			http.ServeFile(w, r, model)
		case "/":
			http.SetCookie(w, &http.Cookie{Name: "consent", Value: "0"}) // it would ask the network where it is, and then the user
			text, err := os.ReadFile(filepath.Join(folder, "index.html"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			meta := fmt.Sprintf(`<meta name="type" content="Python"><meta name="version" content="0.0.0"><meta name="file" content="/data/%s"><meta name="identifier" content="%[1]s">`, name)
			_, _ = w.Write(regexp.MustCompile(`<meta name="version" content=".*">`).ReplaceAll(text, []byte(meta)))
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// picture is what the tab shows.
func (b *tab) picture() image.Image {
	b.t.Helper()
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	return picture(b.t, shot)
}
