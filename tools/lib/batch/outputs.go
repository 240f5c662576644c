package batch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Names of outputs are made here, of the names in the plan. What a result says of its files is compared with them: results come from
// workers, which may be anybody's.

// dataName is the name of a file of weights behind that of its model; see backend/onnxfile.
var dataName = regexp.MustCompile(`^\.[0-9a-f]{16}\.data$`)

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// output is the file of an exported model, below the folder of outputs, with slashes.
func output(it *Item) string { return it.Name + ".onnx" }

// checkOutputs says what is wrong with the files of a result: an exported model has one file, and at most one of weights before it; all
// other results have none. Names are those that the worker's folder has, or below the folder of outputs.
func checkOutputs(it *Item, r *Result) error {
	if r.Status != OK || it.Do != "export" {
		if len(r.Outputs) > 0 {
			return errors.New("it has files, and may have none")
		}
		return nil
	}
	if len(r.Outputs) == 0 || len(r.Outputs) > 2 {
		return fmt.Errorf("it has %d files; a model is one, or two with weights", len(r.Outputs))
	}
	for i, f := range r.Outputs {
		if !hexHash.MatchString(f.Hash) || f.Size < 0 {
			return fmt.Errorf("%q has no hash or no size", f.Name)
		}
		file := output(it)
		rest, ok := strings.CutPrefix(f.Name, file)
		if !ok {
			rest, ok = strings.CutPrefix(f.Name, path.Base(file))
		}
		last := i == len(r.Outputs)-1
		if !ok || last && rest != "" || !last && !dataName.MatchString(rest) {
			return fmt.Errorf("%q is no file of this model", f.Name)
		}
	}
	return nil
}

// placeOf is where a file of an item belongs, whose name was checked.
func (r *run) placeOf(it *Item, name string) (string, error) {
	to := filepath.Join(r.Out, filepath.FromSlash(path.Dir(it.Name)), path.Base(name))
	dir, err := filepath.Abs(filepath.Dir(to))
	if err == nil {
		dir, err = links{}.folder(dir)
	}
	if err != nil {
		return "", err
	}
	if owner, ok := r.Plan.protected[filepath.Join(dir, filepath.Base(to))]; ok {
		return "", fmt.Errorf("%s: the file %s would be replaced, which is %s", it.Name, to, owner)
	}
	return to, nil
}

// links resolves links in paths, and keeps what it has found of folders.
type links map[string]string

// file is the path of a file without links, whether it is there yet or not.
func (l links) file(path string) (string, error) {
	up := filepath.Dir(path)
	if up == path {
		return path, nil
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		real, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
	}
	up, err = l.folder(up)
	return filepath.Join(up, filepath.Base(path)), err
}

// folder is file for a folder, which is kept.
func (l links) folder(path string) (string, error) {
	if real, ok := l[path]; ok {
		return real, nil
	}
	real, err := l.file(path)
	if err == nil {
		l[path] = real
	}
	return real, err
}

// apart refuses outputs in the place of a model, of its data, of files that options name, or of the run's own files, and two outputs in
// one place. It is told before anything is done.
func (p *Plan) apart(r Request) error {
	if r.Do != "export" {
		return nil
	}
	out, err := filepath.Abs(r.Out)
	if err != nil {
		return err
	}
	real := links{}
	if out, err = real.folder(out); err != nil {
		return err
	}
	own := filepath.Join(out, Results)
	order := make([]string, len(p.Items))
	places, folded, below := map[string]*Item{}, map[string]*Item{}, map[string]*Item{}
	var alike [2]*Item // names that some file systems take for one
	for i, it := range p.Items {
		file := filepath.FromSlash(output(it))
		dir, err := real.folder(filepath.Join(out, filepath.Dir(file)))
		if err != nil {
			return err
		}
		place := filepath.Join(dir, filepath.Base(file))
		if owner, ok := p.protected[place]; ok {
			return fmt.Errorf("%s: what is written would replace %s; give another folder with -o, or another \"name\"", place, owner)
		}
		if other := places[place]; other != nil {
			return fmt.Errorf("%q and %q would be written to one file, %s; give one another \"name\"", other.Name, it.Name, place)
		}
		places[place], order[i] = it, place
		letters := strings.ToLower(norm.NFC.String(place))
		if other := folded[letters]; other != nil {
			alike = [2]*Item{other, it}
		}
		folded[letters] = it
		for d := dir; len(d) > len(out) && below[d] == nil; d = filepath.Dir(d) {
			below[d] = it
		}
	}
	if it := below[own]; it != nil {
		return fmt.Errorf("%q: %s is the file of results; give another \"name\"", it.Name, Results)
	}
	for i, it := range p.Items {
		if other := below[order[i]]; other != nil {
			names := []string{it.Name, other.Name}
			slices.Sort(names)
			return fmt.Errorf("%q and %q: one would be a file where the other one needs a folder; give one another \"name\"", names[0], names[1])
		}
	}
	if alike[0] != nil && oneName(out, output(alike[0]), output(alike[1])) {
		return fmt.Errorf("%q and %q would be written to one file, as this folder takes no notice of capital letters or of how letters are composed; give one another \"name\"", alike[0].Name, alike[1].Name)
	}
	return nil
}

// oneName says whether a folder, or the one above it that is there, takes two different paths below it for one. It tries the first parts in which they differ.
func oneName(dir, a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	at := 0
	for at < min(len(x), len(y))-1 && x[at] == y[at] {
		at++
	}
	for {
		tries, err := os.MkdirTemp(dir, ".aton-names-*.tmp")
		if err == nil {
			defer os.RemoveAll(tries)
			if os.WriteFile(filepath.Join(tries, x[at]), nil, 0o600) != nil {
				return false // so it cannot be written, which its own error tells
			}
			_, err = os.Stat(filepath.Join(tries, y[at]))
			return err == nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
