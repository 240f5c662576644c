package explore

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
)

// drawn is how many boxes a picture without a browser has, at most: more of them nobody reads. Beyond that modules are boxes.
const drawn = 200

// box is a node of a picture: an operator, a module, or an input or output.
type box struct {
	title, detail string
	class         string // op, module, io
	nodes         int
}

// arrow leads from box to box.
type arrow struct {
	from, to int
	text     string
}

// overview gives the boxes and arrows of a graph: each operator of the main graph, or modules where there are too many.
func (g *Graph) overview() ([]box, []arrow) {
	deepest := 0
	for _, n := range g.Nodes {
		if n.Module != "" {
			deepest = max(deepest, strings.Count(n.Module, ".")+1)
		}
	}
	for depth := deepest; depth >= 1; depth-- {
		full := depth == deepest
		boxes, arrows := g.grouped(func(n *Node, i int) string {
			if full {
				return ""
			}
			return prefix(n.Module, depth)
		})
		if len(boxes) <= drawn {
			return boxes, arrows
		}
	}
	if deepest == 0 || len(g.Nodes) > drawn {
		per := (len(g.Nodes) + drawn - 1) / drawn
		if per <= 1 {
			return g.grouped(func(*Node, int) string { return "" })
		}
		return g.grouped(func(n *Node, i int) string { return fmt.Sprintf("nodes %d to %d", i/per*per, i/per*per+per-1) })
	}
	return g.grouped(func(*Node, int) string { return "" })
}

// prefix is the first parts of a module's path.
func prefix(path string, parts int) string {
	at := 0
	for range parts {
		i := strings.IndexByte(path[at:], '.')
		if i < 0 {
			return path
		}
		at += i + 1
	}
	return path[:at-1]
}

// grouped makes a box of the nodes of a group; the group "" has a box for each.
func (g *Graph) grouped(group func(n *Node, i int) string) ([]box, []arrow) {
	var boxes []box
	var arrows []arrow
	maker := map[int]int{} // value: box
	groups := map[string]int{}
	at := make([]int, len(g.Nodes))
	for _, v := range g.Inputs {
		maker[v] = len(boxes)
		boxes = append(boxes, box{title: g.Values[v].Name, detail: g.Values[v].Type, class: "io"})
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Parent >= 0 { // in the box of the operator that holds it
			at[i] = at[n.Parent]
		} else if name := group(n, i); name == "" {
			at[i] = len(boxes)
			detail := n.Name
			if len(n.Outputs) > 0 {
				detail = g.Values[n.Outputs[0]].Type
			}
			boxes = append(boxes, box{title: n.Kind, detail: detail, class: "op"})
		} else if b, ok := groups[name]; ok {
			at[i] = b
		} else {
			groups[name], at[i] = len(boxes), len(boxes)
			boxes = append(boxes, box{title: name, class: "module"})
		}
		boxes[at[i]].nodes++
		for _, v := range n.Outputs {
			maker[v] = at[i]
		}
	}
	for i := range boxes {
		if boxes[i].class == "module" {
			boxes[i].detail = fmt.Sprintf("%d operators", boxes[i].nodes)
		}
	}
	seen := map[[3]int]bool{}
	join := func(v, to int) {
		from, ok := maker[v]
		if !ok || from == to || seen[[3]int{from, to, v}] {
			return
		}
		seen[[3]int{from, to, v}] = true
		arrows = append(arrows, arrow{from, to, g.Values[v].Type})
	}
	for i, n := range g.Nodes {
		for _, v := range n.Inputs {
			if v >= 0 {
				join(v, at[i])
			}
		}
	}
	for i, v := range g.Outputs {
		name := g.Values[v].Name
		if i < len(g.OutputNames) {
			name = g.OutputNames[i]
		}
		boxes = append(boxes, box{title: name, detail: g.Values[v].Type, class: "io"})
		join(v, len(boxes)-1)
	}
	return boxes, arrows
}

