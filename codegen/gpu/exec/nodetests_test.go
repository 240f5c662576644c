package exec_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/internal/pack"
)

// nodeInput reads an input of one of ONNX's node tests: a tensor, a sequence of them, or nothing.
func nodeInput(t *testing.T, path string) interp.Value {
	t.Helper()
	read := func(path string) interp.Value {
		_, x, err := onnxfile.ReadTensor(path)
		if err != nil {
			t.Fatal(err)
		}
		return interp.Of(x)
	}
	if _, err := os.Stat(path + ".seq"); err == nil {
		v := interp.Value{IsList: true}
		list, _ := filepath.Glob(path + ".seq/*.pb")
		sort.Strings(list)
		for _, p := range list {
			v.List = append(v.List, read(p).Tensor)
		}
		return v
	}
	if _, err := os.Stat(path + ".pb"); err != nil {
		return interp.Value{}
	}
	return read(path + ".pb")
}

// hostReasons are why nodes of the tests may run on the host, by a part of the reason: for all operators, or for those listed.
var hostReasons = map[string]string{
	"no emitter": "Adagrad Adam ArrayFeatureExtractor Binarizer FlexAttention Gradient ImageDecoder LabelEncoder MelWeightMatrix Momentum StringNormalizer StringSplit TfIdfVectorizer TreeEnsemble",
	"the rank of a tensor is not known before the run": "",
	"depends on data":                   "", // axes
	"is not constant":                   "",
	"is no tensor":                      "ConcatFromSequence If Loop SequenceAt SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence Optional OptionalGetElement OptionalHasElement",
	"elements of type String":           "",
	"elements of type Float8_e8m0fnu":   "",
	"padding by the size of the result": "ConvTranspose",
	"with an exponent that is a float":  "Pow",
}

// excused reports a reason that is listed.
func excused(op, reason string) bool {
	for part, ops := range hostReasons {
		if strings.Contains(reason, part) && (ops == "" || slices.Contains(strings.Fields(ops), op)) {
			return true
		}
	}
	return false
}

// TestNodeTests plans ONNX's own tests of its operators (testdata/nodes.tar.gz, or all of them in the folder ATON_NODE_TESTS: make
// node-tests), runs them with all checkers, and compares each node with the interpreter. What runs on the host is counted by reason.
func TestNodeTests(t *testing.T) {
	dir := os.Getenv("ATON_NODE_TESTS")
	if dir == "" {
		dir = t.TempDir()
		if _, err := pack.Unpack(filepath.Join("..", "..", "..", "testdata", "nodes.tar.gz"), dir); err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(dir, "nodes")
	}
	cases, _ := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if len(cases) == 0 {
		t.Fatalf("there are no tests in %s", dir)
	}
	host := map[string][]string{}
	whole, ran, left := 0, 0, 0
	for _, path := range cases {
		name := filepath.Base(filepath.Dir(path))
		m, err := onnxfile.Read(path)
		if err != nil {
			left++
			continue
		}
		p, err := plan.New(m, fuse.None)
		if err != nil {
			left++
			continue
		}
		ran++
		all := true
		for _, n := range p.Nodes {
			if n.Place == plan.Host {
				all = false
				op := n.Op.Kind.Name()
				key := op + ": " + n.Reason
				if op = op[strings.LastIndex(op, ":")+1:]; !excused(op, n.Reason) {
					t.Errorf("%s: %s", name, key)
				}
				if !slices.Contains(host[key], name) {
					host[key] = append(host[key], name)
				}
			}
		}
		if !all {
			continue
		}
		whole++
		t.Run(name, func(t *testing.T) {
			for k := 0; ; k++ {
				data := filepath.Join(filepath.Dir(path), fmt.Sprintf("data_%d", k))
				if _, err := os.Stat(data); err != nil {
					return
				}
				args := make([]interp.Value, len(p.Func.Body.Params))
				for i := range args {
					if held := m.Held(p.Func.Body.Params[i].Name); held != nil {
						args[i] = interp.Of(held)
						continue
					}
					args[i] = nodeInput(t, filepath.Join(data, fmt.Sprintf("input_%d", i)))
				}
				want, err := new(interp.Interpreter).RunFunc(p.Func, args)
				if err != nil {
					t.Skip(err) // the interpreter's own test says why
				}
				got, _, err := exec.NewSession(p, &exec.Sim{Check: true, Budget: 1 << 32}).Run(args)
				if errors.Is(err, sim.ErrBudget) {
					t.Skip(err)
				} else if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if x, y := want[i].Tensor, got[i].Tensor; x != nil && (y == nil || x.String() != y.String()) {
						t.Errorf("result %d is %v, expected %v", i, y, x)
					}
				}
				nodes, err := exec.CheckNodes(p, exec.NewSession(p, &exec.Sim{Check: true, Budget: 1 << 32}), args, false)
				if errors.Is(err, sim.ErrBudget) {
					t.Skip(err)
				} else if err != nil {
					t.Fatal(err)
				}
				for _, n := range nodes {
					if n.Bad() {
						t.Error(&n)
					}
				}
			}
		})
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(host)) {
		lines = append(lines, fmt.Sprintf("%4d %s (%s)", len(host[key]), key, host[key][0]))
	}
	t.Logf("%d of %d tests without a host step, %d not read; on the host:\n%s", whole, ran, left, strings.Join(lines, "\n"))
}
