package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

const fixtures = "../../../testdata/fixtures/torch2.15/"

// session looks at a fixture.
func session(t testing.TB, name string, inputs ...string) *Session {
	t.Helper()
	var o aton.LoadOptions
	for _, text := range inputs {
		in, err := spec.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Inputs = append(o.Inputs, in)
	}
	s, err := New(name, func() (*ssa.Module, error) { return aton.Load(fixtures+name, o) }, aton.ExportOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ofText looks at graph text.
func ofText(t testing.TB, text string) *Session {
	t.Helper()
	s, err := New("text.ir", func() (*ssa.Module, error) { return aton.LoadBytes([]byte(text), "text.ir", aton.LoadOptions{}) }, aton.ExportOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every number in a document is a position in the list that it speaks of, and each stage has an operator for each of its lines.
func TestDocument(t *testing.T) {
	for _, c := range []struct{ name, input string }{
		{"convnet.script.pt", "x:f32[N,3,18,18]"}, {"convnet.pt2", ""}, {"halving.script.pt", "x:f32[K]"}, {"quantized.trace.pt", "x:f32[N,2,4,4]"}, {"words_gru.script.pt", "x:i64[N,T]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var inputs []string
			if c.input != "" {
				inputs = append(inputs, c.input)
			}
			check(t, session(t, c.name, inputs...))
		})
	}
}

func check(t *testing.T, s *Session) {
	t.Helper()
	d := s.Document()
	in := func(what string, n, lowest, length int) {
		if n < lowest || n >= length {
			t.Fatalf("%s is %d of %d", what, n, length)
		}
	}
	for _, f := range d.Frames {
		in("caller", f.Caller, 0, len(d.Frames))
	}
	for _, o := range d.Ops {
		in("frame", o.Frame, 0, len(d.Frames))
		in("made", o.Made, -1, len(d.Passes))
		in("gone", o.Gone, -1, len(d.Passes))
		for _, f := range o.From {
			in("from", f, 0, len(d.Ops))
			if d.Ops[f].Made >= o.Made {
				t.Errorf("%s of pass %d is made of %s of pass %d", o.Kind, o.Made, d.Ops[f].Kind, d.Ops[f].Made)
			}
		}
		for _, step := range o.Steps {
			in("pass", step.Pass, 0, len(d.Passes))
		}
	}
	for _, st := range d.Stages {
		if len(st.Lines) != len(st.Ops) {
			t.Errorf("stage %s: %d lines, %d operators", st.Name, len(st.Lines), len(st.Ops))
		}
		for i, n := range st.Lines {
			in("text", n, 0, len(d.Text))
			in("operator", st.Ops[i], -1, len(d.Ops))
			if o := st.Ops[i]; o >= 0 && !strings.Contains(d.Text[n], d.Ops[o].Kind) {
				t.Errorf("stage %s: line %q is of %s", st.Name, d.Text[n], d.Ops[o].Kind)
			}
		}
	}
	for _, p := range d.Passes {
		in("stage", p.Stage, 0, len(d.Stages))
	}
	if s.Failed() != nil {
		t.Fatal(s.Failed())
	}
	g := d.Graph
	for i, n := range g.Nodes {
		in("operator", n.Op, 0, len(d.Ops))
		in("parent", n.Parent, -1, i)
		for _, v := range slices.Concat(n.Inputs, n.Outputs) {
			in("value", v, -1, len(g.Values))
		}
		if d.Ops[n.Op].Gone >= 0 {
			t.Errorf("node %s is gone", n.Name)
		}
	}
	for _, v := range g.Values {
		in("weight", v.Weight, -1, len(d.Weights))
	}
	if len(g.Outputs) == 0 || len(g.Outputs) != len(g.OutputNames) {
		t.Errorf("outputs %v are called %v", g.Outputs, g.OutputNames)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err) // a number that JSON does not have
	}
}

// A scripted model has its Python and its TorchScript, and these are linked.
func TestSources(t *testing.T) {
	d := session(t, "convnet.script.pt", "x:f32[N,3,18,18]").Document()
	python := slices.IndexFunc(d.Sources, func(s Source) bool { return s.File == "nets.py" && !s.Saved })
	if python < 0 {
		t.Fatal("nets.py is missing")
	}
	i := slices.IndexFunc(d.Sources[python].Lines, func(l SourceLine) bool { return l.Number == 46 })
	if i < 0 || !strings.Contains(d.Sources[python].Lines[i].Text, "flatten") {
		t.Errorf("line 46 of nets.py is not there: %v", d.Sources[python].Lines)
	}
	linked := false
	for _, s := range d.Sources {
		for _, l := range s.Lines {
			linked = linked || s.Saved && slices.Contains(l.From, "nets.py:46") && strings.Contains(l.Text, "flatten")
		}
	}
	if !linked {
		t.Error("no line of TorchScript is made from nets.py:46")
	}
	d = session(t, "convnet.pt2").Document()
	if len(d.Sources) == 0 || d.Sources[0].Lines[0].Text == "" {
		t.Error("the exported program has no lines of its own")
	}
}

// A node says what it was made of, by which rule of which pass.
func TestHistory(t *testing.T) {
	d := session(t, "convnet.pt2").Document()
	found := false
	for _, n := range d.Graph.Nodes {
		o := d.Ops[n.Op]
		if n.Kind == "Conv" && slices.ContainsFunc(o.Steps, func(s Step) bool { return s.Rule == "fold-batchnorm" && d.Passes[s.Pass].Name == "simplify" }) {
			found = true
			var kinds []string
			for ; len(o.From) > 0; o = d.Ops[o.From[0]] {
				kinds = append(kinds, d.Passes[o.Made].Name+" "+d.Ops[o.From[0]].Kind)
			}
			if got := strings.Join(kinds, ", "); !strings.Contains(got, "lower aten::") {
				t.Errorf("its history is %s", got)
			}
		}
	}
	if !found {
		t.Error("no convolution says that a normalization was folded into it")
	}
}

// An operator that ONNX has no word for is shown with its page.
func TestRefused(t *testing.T) {
	s := ofText(t, "graph(%x : Float(2, 2)):\n  %y : Tensor = my::own(%x)\n  return (%y)\n")
	d := s.Document()
	if s.Failed() == nil || d.Failed == "" || d.Graph != nil || len(d.Stages) == 0 {
		t.Fatalf("failed %v, graph %v", s.Failed(), d.Graph)
	}
	if len(d.Problems) == 0 || d.Problems[0].Op != "my::own" || d.Pages[d.Problems[0].ID] == "" {
		t.Errorf("the problems are %+v", d.Problems)
	}
	if _, err := s.Kernels(); !errors.Is(err, s.Failed()) {
		t.Errorf("kernels: %v", err)
	}
	if _, err := s.Random(0, nil); err == nil {
		t.Error("there are inputs for a model that is not converted")
	}
	var b strings.Builder
	if err := s.HTML(&b, nil); err != nil || b.Len() == 0 {
		t.Error(err)
	}
}

const matmul = "graph(%x : Float(N, 3), %w : Float(3, 5)):\n  %y : Tensor = aten::matmul(%x, %w)\n  %z : Tensor = aten::relu(%y)\n  %l : Tensor = aten::log(%z)\n  return (%l)\n"

// The cost of a matrix product is two for each element of each row and column, and the size of a dynamic axis is what was said.
func TestCost(t *testing.T) {
	s, err := New("m", func() (*ssa.Module, error) { return aton.LoadBytes([]byte(matmul), "m.ir", aton.LoadOptions{}) }, aton.ExportOptions{}, map[string]int64{"N": 7})
	if err != nil {
		t.Fatal(err)
	}
	g := s.Document().Graph
	want := map[string][2]int64{"MatMul": {2 * 7 * 3 * 5, 4 * (7*3 + 3*5 + 7*5)}, "Relu": {35, 4 * 70}}
	for _, n := range g.Nodes {
		if w, ok := want[n.Kind]; ok && (n.Flops != w[0] || n.Bytes != w[1]) {
			t.Errorf("%s: %d operations and %d bytes, not %v", n.Kind, n.Flops, n.Bytes, w)
		}
	}
	if g.Sizes["N"] != 7 || g.Opaque != 0 {
		t.Errorf("sizes %v, %d opaque", g.Sizes, g.Opaque)
	}
	if n := times(math.MaxInt64/2, 3); n != math.MaxInt64 {
		t.Errorf("a product that is too large is %d", n)
	}
}

// Values of a run have their range and elements, the first NaN is found, and an output that is not what was recorded is the wrong one.
func TestNumbers(t *testing.T) {
	s := ofText(t, matmul)
	x := tensor.FromFloats(tensor.Float32, []int64{1, 3}, []float64{1, 2, 3})
	w := tensor.FromFloats(tensor.Float32, []int64{3, 5}, []float64{1, 0, 0, 0, -1, 0, 1, 0, 0, 0, 0, 0, 1, 0, math.NaN()})
	set := verify.DataSet{Name: "mine", Inputs: []verify.Named{{Name: "x", Tensor: x}, {Name: "w", Tensor: w}}}
	n, err := s.Numbers(set)
	if err != nil {
		t.Fatal(err)
	}
	y := n.Values["y"]
	if y.Type != "f32[1,5]" || y.Stats == nil || y.Stats.Min != 0 || y.Stats.Max != 3 || y.Stats.NaN != 1 || y.Times != 1 || !slices.Equal(y.Stats.First, []string{"1", "2", "3", "0", "NaN"}) {
		t.Errorf("y is %+v %+v", y, y.Stats)
	}
	if n.NaN != "" { // it comes in with the weights
		t.Errorf("the first NaN is in %s", n.NaN)
	}
	set.Inputs[1].Tensor = tensor.FromFloats(tensor.Float32, []int64{3, 5}, []float64{1, 0, 0, 0, -1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0})
	set.Outputs = []verify.Named{{Name: "l", Tensor: tensor.FromFloats(tensor.Float32, []int64{1, 5}, []float64{9, 9, 9, 9, 9})}}
	n, err = s.Numbers(set)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Outputs) != 1 || n.Outputs[0].Wrong == "" || n.Wrong == "" || n.Suspect == "" {
		t.Errorf("%+v", n)
	}
	if inf := n.Values["l"].Stats; inf == nil || inf.Inf == 0 {
		t.Errorf("log(0) is %+v", inf)
	}
	if _, err := json.Marshal(n); err != nil {
		t.Error(err)
	}
}

func TestStatistics(t *testing.T) {
	many := make([]float64, 1<<18)
	for i := range many {
		many[i] = float64(i)
	}
	s := statistics(tensor.FromFloats(tensor.Float32, []int64{1 << 9, 1 << 9}, many), 3)
	total := 0
	for _, n := range s.Histogram {
		total += n
	}
	if s.Count != sampled || total != sampled || s.Min != 0 || s.Max < 1<<18-8 || !slices.Equal(s.First, []string{"0", "1", "2"}) {
		t.Errorf("%d elements, %d in the histogram, %v to %v, %v", s.Count, total, s.Min, s.Max, s.First)
	}
	huge := statistics(tensor.FromFloats(tensor.Float64, []int64{2}, []float64{-math.MaxFloat64, math.MaxFloat64}), 0)
	if len(huge.Histogram) != parts || huge.Histogram[0] != 1 || huge.Histogram[parts-1] != 1 {
		t.Errorf("%+v", huge)
	}
	if none := statistics(tensor.FromFloats(tensor.Float32, []int64{1}, []float64{math.NaN()}), 0); none.NaN != 1 || none.Histogram != nil {
		t.Errorf("%+v", none)
	}
	if statistics(tensor.Strings([]int64{1}, []string{"a"}), 1) != nil {
		t.Error("strings have statistics")
	}
}

// Kernels have their code, and each launch names the places of its nodes.
func TestKernels(t *testing.T) {
	s := session(t, "convnet.pt2")
	k, err := s.Kernels()
	if err != nil || k.Failed != "" {
		t.Fatal(err, k)
	}
	for _, x := range k.Kernels {
		if !strings.Contains(x.PTX, ".entry") || !strings.Contains(x.LLVM, "define") || x.KIR == "" || x.Threads == 0 {
			t.Errorf("%+v", x)
		}
	}
	placed := false
	for _, l := range k.Launch {
		for _, f := range l.Frames {
			placed = placed || s.Document().Frames[f].File == "nets.py"
		}
	}
	if !placed || !json.Valid([]byte(k.Plan)) {
		t.Error("no launch has a place, or the plan is no JSON")
	}
}

// Another pipeline takes the place of the usual one; one that is wrong leaves everything as it was.
func TestPipeline(t *testing.T) {
	s := ofText(t, matmul)
	before := s.Document()
	if _, err := s.Pipeline("no-such-pass"); err == nil || s.Document() != before {
		t.Errorf("an unknown pass: %v", err)
	}
	d, err := s.Pipeline("inline,dce")
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Passes) != 3 || d.Pipeline != "inline,dce" || d.Failed == "" { // nothing is lowered, which the pass check-converted tells
		t.Errorf("%d passes of %q: %s", len(d.Passes), d.Pipeline, d.Failed)
	}
	if d, err = s.Pipeline(""); err != nil || d.Graph == nil {
		t.Errorf("the usual pipeline: %v", err)
	}
}

