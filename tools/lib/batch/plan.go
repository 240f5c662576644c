package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
	// protected are the files that nothing is written over, without links, with what they are.
	protected map[string]string
	states    map[string]string // by path
	real      links
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
	p := &Plan{Root: models, protected: map[string]string{}, states: map[string]string{}, real: links{}}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return nil, irregular(r.Models)
		}
		p.Root = filepath.Dir(models)
		p.protected[models] = "the manifest"
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
	for _, it := range p.Items {
		it.Do, it.Limits, it.Tries = r.Do, r.Limits, r.Tries
		given := it.Options
		for _, o := range common {
			if !slices.ContainsFunc(given, func(own Option) bool { return own.Name == o.Name }) {
				it.Options = append(it.Options, o)
			}
		}
		if it.Key, err = p.key(it, r.Build); err != nil {
			return nil, err
		}
	}
	return p, p.apart(r)
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
	f, err := os.Open(r.Models)
	if err != nil {
		return err
	}
	defer f.Close()
	var wrong []error
	lines := map[string]int{} // by name
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, longestLine)
	check := checker{commands: commands, do: r.Do}
	n := 0
	for scanner.Scan() && len(wrong) < mostErrors {
		n++
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		it, err := p.line(&check, line)
		if err == nil {
			if before := lines[it.Name]; before > 0 {
				err = fmt.Errorf("the name %q is that of line %d; give another \"name\"", it.Name, before)
			}
			lines[it.Name] = n
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", r.Models, n, err))
			continue
		}
		p.Items = append(p.Items, it)
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		wrong = append(wrong, fmt.Errorf("%s:%d: the line has more than %d bytes", r.Models, n+1, longestLine))
	case err != nil:
		wrong = append(wrong, fmt.Errorf("%s: %w", r.Models, err))
	}
	return errors.Join(wrong...)
}

// longestLine is how many bytes a line of a manifest has, a quarter of a message of the queue.
const longestLine = 256 << 10

// line reads a line of a manifest.
func (p *Plan) line(check *checker, text []byte) (*Item, error) {
	fields, err := jsonObject(text)
	if err != nil {
		return nil, err
	}
	model, _ := fields["model"].(string)
	if model == "" {
		return nil, errors.New(`"model" is missing: the path or URL of a model`)
	}
	it := &Item{}
	base := model
	if isURL(model) {
		u, err := url.Parse(model)
		if err != nil || u.Host == "" {
			return nil, errors.New("the URL is not well-formed") // the error has the URL, which may hold a password
		}
		it.Model = Source{URL: model}
		base = u.Path
	} else {
		if it.Model, err = pathSource(filepath.FromSlash(model), p.Root, p.Root); err != nil {
			return nil, err
		}
		if info, err := os.Stat(p.local(it.Model)); err != nil {
			if strings.Contains(model, `\`) && filepath.Separator == '/' {
				err = fmt.Errorf("%w; folders in a path are separated by / on this system", err)
			}
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
	return it, check.options(it.Options)
}

// jsonObject reads a line with one JSON object, which has no name twice: readers take one or the other.
func jsonObject(text []byte) (map[string]any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the line is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	wrong := func(err error) error { return fmt.Errorf("this is no JSON object: %w", err) }
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, wrong(cmp.Or(err, errors.New("it does not begin with {")))
	}
	fields := map[string]any{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, wrong(cmp.Or(err, errors.New("a name is a string")))
		}
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%q is given twice; a list has several values", name)
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, wrong(err)
		}
		fields[name] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, wrong(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is something behind the JSON object")
	}
	return fields, nil
}

func isURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}

// reserved are names that Windows has for devices, with any extension.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])( *\.|$)`)

// longestName is how many bytes a name of a file has on common file systems, less those of what is added to it.
const longestName = 255 - len(".onnx.0123456789abcdef.data") - len(".") - len(".4294967295.tmp")

// checkName says why files cannot be called so.
func checkName(name string) error {
	for _, part := range strings.Split(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.ContainsAny(part, `\:`) || len(part) > longestName || !filepath.IsLocal(part) ||
			runtime.GOOS == "windows" && !windowsName(part) || strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
			return fmt.Errorf("no file can have the name %q: give a \"name\" of letters, digits and slashes", name)
		}
	}
	if len(name) > 1024 {
		return fmt.Errorf("the name has %d bytes; give a shorter \"name\"", len(name))
	}
	return nil
}

// windowsName reports that Windows has a file by this very name.
func windowsName(part string) bool {
	return !strings.ContainsAny(part, `\/:*?"<>|`) && strings.TrimRight(part, ". ") == part && !reserved.MatchString(part)
}

// exists says whether the file of an option is there.
func (p *Plan) exists(o Option) error {
	if o.File == nil {
		return nil
	}
	if _, err := p.stateOf(*o.File, named, named); err != nil {
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
// What was made of the files goes by their content.
func (p *Plan) key(it *Item, build string) (string, error) {
	var states []string
	if it.Model.Path != "" {
		s, err := p.stateOf(it.Model, "this model", "the data of a model")
		if err != nil {
			return "", err
		}
		states = append(states, s)
	}
	for _, o := range it.Options {
		if o.File == nil || o.File.Path == "" {
			continue
		}
		s, err := p.stateOf(*o.File, named, named)
		if err != nil {
			return "", err
		}
		states = append(states, s)
	}
	return digest(it.Name, it.Do, it.Model, it.Options, states, build)[:32], nil
}

// named is what a file of an option is.
const named = "a file that an option names"

// stateOf is the state of a source, which many items may have.
func (p *Plan) stateOf(s Source, what, more string) (string, error) {
	path := p.local(s)
	if state, ok := p.states[path]; ok {
		return state, nil
	}
	state, err := p.state(path, what, more)
	if err == nil {
		p.states[path] = state
	}
	return state, err
}

// state is the hash of the names, sizes and times of the files that belong to a path, which are protected from now on: what says what the
// path is, and more what the other files are.
func (p *Plan) state(path, what, more string) (string, error) {
	b, err := filesOf(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, f := range b.names {
		file := filepath.Join(b.dir, f)
		info, err := os.Lstat(file)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = os.Stat(file)
		}
		if err != nil {
			return "", err
		}
		fmt.Fprint(h, f, "\x00", info.Size(), " ", info.ModTime().UnixNano(), "\n")
		if file, err = p.real.file(file); err != nil {
			return "", err
		}
		p.protected[file] = what
		what = more
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// made is what the result of an item has to be made of, by the files as they are now. It is empty for models that are not on this machine.
// Hashes of what options name are kept in a map.
func (p *Plan) made(it *Item, options map[string]string) (string, error) {
	if it.Model.Path == "" {
		return "", nil
	}
	model, err := hashOf(p.local(it.Model))
	if err != nil {
		return "", err
	}
	files := make([]string, len(it.Options))
	for i, o := range it.Options {
		if o.File == nil || o.File.Path == "" {
			continue
		}
		path := p.local(*o.File)
		if _, known := options[path]; !known {
			if options[path], err = hashOf(path); err != nil {
				return "", err
			}
		}
		files[i] = options[path]
	}
	return made(it, model, files), nil
}
