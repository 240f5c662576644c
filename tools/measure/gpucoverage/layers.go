package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
)

// layerNumber is the first number in a module's path, such as that of model.layers.3.self_attn.
var layerNumber = regexp.MustCompile(`^(?:.*?[./])??\d+(?:[./]|$)`)

// layerOf is the path of the layer that a module's path leads through, "" if it leads through none.
func layerOf(scope string) string { return strings.TrimRight(layerNumber.FindString(scope), "./") }

// launchCount is how many launches a plan has. A joined one counts for the layer of its first part.
type launchCount struct {
	layer, all   int   // of the layer that has the most, and of all
	arena, bound int64 // bytes of temporaries and outputs, and the most of them that live at once; 0 if only the run knows their sizes
}

// countLaunches plans a model for an opset.
func countLaunches(path string, opset int) (launchCount, error) {
	m, err := aton.Load(path, aton.LoadOptions{})
	if err == nil {
		_, err = aton.Convert(m, aton.ConvertOptions{Opset: opset})
	}
	if err != nil {
		return launchCount{}, err
	}
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		return launchCount{}, err
	}
	var c launchCount
	layers := map[string]int{}
	for s := range p.AllSteps() {
		if s.Launch == nil {
			continue
		}
		c.all++
		if layer := layerOf(p.Module.Locs.Frame(s.Op.Loc).Scope); layer != "" {
			layers[layer]++
			c.layer = max(c.layer, layers[layer])
		}
	}
	if sizes, ok := p.BufferSizes(nil); ok {
		_, c.arena = p.Allocate(sizes)
		c.bound = p.LiveBytes(sizes)
	}
	return c, nil
}

// showLayers prints how many launches the models of a folder have at some opsets.
func showLayers(w io.Writer, dir, filter, opsets string) error {
	match, err := regexp.Compile(filter)
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.pt2"))
	if err != nil {
		return err
	}
	head, rule := "| model |", "|---|"
	var versions []int
	for _, text := range strings.Split(opsets, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("--opsets: %w", err)
		}
		versions = append(versions, n)
		head += fmt.Sprintf(" launches of a layer, opset %d | of all | arena / bound |", n)
		rule += "---|---|---|"
	}
	found := false
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".pt2")
		if !match.MatchString(name) {
			continue
		}
		if !found {
			fmt.Fprintf(w, "%s\n%s\n", head, rule)
		}
		found = true
		line := "| " + name + " |"
		for _, n := range versions {
			c, err := countLaunches(path, n)
			if err != nil {
				return fmt.Errorf("%s at opset %d: %w", path, n, err)
			}
			memory := "-"
			if c.bound > 0 {
				memory = fmt.Sprintf("%.3f", float64(c.arena)/float64(c.bound))
			}
			line += fmt.Sprintf(" %d | %d | %s |", c.layer, c.all, memory)
		}
		fmt.Fprintln(w, line)
	}
	if !found {
		return fmt.Errorf("%s has no models (.pt2) that match %q: tools/measure/bench/peers.py makes some", dir, filter)
	}
	return nil
}