const hostile = `<img src=x onerror=alert(1)></script><script>alert(2)</script>`

// A page has nothing in it that its policy does not name, and text of a model is in its data alone.
func TestHTML(t *testing.T) {
	s := ofText(t, matmul)
	s.name = hostile
	s.doc.Model = hostile
	var b strings.Builder
	if err := s.HTML(&b, nil); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, "<img src=x") || strings.Count(page, "</script>") != 3 {
		t.Error("the name of the model is markup")
	}
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil || !strings.Contains(policy[1], "default-src &#39;none&#39;") || strings.Contains(policy[1], "unsafe") {
		t.Fatalf("the policy is %v", policy)
	}
	for _, m := range regexp.MustCompile(`(?s)<script(?: type="module")?>(.*?)</script>|<style>(.*?)</style>`).FindAllStringSubmatch(page, -1) {
		if want := html.EscapeString(hash(m[1] + m[2])); !strings.Contains(policy[1], want) {
			t.Errorf("the policy has no %s", want)
		}
	}
	if regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(`).MatchString(program()) {
		t.Error("the program makes markup of text")
	}
	var again strings.Builder
	if err := s.HTML(&again, nil); err != nil || again.String() != page {
		t.Error("two pages of one model differ")
	}
}

// The names at the top of the page's files are different ones, and none is one that the browser has: they become one module.
func TestProgram(t *testing.T) {
	seen := map[string]string{}
	top := regexp.MustCompile(`(?m)^(?:export )?(?:async )?(?:function|class|const|let) (\w+)`)
	entries, err := web.ReadDir("web")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".js") {
			continue
		}
		if !slices.Contains(modules, e.Name()) {
			t.Errorf("%s is not in the list of modules", e.Name())
		}
		for _, m := range top.FindAllStringSubmatch(asset(e.Name()), -1) {
			if other := seen[m[1]]; other != "" {
				t.Errorf("%s is in %s and in %s", m[1], other, e.Name())
			}
			if slices.Contains(strings.Fields("history location document window name open close event status top parent self performance navigator"), m[1]) {
				t.Errorf("%s: %s is the browser's", e.Name(), m[1])
			}
			seen[m[1]] = e.Name()
		}
		for _, m := range regexp.MustCompile(`(?m)^import .* from "\./(.*)";`).FindAllStringSubmatch(asset(e.Name()), -1) {
			if slices.Index(modules, m[1]) >= slices.Index(modules, e.Name()) {
				t.Errorf("%s imports %s, which stands behind it", e.Name(), m[1])
			}
		}
	}
}

// The pictures are well-formed whatever the names are, and a large graph has few boxes.
func TestPictures(t *testing.T) {
	for _, text := range []string{matmul, long(1000)} {
		s := ofText(t, text)
		g := s.Document().Graph
		g.Nodes[0].Kind, g.OutputNames[0] = hostile+"\x01", hostile+`"\`
		var svg, dot bytes.Buffer
		if err := errors.Join(g.SVG(&svg), g.DOT(&dot)); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(svg.Bytes()))
		boxes := 0
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := tok.(xml.StartElement); ok {
				switch e.Name.Local {
				case "rect":
					boxes++
				case "img", "script":
					t.Error("a name is markup")
				}
			}
		}
		if boxes < 3 || boxes > drawn+10 {
			t.Errorf("%d boxes", boxes)
		}
		if rest := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).ReplaceAllString(dot.String(), ""); strings.ContainsAny(rest, `"<`) {
			t.Error("a name leaves its quotes")
		}
	}
}

