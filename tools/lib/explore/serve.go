package explore

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aton-project/aton/verify"
)

// pipelineText is how long the text of a pipeline may be.
const pipelineText = 1 << 16

// What a connection may take. Work for a page takes as long as it takes.
const (
	headerTimeout = 10 * time.Second // to say what is asked for
	bodyTimeout   = 10 * time.Second // to send a pipeline
	answerTimeout = time.Minute      // to take an answer, which goes no further than this machine
	idleTimeout   = 2 * time.Minute
	mostIdle      = 64 // connections that ask for nothing
)

// Server shows a session to one browser on this machine. What it answers is for those alone who know the token, and asked for it by
// the address that it listens at: no page from elsewhere that a browser shows can ask.
type Server struct {
	session *Session
	data    *verify.DataSet // nil: random inputs
	sizes   map[string]int64
	token   string
	host    string
	work    chan struct{} // holds the one who works with the session
	opened  chan struct{} // is closed when the page was asked for
	once    sync.Once

	mu    sync.Mutex
	idle  map[net.Conn]uint64 // connections that ask for nothing, by how long they do
	owner map[net.Conn]bool   // those that have named the token
	count uint64
}

// NewServer makes a server for the address that the listener has. Without a data set the numbers are those of random inputs, in which
// dynamic axes have the sizes.
func NewServer(s *Session, l net.Listener, data *verify.DataSet, sizes map[string]int64) *Server {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return &Server{session: s, data: data, sizes: sizes, token: hex.EncodeToString(b), host: l.Addr().String(),
		work: make(chan struct{}, 1), opened: make(chan struct{}), idle: map[net.Conn]uint64{}, owner: map[net.Conn]bool{}}
}

// URL is the address of the page, with the token.
func (s *Server) URL() string { return "http://" + s.host + "/" + s.token + "/" }

// Opened is closed when somebody who knows the token has asked for the page.
func (s *Server) Opened() <-chan struct{} { return s.opened }

// connection is the key of a request's connection in its context.
type connection struct{}

// Serve answers requests until the context ends. Connections have little time to ask and to listen, and of those that ask for nothing the
// oldest one is closed when there are too many; those that have named the token come last.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout + bodyTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: 1 << 16, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) }, ConnState: s.connection,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return server.Close()
}

// connection notes what becomes of a connection.
func (s *Server) connection(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		s.count++
		s.idle[c] = s.count
	case http.StateActive:
		delete(s.idle, c)
	default:
		delete(s.idle, c)
		delete(s.owner, c)
	}
	if len(s.idle) <= mostIdle {
		return
	}
	var first net.Conn
	for c, since := range s.idle {
		if first == nil || s.owner[c] != s.owner[first] && s.owner[first] || s.owner[c] == s.owner[first] && since < s.idle[first] {
			first = c
		}
	}
	delete(s.idle, first)
	first.Close()
}

// known notes that a request has named the token.
func (s *Server) known(r *http.Request) {
	s.once.Do(func() { close(s.opened) })
	if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.owner[c] = true
	}
}

// ServeHTTP answers the page and what it asks for.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if r.Host != s.host { // a name that somebody has made to lead here
		http.Error(w, "not this host", http.StatusForbidden)
		return
	}
	rest, _ := strings.CutPrefix(r.URL.Path, "/")
	token, path, ok := strings.Cut(rest, "/")
	if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		http.Error(w, "the address has no token, or an old one: use the one that aton explore has printed", http.StatusForbidden)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+s.host {
		http.Error(w, "asked by another page", http.StatusForbidden)
		return
	}
	if want := map[bool]string{true: http.MethodGet, false: http.MethodPost}[path == "" || path == "document"]; r.Method != want {
		http.Error(w, "method", http.StatusMethodNotAllowed)
		return
	}
	s.known(r)
	// nothing is read or written while others wait for the session: who asks may stop in the middle
	deadline := http.NewResponseController(w)
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pipelineText))
	if err != nil {
		answer(w, nil, err)
		return
	}
	_ = deadline.SetReadDeadline(time.Time{}) // work may take longer than asking
	_ = deadline.SetWriteDeadline(time.Time{})
	var data []byte
	switch path {
	case "":
		h.Set("Content-Type", "text/html; charset=utf-8")
		_ = deadline.SetWriteDeadline(time.Now().Add(answerTimeout))
		_ = Page(w, "server", s.session.name, "") // who is gone needs no page
		return
	case "document":
		data, err = s.do(r.Context(), func() (any, error) { return s.session.Document(), nil })
	case "kernels":
		data, err = s.do(r.Context(), func() (any, error) { return s.session.Kernels() })
	case "numbers":
		data, err = s.do(r.Context(), func() (any, error) { return s.numbers() })
	case "pipeline":
		data, err = s.do(r.Context(), func() (any, error) { return s.session.Pipeline(string(text)) })
	default:
		http.NotFound(w, r)
		return
	}
	_ = deadline.SetWriteDeadline(time.Now().Add(answerTimeout))
	answer(w, data, err)
}

// do does something with the session, alone, and gives its result as JSON. It ends when the context does: a page that is closed waits for
// nothing.
func (s *Server) do(ctx context.Context, work func() (any, error)) ([]byte, error) {
	select {
	case s.work <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.work }()
	s.session.ctx = ctx
	defer func() { s.session.ctx = nil }()
	data, err := work()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is one
	if err := errors.Join(json.NewEncoder(z).Encode(data), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *Server) numbers() (*Numbers, error) {
	data := s.data
	if data == nil {
		set, err := s.session.Random(0, s.sizes)
		if err != nil {
			return nil, err
		}
		data = &set
	}
	return s.session.Numbers(*data)
}

// answer writes data, which is compressed JSON, or an error as text.
func answer(w http.ResponseWriter, data []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(data) // who is gone needs no answer
}
