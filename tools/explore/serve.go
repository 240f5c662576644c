package explore

import (
	"compress/gzip"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/aton-project/aton/verify"
)

// pipelineText is how long the text of a pipeline may be.
const pipelineText = 1 << 16

// Server shows a session to one browser on this machine. What it answers is for those alone who know the token, and asked for it by
// the address that it listens at: no page from elsewhere that a browser shows can ask.
type Server struct {
	session *Session
	data    *verify.DataSet // nil: random inputs
	sizes   map[string]int64
	token   string
	host    string
}

// NewServer makes a server for the address that the listener has. Without a data set the numbers are those of random inputs, in which
// dynamic axes have the sizes.
func NewServer(s *Session, l net.Listener, data *verify.DataSet, sizes map[string]int64) *Server {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return &Server{session: s, data: data, sizes: sizes, token: hex.EncodeToString(b), host: l.Addr().String()}
}

// URL is the address of the page, with the token.
func (s *Server) URL() string { return "http://" + s.host + "/" + s.token + "/" }

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
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	switch path {
	case "":
		h.Set("Content-Type", "text/html; charset=utf-8")
		_ = Page(w, "server", s.session.name, "") // who is gone needs no page
	case "document":
		answer(w, s.session.Document(), nil)
	case "kernels":
		k, err := s.session.Kernels()
		answer(w, k, err)
	case "numbers":
		n, err := s.numbers()
		answer(w, n, err)
	case "pipeline":
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pipelineText))
		if err != nil {
			answer(w, nil, err)
			return
		}
		d, err := s.session.Pipeline(string(text))
		answer(w, d, err)
	default:
		http.NotFound(w, r)
	}
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

// answer writes data, or an error as text.
func answer(w http.ResponseWriter, data any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one
	_ = json.NewEncoder(z).Encode(data)            // who is gone needs no answer
	_ = z.Close()
}
