package main

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/cost"
	"github.com/aton-project/aton/codegen/gpu/isa"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// column is a column of a table.
type column struct {
	title string
	cell  func(l *line) string
}

// columns are those of a suite.
func columns(suite string) []column {
	if suite == "triton" {
		return tritonColumns()
	}
	name := column{map[string]string{"models": "model", "attention": "attention"}[suite], func(l *line) string { return l.Name }}
	launches := column{"launches", func(l *line) string { return fmt.Sprint(l.Launches) }}
	least := column{"least, MB", func(l *line) string { return megabytes(l.Least) }}
	memory := column{"memory / least", func(l *line) string {
		return l.machines(func(i int) string { _, n, _ := l.sum(i); return ratio(n, l.Least) })
	}}
	flops := column{"Gflop", func(l *line) string {
		n := int64(0)
		for _, c := range l.Costs {
			n += c.Counts.Flops
		}
		return fmt.Sprintf("%.3g", float64(n)/1e9)
	}}
	conflicts := column{"conflicts", func(l *line) string {
		n, of := l.conflicts()
		return percent(n, of)
	}}
	seconds := column{"roofline, us", func(l *line) string {
		return l.machines(func(i int) string { _, _, s := l.sum(i); return fmt.Sprintf("%.0f", s*1e6) })
	}}
	arena := column{"arena, MB", func(l *line) string { return megabytes(l.Arena) }}
	goals := column{"goals", (*line).verdicts}
	switch suite {
	case "models":
		nodes := column{"nodes", func(l *line) string { return fmt.Sprint(l.Nodes) }}
		bound := column{"arena / bound", func(l *line) string { return fmt.Sprintf("%.3f", float64(l.Arena)/float64(max(l.Bound, 1))) }}
		return []column{name, nodes, launches, least, memory, flops, arena, bound, conflicts, seconds, goals}
	case "attention":
		return []column{name, launches, least, memory, flops, arena, conflicts, seconds, goals}
	}
	name.title = "kernel"
	l2 := column{"L2 / least", func(l *line) string {
		return l.machines(func(i int) string { n, _, _ := l.sum(i); return ratio(n, l.Least) })
	}}
	classes := column{"int, float, memory, rest", (*line).classes}
	uncoalesced := column{"uncoalesced", func(l *line) string {
		var all sim.Counts
		for _, c := range l.Costs {
			all.Add(&c.Counts)
		}
		return percent(all.Sectors-all.LeastSectors, all.Sectors)
	}}
	occupancy := column{"occupancy", func(l *line) string {
		mark := ""
		if !l.known {
			mark = "?"
		}
		return l.machines(func(i int) string { return fmt.Sprintf("%.0f%s", 100*l.Costs[len(l.Costs)-1].On[i].Occupancy, mark) }) + " %"
	}}
	blocks := column{"blocks", func(l *line) string {
		n := int64(0)
		for _, c := range l.Costs {
			n += c.Blocks
		}
		return fmt.Sprint(n)
	}}
	return []column{name, blocks, least, l2, memory, flops, classes, conflicts, uncoalesced, occupancy, seconds, goals}
}

// machines is a figure for each machine, or one if it is the same for all.
func (l *line) machines(f func(i int) string) string {
	if len(l.Costs) == 0 {
		return "-"
	}
	var out []string
	same := true
	for i := range cost.Machines() {
		out = append(out, f(i))
		same = same && out[i] == out[0]
	}
	if same {
		return out[0]
	}
	return strings.Join(out, ", ")
}

// classes are the parts that kinds of instructions have.
func (l *line) classes() string {
	var n [isa.Classes]int64
	all := int64(0)
	for _, c := range l.Costs {
		for i, k := range c.Counts.Instructions {
			n[i] += k
			all += k
		}
	}
	part := func(classes ...isa.Class) string {
		sum := int64(0)
		for _, c := range classes {
			sum += n[c]
		}
		return fmt.Sprintf("%.0f", 100*float64(sum)/float64(max(all, 1)))
	}
	return fmt.Sprintf("%s, %s, %s, %s %%", part(isa.Integer), part(isa.Float, isa.Fma, isa.Matrix), part(isa.GlobalMemory, isa.SharedMemory), part(isa.Warp, isa.Other))
}

func (l *line) verdicts() string {
	var out []string
	for _, v := range l.Goals {
		s := v.Goal
		if v.Most > 0 {
			s += fmt.Sprintf(" <= %.4g", v.Most)
		} else {
			s = "no " + s
		}
		if v.Met {
			s += ": met"
		} else if v.Most > 0 {
			s += fmt.Sprintf(": **missed**, %.3g", v.Is)
		} else {
			s += ": **missed**"
		}
		out = append(out, s)
	}
	for _, s := range l.Skipped {
		out = append(out, "without "+s.Node)
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, "; ")
}

func ratio(n, of int64) string { return fmt.Sprintf("%.2f", float64(n)/float64(max(of, 1))) }

func megabytes(n int64) string { return fmt.Sprintf("%.3g", float64(n)/1e6) }

func percent(n, of int64) string {
	if of == 0 {
		return "-"
	}
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// markdown prints the tables.
func markdown(tables []*table) string {
	var b strings.Builder
	for i, t := range tables {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("**" + t.Title + "**\n\n")
		cols := columns(t.Name)
		for _, c := range cols {
			b.WriteString("| " + c.title + " ")
		}
		b.WriteString("|\n" + strings.Repeat("|---", len(cols)) + "|\n")
		for _, l := range t.Lines {
			for _, c := range cols {
				b.WriteString("| " + c.cell(l) + " ")
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}
