package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shape is what the SARIF 2.1.0 standard says of the objects that a log of ours has: the type of each property, with ! behind
// those that must be there. Objects are named; [x] is a list. In the standard's schema no object has other properties.
var shape = map[string]map[string]string{
	"sarifLog":                 {"$schema": "uri", "version!": "2.1.0", "runs!": "[run]"},
	"run":                      {"tool!": "tool", "invocations": "[invocation]", "artifacts": "[artifact]", "results": "[result]", "columnKind": "utf16CodeUnits|unicodeCodePoints"},
	"tool":                     {"driver!": "toolComponent"},
	"toolComponent":            {"name!": "text", "version": "text", "informationUri": "uri", "rules": "[reportingDescriptor]"},
	"reportingDescriptor":      {"id!": "text", "shortDescription": "multiformatMessageString", "help": "multiformatMessageString"},
	"multiformatMessageString": {"text!": "text", "markdown": "text"},
	"invocation":               {"executionSuccessful!": "bool"},
	"artifact":                 {"location": "artifactLocation"},
	"artifactLocation":         {"uri": "uri"},
	"result": {"ruleId": "text", "ruleIndex": "index", "level": "none|note|warning|error", "message!": "message", "locations": "[location]", "relatedLocations": "[location]",
		"properties": "bag"},
	"message":          {"text": "text", "markdown": "text"},
	"location":         {"physicalLocation": "physicalLocation", "logicalLocations": "[logicalLocation]", "message": "message"},
	"physicalLocation": {"artifactLocation": "artifactLocation", "region": "region"},
	"region":           {"startLine": "positive", "startColumn": "positive"},
	"logicalLocation":  {"fullyQualifiedName": "text", "kind": "text"},
}

// fits compares a value with a type of the shape.
func fits(v any, typ, at string) (bad []string) {
	wrong := func() []string { return []string{fmt.Sprintf("%s: %v is no %s", at, v, typ)} }
	if elem, list := strings.CutPrefix(typ, "["); list {
		vs, ok := v.([]any)
		if !ok {
			return wrong()
		}
		for i, e := range vs {
			bad = append(bad, fits(e, strings.TrimSuffix(elem, "]"), fmt.Sprintf("%s[%d]", at, i))...)
		}
		return bad
	}
	if properties := shape[typ]; properties != nil {
		o, ok := v.(map[string]any)
		if !ok {
			return wrong()
		}
		for name, t := range properties {
			name, must := strings.CutSuffix(name, "!")
			if e, has := o[name]; has {
				bad = append(bad, fits(e, t, at+"."+name)...)
			} else if must {
				bad = append(bad, at+"."+name+" is missing")
			}
		}
		for name := range o {
			if _, known := properties[name]; !known && properties[name+"!"] == "" {
				bad = append(bad, at+"."+name+" is no property of a "+typ)
			}
		}
		return bad
	}
	n, isNumber := v.(float64)
	s, isText := v.(string)
	_, isBool := v.(bool)
	_, isBag := v.(map[string]any)
	ok := false
	switch typ {
	case "bool":
		ok = isBool
	case "bag":
		ok = isBag
	case "index":
		ok = isNumber && n >= -1 && n == float64(int(n))
	case "positive":
		ok = isNumber && n >= 1 && n == float64(int(n))
	case "text":
		ok = isText && s != ""
	case "uri":
		ok = isText && s != "" && !strings.ContainsAny(s, " <>\\")
	default:
		ok = isText && slices.Contains(strings.Split(typ, "|"), s)
	}
	if !ok {
		return wrong()
	}
	return nil
}

