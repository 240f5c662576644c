package onnxfile

import (
	"fmt"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// A note is what a node, a value or a tensor of a file carries for people and tools: documentation and metadata. Notes of
// nodes are found again by the node's location, which rewrites hand on to what they put in its place; notes of values by
// the value's name.

// noted is a message of the format that can carry a note.
type noted interface {
	GetDocString() string
	GetMetadataProps() []*onnxpb.StringStringEntryProto
}

func noteOf(p noted) (n ssa.Note, ok bool) {
	n.Doc, n.Metadata = p.GetDocString(), keyValues(p.GetMetadataProps())
	return n, n.Doc != "" || n.Metadata != nil
}

func keyValues(props []*onnxpb.StringStringEntryProto) []ssa.KeyValue {
	var out []ssa.KeyValue
	for _, kv := range props {
		out = append(out, ssa.KeyValue{Key: kv.GetKey(), Value: kv.GetValue()})
	}
	return out
}

// noteNode keeps the note of the node at loc.
func (r *reader) noteNode(loc diag.Loc, p *onnxpb.NodeProto) {
	n, ok := noteOf(p)
	if !ok {
		return
	}
	if r.m.File.Nodes == nil {
		r.m.File.Nodes = map[diag.Loc]ssa.Note{}
	}
	r.m.File.Nodes[loc] = n
}

// noteValue keeps the note of the value that the module calls name.
func (r *reader) noteValue(name string, p noted) {
	n, ok := noteOf(p)
	if !ok || name == "" {
		return
	}
	if r.m.File.Values == nil {
		r.m.File.Values = map[string]ssa.Note{}
	}
	r.m.File.Values[name] = n
}

// noteDropped lists what the file says that the IR has no place for. Nothing of it bears on what the model computes.
func (r *reader) noteDropped(p *onnxpb.ModelProto, g *onnxpb.GraphProto) {
	drop := func(n int, what string) {
		if n > 0 {
			r.m.File.Dropped = append(r.m.File.Dropped, fmt.Sprintf("the file's %s is not kept", what))
		}
	}
	drop(len(p.TrainingInfo), "training information (training_info)")
	drop(len(g.QuantizationAnnotation), "list of quantization parameters (quantization_annotation)")
	devices := len(p.Configuration)
	for _, n := range g.Node {
		devices += len(n.DeviceConfigurations)
	}
	drop(devices, "assignment of nodes to devices (configuration)")
}

// metadata gives entries for the file, whose IR version decides whether its nodes, values and graphs may have any.
func (b *builder) metadata(kvs []ssa.KeyValue) []*onnxpb.StringStringEntryProto {
	if b.ir() < notesIR {
		return nil
	}
	var out []*onnxpb.StringStringEntryProto
	for _, kv := range kvs {
		out = append(out, entry(kv.Key, kv.Value))
	}
	return out
}

// nodeNotes writes what was kept for the node at loc, and where in the user's program it comes from.
func (b *builder) nodeNotes(loc diag.Loc, n *onnxpb.NodeProto) {
	kept := b.m.File.Nodes[loc]
	n.DocString = unlessEmpty(kept.Doc)
	if b.opts.DocStrings && n.DocString == nil {
		n.DocString = unlessEmpty(b.m.Locs.String(loc))
	}
	if b.ir() < notesIR {
		return
	}
	entries := kept.Metadata
	add := func(key, value string) {
		for _, kv := range entries {
			if kv.Key == key {
				return
			}
		}
		if value != "" {
			entries = append(entries[:len(entries):len(entries)], ssa.KeyValue{Key: key, Value: value})
		}
	}
	add("namespace", b.m.Locs.Frame(loc).Scope)
	add("source", b.m.Locs.String(loc))
	n.MetadataProps = b.metadata(entries)
}