// DOT writes the graph in the language of Graphviz.
func (g *Graph) DOT(w io.Writer) error {
	var b strings.Builder
	b.WriteString("digraph model {\n  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=9];\n")
	boxes, arrows := g.overview()
	quote := func(s string) string { // as DOT has it: only quotes and backslashes are special
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(s) + `"`
	}
	for i, x := range boxes {
		style := ""
		switch x.class {
		case "module":
			style = ", style=filled, fillcolor=\"#e8eef7\""
		case "io":
			style = ", shape=ellipse"
		}
		label := quote(x.title + "\x00" + x.detail)
		fmt.Fprintf(&b, "  n%d [label=%s%s];\n", i, strings.ReplaceAll(label, "\x00", `\n`), style)
	}
	for _, a := range arrows {
		fmt.Fprintf(&b, "  n%d -> n%d [label=%s];\n", a.from, a.to, quote(a.text))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

const (
	letter    = 7.0 // width of a letter of a title, and of a detail
	small     = 5.8
	boxHeight = 40.0
	between   = 44.0 // layers
	apart     = 18.0 // boxes of a layer
)

// point is a box of the layout, or the place at which an arrow crosses a layer.
type point struct {
	layer   int
	x, w    float64
	up, low []int // neighbours in the layers above and below
}

// SVG draws the graph. Boxes are in layers: each below all that it depends on.
func (g *Graph) SVG(w io.Writer) error {
	boxes, arrows := g.overview()
	points, paths := place(boxes, arrows)
	left, right, layers := 0.0, 0.0, 0
	for _, p := range points {
		left, right, layers = min(left, p.x-p.w/2), max(right, p.x+p.w/2), max(layers, p.layer+1)
	}
	y := func(layer int) float64 { return float64(layer) * (boxHeight + between) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%.0f -20 %.0f %.0f" font-family="system-ui, sans-serif">
<style>
.bg{fill:#fff} rect{fill:#f6f8fa;stroke:#8c959f} .module rect{fill:#e8eef7;stroke:#57708f} .io rect{fill:#fff8e6;stroke:#9a7b1c}
.t{font-size:12px;font-weight:600;fill:#1f2328} .d,.e{font-size:10px;fill:#59636e} path{fill:none;stroke:#8c959f} text{text-anchor:middle}
@media (prefers-color-scheme: dark){.bg{fill:#0d1117} rect{fill:#161b22;stroke:#6e7681} .module rect{fill:#1b2838;stroke:#7a97bd} .io rect{fill:#2b2410;stroke:#b99a3a} .t{fill:#e6edf3} .d,.e{fill:#9198a1}}
</style>
<rect class="bg" x="%.0f" y="-20" width="%.0f" height="%.0f" stroke="none"/>
`, left-20, right-left+40, y(layers)+20, left-20, right-left+40, y(layers)+20)
	for i, a := range arrows {
		path := paths[i]
		from := points[path[0]]
		fmt.Fprintf(&b, `<path d="M%.1f %.1f`, from.x, y(from.layer)+boxHeight)
		px, py := from.x, y(from.layer)+boxHeight
		for _, k := range path[1:] {
			p := points[k]
			fmt.Fprintf(&b, " C%.1f %.1f %.1f %.1f %.1f %.1f", px, py+between/2, p.x, y(p.layer)-between/2, p.x, y(p.layer))
			px, py = p.x, y(p.layer)
			if k >= len(boxes) {
				fmt.Fprintf(&b, " L%.1f %.1f", px, py+boxHeight)
				py += boxHeight
			}
		}
		fmt.Fprintf(&b, "\"><title>%s</title></path>\n", html.EscapeString(clean(a.text)))
	}
	for i, x := range boxes {
		p := points[i]
		fmt.Fprintf(&b, "<g class=\"%s\"><title>%s</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" rx=\"5\"/><text class=\"t\" x=\"%.1f\" y=\"%.1f\">%s</text><text class=\"d\" x=\"%.1f\" y=\"%.1f\">%s</text></g>\n",
			x.class, html.EscapeString(clean(x.title+" "+x.detail)), p.x-p.w/2, y(p.layer), p.w, boxHeight, p.x, y(p.layer)+17, html.EscapeString(cut(x.title)), p.x, y(p.layer)+31, html.EscapeString(cut(x.detail)))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// clean leaves out what XML cannot hold.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// cut shortens a text for a box.
func cut(s string) string {
	s = clean(s)
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// place gives the boxes their places, and arrows the points that they lead through. It is the method of Sugiyama: layers by the
// longest path, the order in a layer by the middle of the neighbours, then places as near to these as the others allow.
func place(boxes []box, arrows []arrow) (points []point, paths [][]int) {
	points = make([]point, len(boxes))
	below := make([][]int, len(boxes))
	waits := make([]int, len(boxes))
	for _, a := range arrows {
		below[a.from] = append(below[a.from], a.to)
		waits[a.to]++
	}
	var ready []int
	for i := range boxes {
		points[i].w = max(70, 16+letter*float64(len([]rune(cut(boxes[i].title)))), 16+small*float64(len([]rune(cut(boxes[i].detail)))))
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	done := make([]bool, len(boxes))
	next := 0 // the first box that may not be done
	for {
		for len(ready) > 0 {
			i := ready[0]
			ready, done[i] = ready[1:], true
			for _, k := range below[i] {
				if done[k] {
					continue // closes a cycle of modules: the arrow leads up
				}
				points[k].layer = max(points[k].layer, points[i].layer+1)
				if waits[k]--; waits[k] == 0 {
					ready = append(ready, k)
				}
			}
		}
		for next < len(boxes) && done[next] {
			next++
		}
		if next == len(boxes) {
			break
		}
		ready, waits[next] = append(ready, next), 0
	}
	for _, a := range arrows {
		path := []int{a.from}
		from, to := points[a.from].layer, points[a.to].layer
		for l := from + 1; l < to; l++ {
			path = append(path, len(points))
			points = append(points, point{layer: l, w: 6})
		}
		path = append(path, a.to)
		if from < to {
			for i := 1; i < len(path); i++ {
				points[path[i-1]].low = append(points[path[i-1]].low, path[i])
				points[path[i]].up = append(points[path[i]].up, path[i-1])
			}
		}
		paths = append(paths, path)
	}
	layers := 0
	for _, p := range points {
		layers = max(layers, p.layer+1)
	}
	rows := make([][]int, layers)
	for i, p := range points {
		rows[p.layer] = append(rows[p.layer], i)
	}
	spread := func(row []int) { // side by side, around 0
		width := -apart
		for _, i := range row {
			width += points[i].w + apart
		}
		x := -width / 2
		for _, i := range row {
			points[i].x = x + points[i].w/2
			x += points[i].w + apart
		}
	}
	for _, row := range rows {
		spread(row)
	}
	for round := range 12 {
		for k := range rows {
			row := rows[k]
			if round%2 == 1 {
				row = rows[len(rows)-1-k]
			}
			want := make(map[int]float64, len(row))
			for _, i := range row {
				near := points[i].up
				if round%2 == 1 {
					near = points[i].low
				}
				want[i] = points[i].x
				if len(near) > 0 {
					sum := 0.0
					for _, j := range near {
						sum += points[j].x
					}
					want[i] = sum / float64(len(near))
				}
			}
			if round < 8 {
				slices.SortStableFunc(row, func(i, j int) int {
					switch d := want[i] - want[j]; {
					case d < 0:
						return -1
					case d > 0:
						return 1
					}
					return 0
				})
			}
			settle(points, row, want)
		}
	}
	return points, paths
}

// settle gives the points of a row the places that they want, in their order, and moves groups that touch to their middle.
func settle(points []point, row []int, want map[int]float64) {
	type group struct {
		first, last int // of row
		x, width    float64
	}
	var groups []group
	for k, i := range row {
		g := group{k, k, want[i] - points[i].w/2, points[i].w}
		for len(groups) > 0 {
			l := groups[len(groups)-1]
			if l.x+l.width+apart <= g.x {
				break
			}
			n, m := float64(l.last-l.first+1), float64(g.last-g.first+1)
			// the joint place is the mean of where the two would begin
			x := (n*l.x + m*(g.x-l.width-apart)) / (n + m)
			g = group{l.first, g.last, x, l.width + apart + g.width}
			groups = groups[:len(groups)-1]
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		x := g.x
		for k := g.first; k <= g.last; k++ {
			p := &points[row[k]]
			p.x = x + p.w/2
			x += p.w + apart
		}
	}
}