// long is a program of n operators.
func long(n int) string {
	var b strings.Builder
	b.WriteString("graph(%x0 : Float(2, 3)):\n")
	for i := range n {
		b.WriteString("  %x" + strconv.Itoa(i+1) + " : Tensor = aten::" + []string{"sin", "cos"}[i%2] + "(%x" + strconv.Itoa(i) + ")\n")
	}
	b.WriteString("  return (%x" + strconv.Itoa(n) + ")\n")
	return b.String()
}

// Boxes of a layer do not overlap, and each is below those that it depends on.
func TestPlace(t *testing.T) {
	g := session(t, "attention.pt2").Document().Graph
	boxes, arrows := g.overview()
	points, paths := place(boxes, arrows)
	for i, a := range arrows {
		if points[a.from].layer >= points[a.to].layer || len(paths[i]) != points[a.to].layer-points[a.from].layer+1 {
			t.Errorf("an arrow leads from layer %d to %d by %d points", points[a.from].layer, points[a.to].layer, len(paths[i]))
		}
	}
	for i, p := range points {
		for _, q := range points[:i] {
			if p.layer == q.layer && math.Abs(p.x-q.x) < (p.w+q.w)/2+apart-1e-6 {
				t.Errorf("two boxes of layer %d overlap", p.layer)
			}
		}
	}
}