// TestSARIF writes logs of models that convert, that do not, and that cannot be read, and compares them with the standard's shape.
func TestSARIF(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.ir", "graph(%x : Float(2, 3)):\n  %y : Float(2, 3) = aten::relu(%x)\n  return (%y)\n")
	bad := write("a bad one.ir", `graph(%x : Float(2, 3), %unused : Float(2)):
  %y : Float(2, 3) = aten::nothing(%x), scope: layers.0 # net.py:7:4
  %z : Float(2, 3) = my::own(%y) # dir of mine/net.py:9:0
  return (%z)
`)
	garbage := write("garbage.pt", "garbage")
	rules := write("my.rules", "rule a\n  from\n    %y = aten::gelu(%x)\n  to\n    %y = onnx::Relu(%x)\n")
	for _, c := range []struct {
		name    string
		args    []string
		status  int
		results []string // rule, level, place
	}{
		{"good", []string{"check", good}, 0, nil},
		{"bad", []string{"check", bad}, 1, []string{"unsupported-op error net.py:7:5 layers.0", "unsupported-op error dir%20of%20mine/net.py:9:1 "}},
		{"bad export", []string{"export", bad, "-o", filepath.Join(dir, "out.onnx")}, 1, []string{"unsupported-op error net.py:7:5 layers.0", "unsupported-op error dir%20of%20mine/net.py:9:1 "}},
		{"warnings", []string{"export", good, "-o", filepath.Join(dir, "out.onnx"), "--rules", rules}, 0, []string{"unused-rule warning " + filepath.ToSlash(rules) + ":1:1 "}},
		{"garbage", []string{"check", garbage}, 1, []string{"unreadable error " + filepath.ToSlash(garbage) + " "}},
		{"no file", []string{"check", filepath.Join(dir, "none.pt")}, 1, []string{"file error " + filepath.ToSlash(filepath.Join(dir, "none.pt")) + " "}},
	} {
		log := filepath.Join(dir, "log.sarif")
		var out, errs bytes.Buffer
		status := Main(append(c.args, "--sarif", log), strings.NewReader(""), &out, &errs)
		if status != c.status {
			t.Errorf("%s: status %d\n%s", c.name, status, errs.String())
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		for _, b := range fits(v, "sarifLog", "log") {
			t.Errorf("%s: %s", c.name, b)
		}
		var got []string
		run := v.(map[string]any)["runs"].([]any)[0].(map[string]any)
		for _, r := range run["results"].([]any) {
			r := r.(map[string]any)
			rule := run["tool"].(map[string]any)["driver"].(map[string]any)["rules"].([]any)[int(r["ruleIndex"].(float64))].(map[string]any)
			if rule["id"] != r["ruleId"] {
				t.Errorf("%s: %v is not the rule of %v", c.name, rule["id"], r["ruleId"])
			}
			at := r["locations"].([]any)[0].(map[string]any)
			physical := at["physicalLocation"].(map[string]any)
			place := strings.TrimPrefix(physical["artifactLocation"].(map[string]any)["uri"].(string), "file://")
			if region, ok := physical["region"].(map[string]any); ok {
				place += fmt.Sprintf(":%v:%v", region["startLine"], region["startColumn"])
			}
			scope := ""
			if logical, ok := at["logicalLocations"].([]any); ok {
				scope = logical[0].(map[string]any)["fullyQualifiedName"].(string)
			}
			got = append(got, fmt.Sprint(r["ruleId"], " ", r["level"], " ", place, " ", scope))
		}
		for _, want := range c.results {
			if !slices.Contains(got, want) {
				t.Errorf("%s: no result %q in %q", c.name, want, got)
			}
		}
		if len(c.results) == 0 && slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, " error ") }) {
			t.Errorf("%s: %q", c.name, got)
		}
		if ok := run["invocations"].([]any)[0].(map[string]any)["executionSuccessful"]; ok != (c.status == 0) {
			t.Errorf("%s: executionSuccessful is %v", c.name, ok)
		}
	}
	// a log of a wrong call says nothing
	var errs bytes.Buffer
	if status := Main([]string{"check", good, "--opset", "99", "--sarif", filepath.Join(dir, "none.sarif")}, nil, &errs, &errs); status != 2 {
		t.Errorf("a wrong call: status %d", status)
	}
	if _, err := os.Stat(filepath.Join(dir, "none.sarif")); err == nil {
		t.Error("a wrong call writes a log")
	}
}

// TestIdentifiers insists that each error as JSON has an identifier.
func TestIdentifiers(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.pt")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o666); err != nil {
		t.Fatal(err)
	}
	graph := filepath.Join(dir, "graph.ir")
	if err := os.WriteFile(graph, []byte("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", garbage, "-o", filepath.Join(dir, "o.onnx")}, "unreadable"},
		{[]string{"export", garbage + ".not", "-o", filepath.Join(dir, "o.onnx")}, "file"},
		{[]string{"export", garbage, "--opset", "99", "-o", filepath.Join(dir, "o.onnx")}, "usage"},
		{[]string{"export", "--nonsense"}, "usage"},
		{[]string{"check", graph, "--input", "z:f32[2]", "--input", "w:f32[2]", "--input", "v:f32[2]"}, "input-spec"},
	} {
		var out, errs bytes.Buffer
		Main(append(c.args, "--json"), strings.NewReader(""), &out, &errs)
		var data struct{ Errors []struct{ ID string } }
		text := errs.Bytes()
		if bytes.HasPrefix(out.Bytes(), []byte("{")) {
			text = bytes.ReplaceAll(out.Bytes(), []byte(`"problems"`), []byte(`"errors"`))
		}
		if err := json.Unmarshal(text, &data); err != nil || len(data.Errors) == 0 || data.Errors[0].ID != c.want {
			t.Errorf("%v: %s; want %s", c.args, text, c.want)
		}
	}
}

// TestExplain prints pages, all titles, and says what is near a wrong identifier.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"explain", "const-arg", "opset"}, 0, "# opset: a newer opset is needed"},
		{[]string{"explain"}, 0, "const-arg            an argument must be a constant"},
		{[]string{"explain", "const-arg", "--json"}, 0, `"title": "an argument must be a constant"`},
		{[]string{"explain", "constarg"}, 2, `there is no identifier "constarg", did you mean "const-arg"?`},
		{[]string{"explain", "../explain"}, 2, `there is no identifier "../explain"`},
	} {
		var out bytes.Buffer
		if status := Main(c.args, nil, &out, &out); status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: status %d\n%s", c.args, status, out.String())
		}
	}
}
