package explore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/docs/diagnostics"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/verify"
)

// Session is a model that is looked at. It is for one goroutine at a time.
type Session struct {
	name   string
	load   func() (*ssa.Module, error)
	opts   aton.ExportOptions
	sizes  map[string]int64
	module *ssa.Module // converted; nil where the conversion failed
	doc    *Document
	frames map[diag.Loc]int // of the document
	failed error
	// ctx ends the work of who no longer waits for it; nil for never.
	ctx context.Context
}

// stopped is why the work ends early, if it does.
func (s *Session) stopped() error {
	if s.ctx == nil || s.ctx.Err() == nil {
		return nil
	}
	return context.Cause(s.ctx)
}

// New converts a model, and keeps what happens. load makes the module anew, each time that it is called. The sizes are those that
// dynamic axes have in estimates of cost. A model that cannot be converted is no error: the document has its problems.
func New(name string, load func() (*ssa.Module, error), o aton.ExportOptions, sizes map[string]int64) (*Session, error) {
	s := &Session{name: name, load: load, opts: o, sizes: sizes}
	if err := s.convert(); err != nil {
		return nil, err
	}
	return s, nil
}

// Document is what is known of the model.
func (s *Session) Document() *Document { return s.doc }

// Failed is why the model is not converted; nil if it is.
func (s *Session) Failed() error { return s.failed }

// Module is the converted module.
func (s *Session) converted() (*ssa.Module, error) {
	if s.module == nil {
		return nil, s.failed
	}
	return s.module, nil
}

// Pipeline converts the model anew, by other passes: those of the text, or the usual ones if it is empty.
func (s *Session) Pipeline(text string) (*Document, error) {
	opts := s.opts
	opts.Pipeline = text
	other := &Session{name: s.name, load: s.load, opts: opts, sizes: s.sizes, ctx: s.ctx}
	if err := other.convert(); err != nil {
		return nil, err
	}
	s.opts, s.doc, s.module, s.failed, s.frames = other.opts, other.doc, other.module, other.failed, other.frames
	return s.doc, nil
}

// Export writes the converted model as an ONNX file. The model is converted anew for it.
func (s *Session) Export(w io.Writer) error {
	m, err := s.load()
	if err != nil {
		return err
	}
	return aton.ExportTo(w, m, s.opts)
}

// Random makes inputs for the converted model.
func (s *Session) Random(seed uint64, sizes map[string]int64) (verify.DataSet, error) {
	m, err := s.converted()
	if err != nil {
		return verify.DataSet{}, err
	}
	return verify.RandomData(m, verify.RandomOptions{Seed: seed, Sizes: sizes})
}

func (s *Session) convert() error {
	m, err := s.load()
	if err != nil {
		return err
	}
	doc := &Document{Model: s.name, Version: aton.Version(), Opset: s.opts.OpsetFor(m), Weights: []Weight{}, Problems: []Problem{}, Passes: []Pass{}, Sources: []Source{},
		Pages: map[string]string{}, Pipeline: s.opts.Pipeline}
	s.doc, s.module, s.failed = doc, nil, nil
	r := newRecorder(doc, m)
	s.frames = r.frames
	opts := s.opts.WithObserver(r.observer())
	opts.Runner.Stop = s.stopped
	var told *diag.List
	list, err := aton.Convert(m, opts)
	m.Rewritten = nil
	if stopped := s.stopped(); stopped != nil {
		return stopped
	}
	var failure *passes.Failure
	switch {
	case errors.As(err, &told):
		s.failed, doc.Failed = err, err.Error()
	case errors.As(err, &failure):
		return err // a bug of ours
	case err != nil && list == nil:
		return err // the options are wrong
	case err != nil:
		s.failed, doc.Failed = err, err.Error()
	}
	if list == nil {
		list = told
	}
	r.problems(list)
	r.sources()
	if s.failed != nil {
		return nil
	}
	files, outputs, err := aton.FileNames(m, s.opts.WriteOptions)
	if err != nil {
		return err
	}
	doc.Graph = r.graph(files, outputs, s.sizes)
	s.module = m
	return nil
}

// problems writes what the conversion has to say.
func (r *recorder) problems(list *diag.List) {
	if list == nil {
		return
	}
	for _, d := range list.Items {
		r.doc.Problems = append(r.doc.Problems, Problem{ID: d.ID, Severity: d.Severity.String(), Op: d.Op, Frame: r.frame(d.Loc), Message: d.Message, Hint: d.Hint})
		if page, ok := diagnostics.Page(d.ID); ok {
			r.doc.Pages[d.ID] = page
		}
	}
}

// sources writes the text of the program.
func (r *recorder) sources() {
	if r.m.Sources == nil {
		return
	}
	for _, src := range r.m.Sources() {
		out := Source{File: src.File, Saved: src.Saved, Lines: []SourceLine{}}
		for _, l := range src.Lines {
			line := SourceLine{Number: l.Number, Text: l.Text}
			for _, f := range l.From {
				line.From = append(line.From, fmt.Sprintf("%s:%d", f.File, f.Line))
			}
			out.Lines = append(out.Lines, line)
		}
		r.doc.Sources = append(r.doc.Sources, out)
	}
}
