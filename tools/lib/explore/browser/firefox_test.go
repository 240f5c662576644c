package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// firefox is a Firefox without a window, which is spoken to by its own protocol, Marionette: the length of a message, a colon and
// [type, number, name or error, arguments or result].
type firefox struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	next int
}

// newFirefox starts a browser of its own, which ends with the test. It skips the test where there is none, unless ATON_NEED_FIREFOX is set.
func newFirefox(t *testing.T) *firefox {
	t.Helper()
	program := os.Getenv("FIREFOX")
	for _, name := range []string{"firefox", "firefox-esr"} {
		if p, err := exec.LookPath(name); program == "" && err == nil {
			program = p
		}
	}
	if program == "" {
		if os.Getenv("ATON_NEED_FIREFOX") != "" {
			t.Fatal("there is no Firefox: apt-get install firefox-esr, or set FIREFOX")
		}
		t.Skip("there is no Firefox")
	}
	profile := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	settings := fmt.Sprintf("user_pref(\"marionette.port\", %d);\nuser_pref(\"datareporting.policy.dataSubmissionEnabled\", false);\nuser_pref(\"browser.shell.checkDefaultBrowser\", false);\n"+
		"user_pref(\"browser.aboutwelcome.enabled\", false);\nuser_pref(\"app.update.enabled\", false);\nuser_pref(\"widget.gtk.overlay-scrollbars.enabled\", true);\nuser_pref(\"ui.useOverlayScrollbars\", 1);\nuser_pref(\"layout.css.devPixelsPerPx\", \"1.0\");\n", port)
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(settings), 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "--headless", "--marionette", "--no-remote", "--profile", profile, "about:blank")
	c.Env = append(os.Environ(), "HOME="+profile)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		time.Sleep(200 * time.Millisecond) // its children still write into the profile
	})
	f := &firefox{t: t}
	for range 300 {
		if f.conn, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.conn.Close() })
	f.in = bufio.NewReader(f.conn)
	f.read() // its greeting
	f.ask("WebDriver:NewSession", map[string]any{"strictFileInteractability": false}, nil)
	return f
}

func (f *firefox) read() []byte {
	f.t.Helper()
	_ = f.conn.SetReadDeadline(time.Now().Add(time.Minute))
	length, err := f.in.ReadString(':')
	if err != nil {
		f.t.Fatal(err)
	}
	n, err := strconv.Atoi(length[:len(length)-1])
	if err != nil {
		f.t.Fatal(err)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(f.in, b); err != nil {
		f.t.Fatal(err)
	}
	return b
}

// ask sends a command, and puts the value of its answer into result.
func (f *firefox) ask(command string, args map[string]any, result any) {
	f.t.Helper()
	f.next++
	b, err := json.Marshal([]any{0, f.next, command, args})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(f.conn, "%d:%s", len(b), b); err != nil {
		f.t.Fatal(err)
	}
	var answer []json.RawMessage
	if err := json.Unmarshal(f.read(), &answer); err != nil || len(answer) != 4 {
		f.t.Fatalf("%s: the answer is %s", command, answer)
	}
	if string(answer[2]) != "null" {
		f.t.Fatalf("%s: %.500s", command, answer[2])
	}
	if result == nil {
		return
	}
	var value struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(answer[3], &value); err != nil {
		f.t.Fatal(err)
	}
	if err := json.Unmarshal(value.Value, result); err != nil {
		f.t.Fatalf("%s: %s: %v", command, value.Value, err)
	}
}

// run is the result of the body of a function.
func (f *firefox) run(script string, result any) {
	f.t.Helper()
	f.ask("WebDriver:ExecuteScript", map[string]any{"script": script, "args": []any{}}, result)
}

// open shows an address in a window whose page has a size, and waits until the model is there.
func (f *firefox) open(url string, width, height int) {
	f.t.Helper()
	f.ask("WebDriver:Navigate", map[string]any{"url": "about:blank"}, nil)
	outer := [2]int{width, height + 90}
	for range 3 {
		f.ask("WebDriver:SetWindowRect", map[string]any{"width": outer[0], "height": outer[1]}, nil)
		var inner [2]int
		f.run("return [innerWidth, innerHeight]", &inner)
		if inner == [2]int{width, height} {
			break
		}
		outer[0], outer[1] = outer[0]+width-inner[0], outer[1]+height-inner[1]
	}
	f.ask("WebDriver:Navigate", map[string]any{"url": url}, nil)
	f.until("document.documentElement.dataset.ready")
}

func (f *firefox) until(expression string) {
	f.t.Helper()
	for range 150 {
		var ok bool
		if f.run("return !!("+expression+")", &ok); ok {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Fatalf("in Firefox, %s does not come", expression)
}

// shot is a picture of the page, as PNG.
func (f *firefox) shot() []byte {
	f.t.Helper()
	var text string
	f.ask("WebDriver:TakeScreenshot", map[string]any{"full": false}, &text)
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}
