package main

import (
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
)

// bombs are valid programs of a few lines that would take all memory, or years. Each ends with an error that says so, or is
// converted without doing what it says; says is empty then.
var bombs = []struct{ name, input, body, says string }{
	{"a list that doubles", "", "l = [1]\nfor i in range(40):\n  l = torch.add(l, l)\nreturn torch.add(x, torch.len(l))", "take more than 268435456 bytes"},
	{"a list that doubles in place", "", "l = [1]\nfor i in range(40):\n  _0 = torch.extend(l, l)\nreturn torch.add(x, torch.len(l))", "take more than 268435456 bytes"},
	{"a list that is added to itself", "", "l = [1]\nfor i in range(40):\n  l = torch.add_(l, l)\nreturn torch.add(x, torch.len(l))", "take more than 268435456 bytes"},
	{"a string that doubles", "", "s = \"a\"\nfor i in range(40):\n  s = torch.add(s, s)\nreturn torch.add(x, torch.len(s))", "take more than 268435456 bytes"},
	{"a tensor that doubles", "x:f32[4]", "y = x\nfor i in range(40):\n  y = torch.cat([y, y])\nreturn y", ""},
	{"a constant that doubles", "", "y = torch.ones([1])\nfor i in range(40):\n  y = torch.cat([y, y])\nreturn torch.add(x, torch.sum(y))", ""},
	{"a list of 10^9", "", "return torch.add(x, torch.len(torch.mul([0], 1000000000)))", "take more than 268435456 bytes"},
	{"a format of 10^9", "", "return torch.add(x, torch.len(torch.format(\"{:>1000000000}\", \"a\")))", ""},
	{"10^12 iterations on a number", "", "n = 0\nfor i in range(1000000000000):\n  n = torch.add(n, i)\nreturn torch.add(x, n)", ""},
	{"10^12 iterations on a list", "", "l = [x]\nfor i in range(1000000000000):\n  _0 = torch.append(l, x)\nreturn torch.stack(l)", ""},
	{"loops on numbers, 12 deep", "", nested(12, "n = 0", "n = torch.add(n, 1)") + "\nreturn torch.add(x, n)", "takes more than"},
	{"loops on tensors, 6 deep", "", nested(6, "y = x", "y = torch.add(y, 1)") + "\nreturn y", ""},
	{"calls that double 20 times", "", "", "inlining gives more than 524288 operators"},
	{"branches, 12 deep", "x:f32[N,M]", branches(12), ""},
	{"branches, 24 in turn", "", inTurn(24), ""},
	{"split", "", "return torch.add(x, (torch.split(torch.expand(torch.zeros([1]), [1000000000]), 1))[0])", ""},
	{"unbind", "", "return torch.add(x, (torch.unbind(torch.expand(torch.zeros([1]), [1000000000])))[0])", ""},
	{"chunk", "", "return torch.add(x, (torch.chunk(torch.expand(torch.zeros([1]), [1000000000]), 1000000000))[0])", ""},
	{"unfold", "", "return torch.add(x, torch.sum(torch.unfold(torch.expand(torch.zeros([1]), [1000000000]), 0, 1000, 1)))", "makes 999999001000 indices, more than the 16777216"},
	{"linspace", "", "return torch.add(x, torch.sum(torch.linspace(0, 1, 1000000000)))", "makes 1000000000 numbers, more than the 16777216"},
	{"histc", "", "return torch.add(x, torch.sum(torch.histc(x, 1000000000)))", "makes 1000000000 bins, more than the 16777216"},
	{"diag_embed", "", "return torch.add(x, torch.sum(torch.diag_embed(torch.ones([4000]))))", ""},
	{"combinations", "", "return torch.add(x, torch.sum(torch.combinations(torch.ones([2000]), 3)))", "makes 4006002000 indices, more than the 16777216"},
	{"tril_indices", "", "return torch.add(x, torch.sum(torch.tril_indices(100000, 100000)))", "the triangle of a 100000 x 100000 matrix"},
	{"adaptive pooling to 2^40", "", "return torch.adaptive_avg_pool1d(torch.unsqueeze(x, 0), [1099511627776])", ""},
	{"ones of 2^62", "", "return torch.add(x, torch.sum(torch.ones([4611686018427387904])))", ""},
	{"arange of 10^12", "", "return torch.add(x, torch.sum(torch.arange(1000000000000)))", ""},
	{"an input of 2^62", "x:i64[4611686018427387904,5]", "return torch.cumsum(x, 0)", ""},
	{"an input of strings", "x:str[9]", "return torch.relu(x)", "PyTorch has no tensors of strings"},
}

