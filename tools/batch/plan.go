package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Request is what is asked for.
type Request struct {
	// Models is a manifest or a folder of models, Out the folder for what is written.
	Models, Out string
	// Do is export, check or verify.
	Do string
	// Options are for all models, by name and value; those of a line of the manifest go before them. Their paths are relative to the
	// working folder.
	Options []Option
	Limits  Limits
	Tries   int
	// Build tells versions of aton apart: what another one has done is done again.
	Build string
}

// Plan is the work: the items, in the order of the manifest or of their names.
type Plan struct {
	Items []*Item
	// Root is the absolute path of the folder that relative paths begin at.
	Root string
}

// extensions are those that models have.
var extensions = []string{".pt", ".pth", ".pt2", ".onnx", ".ir"}

// mostErrors is how many lines of a manifest are complained about.
const mostErrors = 20

// NewPlan reads a manifest or a folder. Nothing is done if a line of the manifest is wrong: the error has each of them.
func NewPlan(commands Commands, r Request) (*Plan, error) {
	models, err := filepath.Abs(r.Models)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(models)
	if err != nil {
		return nil, err
	}
	if models, err = filepath.EvalSymlinks(models); err != nil {
		return nil, err
	}
	p := &Plan{Root: models}
	if !info.IsDir() {
		p.Root = filepath.Dir(models)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var common []Option
	for _, o := range r.Options {
		o, err := option(o.Name, o.Value, cwd, p.Root)
		if err != nil {
			return nil, err
		}
		if err := p.exists(o); err != nil {
			return nil, err
		}
		common = append(common, o)
	}
	if err := commands.check(r.Do, common); err != nil {
		return nil, err
	}
	if info.IsDir() {
		err = p.folder(r)
	} else {
		err = p.manifest(commands, r)
	}
	if err != nil {
		return nil, err
	}
	if len(p.Items) == 0 {
		return nil, fmt.Errorf("%s: there is no model (%s)", r.Models, strings.Join(extensions, ", "))
	}
	if err := p.apart(r); err != nil {
		return nil, err
	}
	for _, it := range p.Items {
		it.Do, it.Limits, it.Tries = r.Do, r.Limits, r.Tries
		own := map[string]bool{}
		for _, o := range it.Options {
			own[o.Name] = true
		}
		for _, o := range common {
			if !own[o.Name] {
				it.Options = append(it.Options, o)
			}
		}
		if it.Key, err = p.key(it, r.Build); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// apart refuses to write over a model.
func (p *Plan) apart(r Request) error {
	if r.Do != "export" {
		return nil
	}
	models := map[string]bool{}
	for _, it := range p.Items {
		if it.Model.Path != "" {
			models[p.local(it.Model)] = true
		}
	}
	out, err := filepath.Abs(r.Out)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(out); err == nil {
		out = real
	}
	for _, it := range p.Items {
		if file := filepath.Join(out, filepath.FromSlash(it.Name)+".onnx"); models[file] {
			return fmt.Errorf("%s: what is written would replace this model; give another folder with -o", file)
		}
	}
	return nil
}

// folder takes every model file in the folder, but for those of the output.
func (p *Plan) folder(r Request) error {
	out, err := filepath.Abs(r.Out)
	if err != nil {
		return err
	}
	var names []string
	taken := map[string]int{} // how many files have the name without its extension
	err = filepath.WalkDir(p.Root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != p.Root && (file == out || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(extensions, filepath.Ext(file)):
			return nil
		}
		rel, err := filepath.Rel(p.Root, file)
		if err != nil {
			return err
		}
		names = append(names, filepath.ToSlash(rel))
		taken[trimExt(filepath.ToSlash(rel))]++
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, file := range names {
		name := trimExt(file)
		if taken[name] > 1 { // a.pt and a.onnx stay apart
			name = file
		}
		p.Items = append(p.Items, &Item{Name: name, Model: Source{Path: file}})
	}
	return nil
}

func trimExt(file string) string { return strings.TrimSuffix(file, path.Ext(file)) }

// manifest reads lines of JSON. Each is an object with "model" (a path, relative to the manifest, or a URL), "name" (that of the model
// by itself) and options of the command by their names, with a string, a number, true, false or a list of these.
func (p *Plan) manifest(commands Commands, r Request) error {
	text, err := os.ReadFile(r.Models)
	if err != nil {
		return err
	}
	var wrong []error
	lines := map[string]int{} // by name
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, len(text)+1)
	for n := 1; scanner.Scan(); n++ {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		it, err := p.line(commands, r.Do, line)
		if err == nil {
			if before := lines[it.Name]; before > 0 {
				err = fmt.Errorf("the name %q is that of line %d; give another \"name\"", it.Name, before)
			}
			lines[it.Name] = n
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", r.Models, n, err))
			if len(wrong) == mostErrors {
				break
			}
			continue
		}
		p.Items = append(p.Items, it)
	}
	return errors.Join(wrong...)
}

// line reads a line of a manifest.
func (p *Plan) line(commands Commands, do string, text []byte) (*Item, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil, fmt.Errorf("this is no JSON object: %w", err)
	}
	if d.More() {
		return nil, errors.New("there is something behind the JSON object")
	}
	model, _ := fields["model"].(string)
	if model == "" {
		return nil, errors.New(`"model" is missing: the path or URL of a model`)
	}
	it := &Item{}
	var err error
	base := model
	if isURL(model) {
		u, err := url.Parse(model)
		if err != nil {
			return nil, errors.New("the URL is not well-formed") // the error has the URL, which may hold a password
		}
		it.Model = Source{URL: model}
		base = u.Path
	} else {
		if it.Model, err = pathSource(filepath.FromSlash(model), p.Root, p.Root); err != nil {
			return nil, err
		}
		if info, err := os.Stat(p.local(it.Model)); err != nil {
			return nil, err
		} else if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no file", model)
		}
	}
	it.Name = trimExt(path.Base(filepath.ToSlash(base)))
	if given, ok := fields["name"]; ok {
		it.Name, _ = given.(string)
	}
	if err := checkName(it.Name); err != nil {
		return nil, err
	}
	delete(fields, "model")
	delete(fields, "name")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values, ok := fields[name].([]any)
		if !ok {
			values = []any{fields[name]}
		}
		for _, v := range values {
			switch v.(type) {
			case string, json.Number, bool:
			default:
				return nil, fmt.Errorf("%s: a value is a string, a number, true, false or a list of these", name)
			}
			o, err := option(name, fmt.Sprint(v), p.Root, p.Root)
			if err != nil {
				return nil, err
			}
			if err := p.exists(o); err != nil {
				return nil, err
			}
			it.Options = append(it.Options, o)
		}
	}
	return it, commands.check(do, it.Options)
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// checkName says why files cannot be called so.
func checkName(name string) error {
	for _, part := range strings.Split(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.ContainsAny(part, "\\:\x00\n") || !filepath.IsLocal(part) {
			return fmt.Errorf("no file can have the name %q: give a \"name\" of letters, digits and slashes", name)
		}
	}
	return nil
}

// exists says whether the file of an option is there.
func (p *Plan) exists(o Option) error {
	if o.File == nil {
		return nil
	}
	if _, err := os.Stat(p.local(*o.File)); err != nil {
		return fmt.Errorf("%s: %w", o.Name, err)
	}
	return nil
}

// local is where a path lies on this machine.
func (p *Plan) local(s Source) string {
	if filepath.IsAbs(s.Path) {
		return s.Path
	}
	return filepath.Join(p.Root, filepath.FromSlash(s.Path))
}

// key identifies an item, its options and the state of its files: their sizes and times, as reading thousands of models takes long.
// The cache goes by content.
func (p *Plan) key(it *Item, build string) (string, error) {
	var states []string
	sources := []Source{it.Model}
	for _, o := range it.Options {
		if o.File != nil {
			sources = append(sources, *o.File)
		}
	}
	for _, s := range sources {
		if s.Path == "" {
			continue
		}
		files, err := filesOf(p.local(s))
		if err != nil {
			return "", err
		}
		for _, f := range files.names {
			info, err := os.Stat(filepath.Join(files.dir, f))
			if err != nil {
				return "", err
			}
			states = append(states, fmt.Sprint(f, " ", info.Size(), " ", info.ModTime().UnixNano()))
		}
	}
	return digest(it.Name, it.Do, it.Model, it.Options, states, build)[:32], nil
}