// serving starts a server, and gives the address of its page.
func serving(t *testing.T) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(ofText(t, matmul), l, nil, map[string]int64{"N": 3})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server, server.URL()
}

// A request that stops in its body, and one that takes no answer, hold nobody else.
func TestStalledRequests(t *testing.T) {
	server, url := serving(t)
	for range 4 {
		stalled, err := net.Dial("tcp", server.host)
		if err != nil {
			t.Fatal(err)
		}
		defer stalled.Close()
		fmt.Fprintf(stalled, "POST /%s/pipeline HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\ninline", server.token, server.host)
		deaf, err := net.Dial("tcp", server.host)
		if err != nil {
			t.Fatal(err)
		}
		defer deaf.Close()
		for range 50 {
			fmt.Fprintf(deaf, "GET /%s/document HTTP/1.1\r\nHost: %s\r\n\r\n", server.token, server.host)
		}
	}
	client := http.Client{Timeout: 5 * time.Second}
	for _, path := range []string{"kernels", "numbers", "pipeline"} {
		r, err := client.Post(url+path, "text/plain", strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Error(path, r.Status)
		}
	}
	client.CloseIdleConnections()
}

// Of connections that ask for nothing the oldest are closed, and that of the page last.
func TestIdleConnections(t *testing.T) {
	server, url := serving(t)
	var dialled atomic.Int32
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}}
	defer client.CloseIdleConnections()
	look := func() {
		t.Helper()
		r, err := client.Get(url + "document")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	look()
	var others []net.Conn
	for range 3 * mostIdle {
		c, err := net.Dial("tcp", server.host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		others = append(others, c)
	}
	look()
	if n := dialled.Load(); n != 1 {
		t.Errorf("the page had to connect %d times", n)
	}
	closed := 0
	for _, c := range others {
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		var timeout net.Error
		if _, err := c.Read(make([]byte, 1)); err != nil && !(errors.As(err, &timeout) && timeout.Timeout()) {
			closed++
		}
	}
	if closed < 2*mostIdle {
		t.Errorf("%d of %d connections are closed", closed, len(others))
	}
}

// Work that nobody waits for ends, and changes nothing.
func TestClosedPage(t *testing.T) {
	s := ofText(t, matmul)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before := s.doc
	s.ctx = gone
	if _, err := s.Pipeline("inline,dce"); !errors.Is(err, context.Canceled) || s.doc != before {
		t.Errorf("pipeline: %v", err)
	}
	if _, err := s.Kernels(); !errors.Is(err, context.Canceled) {
		t.Errorf("kernels: %v", err)
	}
	s.ctx = nil
	set, err := s.Random(0, map[string]int64{"N": 3})
	if err != nil {
		t.Fatal(err)
	}
	s.ctx = gone
	if _, err := s.Numbers(set); !errors.Is(err, context.Canceled) {
		t.Errorf("numbers: %v", err)
	}
	s.ctx = nil
	// who waits for the work of another page, and is closed meanwhile, waits no longer
	server, url := serving(t)
	server.work <- struct{}{}
	ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"kernels", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	<-server.work
	answer, err := http.Post(url+"kernels", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// The server answers who has the token and asks by its own address, and nobody else.
func TestServer(t *testing.T) {
	s := ofText(t, matmul)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server := NewServer(s, l, nil, map[string]int64{"N": 3})
	ask := func(method, url, host, origin, body string) *http.Response {
		r := httptest.NewRequest(method, url, strings.NewReader(body))
		if r.Host = server.host; host != "" {
			r.Host = host
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Result()
	}
	base := "/" + server.token + "/"
	for _, c := range []struct {
		method, url, host, origin, body string
		status                          int
	}{
		{"GET", base, "", "", "", 200},
		{"GET", base + "document", "", "", "", 200},
		{"POST", base + "kernels", "", "http://" + server.host, "", 200},
		{"POST", base + "numbers", "", "", "", 200},
		{"POST", base + "pipeline", "", "", "inline,dce", 200},
		{"POST", base + "pipeline", "", "", "", 200},
		{"POST", base + "pipeline", "", "", "no-such-pass", 422},
		{"POST", base + "pipeline", "", "", strings.Repeat("x", pipelineText+1), 422},
		{"GET", base + "pipeline", "", "", "", 405},
		{"POST", base, "", "", "", 405},
		{"POST", base + "other", "", "", "", 404},
		{"GET", "/", "", "", "", 403},
		{"GET", "/document", "", "", "", 403},
		{"GET", "/0123/document", "", "", "", 403},
		{"GET", base, "evil.example:80", "", "", 403},
		{"POST", base + "numbers", "", "http://evil.example", "", 403},
	} {
		r := ask(c.method, c.url, c.host, c.origin, c.body)
		if r.StatusCode != c.status {
			t.Errorf("%s %s from %q %q: %s", c.method, c.url, c.host, c.origin, r.Status)
		}
		if c.status == 403 {
			if b, _ := io.ReadAll(r.Body); bytes.Contains(b, []byte(server.token)) {
				t.Error("a refusal has the token")
			}
		}
	}
	if !strings.HasPrefix(server.URL(), "http://127.0.0.1:") || !strings.HasSuffix(server.URL(), base) {
		t.Error(server.URL())
	}
}

// loops has a loop that carries a value, and a branch in it.
const loops = `graph(%x : Float(2), %n : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %state : Tensor = aten::sin(%x)
  %last : Tensor = prim::Loop(%n, %true, %state)
    block0(%i : int, %s : Tensor):
      %m : Tensor = aten::sum(%s, %none)
      %c : bool = aten::Bool(%m)
      %next : Tensor = prim::If(%c)
        block0():
          %a : Tensor = aten::mul(%s, %half)
          -> (%a)
        block1():
          %b : Tensor = aten::relu(%s)
          -> (%b)
      -> (%true, %next)
  return (%last)
`

// The picture has what is in loops and branches, and the value that a loop carries.
func TestBodies(t *testing.T) {
	s := ofText(t, strings.Replace(loops, "  %one : int = prim::Constant[value=1]()\n", "  %one : int = prim::Constant[value=1]()\n  %none : NoneType = prim::Constant()\n", 1))
	check(t, s)
	g := s.Document().Graph
	for _, n := range g.Nodes {
		if want := map[string]int{"Loop": 1, "If": 2}[n.Kind]; len(n.Bodies) != want {
			t.Errorf("%s has %d bodies", n.Kind, len(n.Bodies))
		}
		for _, body := range n.Bodies {
			if n.Kind == "Loop" && len(body.Params) != len(n.Inputs) {
				t.Errorf("Loop reads %d values and its body has %d parameters", len(n.Inputs), len(body.Params))
			}
		}
	}
	var b strings.Builder
	if err := g.SVG(&b); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(b.String()), new(struct{})); err != nil {
		t.Error(err)
	}
	for _, want := range []string{">Loop<", ">body<", ">then<", ">else<", ">Mul<", ">Relu<"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the picture has no %s", want)
		}
	}
}

// What a model has changed is told node by node and weight by weight, and with numbers of the same inputs.
func TestCompare(t *testing.T) {
	text := func(op, extra, read, weight string) *Session {
		return ofText(t, "graph(%x : Float(N, 2)):\n  %one : int = prim::Constant[value=1]()\n  %w : Float() = prim::Constant[value={"+weight+"}]()\n"+
			"  %a : Tensor = aten::mul(%x, %w), scope: first\n"+extra+"  %y : Tensor = aten::"+op+"(%"+read+"), scope: last\n  return (%y)\n")
	}
	old, same := text("relu", "", "a", "2"), text("relu", "", "a", "2")
	if err := same.Compare(old); err != nil {
		t.Fatal(err)
	}
	c := same.Document().Comparison
	if len(c.Pairs) != len(same.Document().Graph.Nodes) || len(c.Weights)+len(c.Signature) > 0 || slices.ContainsFunc(c.Pairs, func(p Pair) bool { return len(p.Changes) > 0 }) {
		t.Errorf("a model and itself: %+v", c)
	}
	changed := text("sigmoid", "  %b : Tensor = aten::sin(%a), scope: middle\n", "b", "3")
	new := text("relu", "", "a", "3")
	if err := new.Compare(old); err != nil {
		t.Fatal(err)
	}
	c = new.Document().Comparison
	if len(c.Pairs) != 2 || len(c.Pairs[0].Changes) == 0 && len(c.Pairs[1].Changes) == 0 {
		t.Errorf("another number: %+v", c)
	}
	data, err := new.Random(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := new.Numbers(data)
	if err != nil {
		t.Fatal(err)
	}
	far := 0.0
	for _, d := range n.Differs {
		far = max(far, d)
	}
	if n.Former != "" || len(n.Differs) != 2 || far < 0.01 {
		t.Errorf("the numbers differ by %v, %s", n.Differs, n.Former)
	}
	if err := changed.Compare(old); err != nil {
		t.Fatal(err)
	}
	d := changed.Document()
	var news []string
	for i, node := range d.Graph.Nodes {
		if !slices.ContainsFunc(d.Comparison.Pairs, func(p Pair) bool { return p.New == i }) {
			news = append(news, node.Kind)
		}
	}
	if slices.Sort(news); !slices.Equal(news, []string{"Sigmoid", "Sin"}) {
		t.Errorf("new are %v", news)
	}
	refused := ofText(t, "graph(%x : Float(2, 2)):\n  %y : Tensor = aten::linalg_eigvals(%x)\n  return (%y)\n")
	if err := changed.Compare(refused); err == nil {
		t.Error("a model that is not converted was compared")
	}
}

// Weights are compared by name, and by how far their elements are from each other.
func TestChangedWeights(t *testing.T) {
	weights := func(values map[string][]float64) (list []Weight, tensors []*tensor.Tensor) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			list = append(list, Weight{Name: name})
			tensors = append(tensors, tensor.FromFloats(tensor.Float32, []int64{int64(len(values[name]))}, values[name]))
		}
		return list, tensors
	}
	news, x := weights(map[string][]float64{"same": {1, 2}, "far": {1, 3}, "nan": {1, math.NaN()}, "longer": {1, 2, 3}, "new": {1}})
	olds, y := weights(map[string][]float64{"same": {1, 2}, "far": {1, 2}, "nan": {1, 2}, "longer": {1, 2}, "old": {1}})
	want := []WeightChange{
		{Name: "far", What: "changed", New: "f32[2]", Old: "f32[2]", Differs: 0.5},
		{Name: "longer", What: "changed", New: "f32[3]", Old: "f32[2]", Differs: -1},
		{Name: "nan", What: "changed", New: "f32[2]", Old: "f32[2]", Differs: -1},
		{Name: "new", What: "added", New: "f32[1]"},
		{Name: "old", What: "removed", Old: "f32[1]"},
	}
	if got := changedWeights(news, x, olds, y); !slices.Equal(got, want) {
		t.Errorf("changed are %+v", got)
	}
}

// A convolution into which a normalization was folded is found under the names of both modules.
func TestFused(t *testing.T) {
	s := session(t, "convnet.pt2")
	for _, n := range s.Document().Graph.Nodes {
		if n.Kind == "Conv" && len(n.Also) > 0 {
			return
		}
	}
	t.Error("no convolution has the module of what was folded into it")
}

// The inputs of a scripted program have examples of types that fit what reads them; those of an exported program have their types.
func TestInputs(t *testing.T) {
	for file, want := range map[string]string{
		fixtures + "convnet.script.pt":  "x Tensor f32[N,3,224,224]",
		"browser/testdata/search.pt":    "first Tensor i64[N,128], limit int int",
		"browser/testdata/resnet18.pt2": "x f32[s77,3,64,64]",
	} {
		m, err := aton.Load(file, aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, in := range Inputs(m, aton.ConvertOptions{}) {
			got = append(got, strings.TrimSpace(in.Name+" "+in.Type+" "+in.Example))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s has %q, not %q", file, got, want)
		}
	}
}

// A node has the names of its operands, its types by name, and says which attributes are the standard's defaults.
func TestNodeDetails(t *testing.T) {
	s := session(t, "convnet.pt2")
	g := s.Document().Graph
	if got := strings.Join(g.Operands["Conv"], " "); got != "X W B" {
		t.Errorf("the operands of Conv are %q", got)
	}
	told := map[string]bool{}
	for _, n := range g.Nodes {
		for _, a := range n.Attrs {
			told[fmt.Sprintf("%s.%s=%s %t", n.Kind, a.Name, a.Text, a.Usual)] = true
		}
	}
	for _, want := range []string{"Conv.dilations=[1, 1] true", "Conv.kernel_shape=[5, 5] false", "Conv.group=1 true", "MaxPool.strides=[2, 2] false"} {
		if !told[want] {
			t.Errorf("%s is not among %v", want, told)
		}
	}
	if got := attribute(ssa.Attr{Name: "to", Value: ssa.Int(9)}); got != "bool" {
		t.Errorf("the type 9 is %s", got)
	}
	if got := attribute(ssa.Attr{Name: "to", Value: ssa.Int(1000)}); got != "1000" {
		t.Errorf("an unknown type is %s", got)
	}
}