func nested(depth int, before, inner string) string {
	lines := []string{before}
	for k := range depth {
		lines = append(lines, strings.Repeat("  ", k)+"for i_"+string(rune('a'+k))+" in range(10):")
	}
	return strings.Join(append(lines, strings.Repeat("  ", depth)+inner), "\n")
}

func branches(depth int) string {
	var open, closing []string
	for k := range depth {
		in := strings.Repeat("  ", k)
		d, n := string(rune('0'+k%2)), string(rune('a'+k))
		open = append(open, in+"if torch.gt(torch.size(x, "+d+"), "+d+"):")
		closing = append([]string{in + "  y" + n + " = torch.add(" + deeper(k, depth) + ", 1)", in + "else:", in + "  y" + n + " = x"}, closing...)
	}
	// from the inside out: the innermost block is the first of closing
	return strings.Join(append(append(open, closing...), "return ya"), "\n")
}

// deeper names what the block inside of block k gives.
func deeper(k, depth int) string {
	if k+1 == depth {
		return "x"
	}
	return "y" + string(rune('a'+k+1))
}

func inTurn(n int) string {
	lines := []string{"y = x"}
	for k := range n {
		lines = append(lines, "if torch.gt(torch.size(y, 0), "+string(rune('0'+k%10))+"):", "  y = torch.slice(y, 0, 1)", "else:", "  y = torch.cat([y, y])")
	}
	return strings.Join(append(lines, "return y"), "\n")
}

// doubling is a method that calls functions, each of which calls the next one twice.
func doubling() string {
	code := "  def forward(self: __torch__.Program,\n    x: Tensor) -> Tensor:\n    return __torch__.f20(x, )\n"
	for k := 20; k > 0; k-- {
		below := "__torch__.f" + itoa(k-1)
		code += "def f" + itoa(k) + "(x: Tensor) -> Tensor:\n  return " + below + "(" + below + "(x, ), )\n"
	}
	return code + "def f0(x: Tensor) -> Tensor:\n  return torch.add(x, 1)\n"
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// TestBombs exports them. Each has a generous minute and a gigabyte; what they take is in the README.
func TestBombs(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxMemory * 3 / 4))
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			code := "  def forward(self: __torch__.Program,\n    x: Tensor) -> Tensor:\n    " + strings.ReplaceAll(b.body, "\n", "\n    ") + "\n"
			if b.body == "" {
				code = doubling()
			}
			archive, err := archiveOf(code)
			if err != nil {
				t.Fatal(err)
			}
			if b.input == "" {
				b.input = "x:f32[N]"
			}
			in, err := spec.Parse(b.input)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			m, err := aton.LoadBytes(archive, "bomb.pt", aton.LoadOptions{Inputs: []spec.Input{in}})
			if err == nil {
				err = aton.ExportTo(io.Discard, m, aton.ExportOptions{})
			}
			took, memory := time.Since(began), used()
			said := ""
			if err != nil {
				said = err.Error()
			}
			t.Logf("%.2f s, %d MB: %s", took.Seconds(), memory>>20, said)
			if b.says == "" && err != nil || !strings.Contains(said, b.says) {
				t.Errorf("it says %q instead of %q", said, b.says)
			}
			if took > time.Minute || memory > maxMemory {
				t.Errorf("it takes %v and %d bytes", took, memory)
			}
			debug.FreeOSMemory()
		})
	}
}
