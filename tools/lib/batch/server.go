package batch

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is a server of NATS with JetStream inside of this process.
type Server struct {
	server *server.Server
	dir    string
	token  string
	said   *serverLog
}

// Listen says how a server takes connections: at Address (HOST:PORT), or by a configuration of NATS in a file, with TLS and accounts. With
// neither it opens no port.
type Listen struct{ Address, Config string }

// serverLog keeps the last error that a server tells of.
type serverLog struct {
	mu    sync.Mutex
	last  string
	fatal chan string
}

func (l *serverLog) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Sprintf(format, v...)
}

func (l *serverLog) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func (l *serverLog) Noticef(string, ...any) {}
func (l *serverLog) Warnf(string, ...any)   {}
func (l *serverLog) Debugf(string, ...any)  {}
func (l *serverLog) Tracef(string, ...any)  {}

// tokenFile is the file in the folder of a server with the token of its workers.
const tokenFile = "token"

// StartServer starts a server that keeps everything in a folder. It opens no port, unless it is told to listen: at an address, workers
// elsewhere come in with the token that is in a file of the folder; by a configuration, as that says.
func StartServer(dir string, listen Listen) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Server{dir: dir, said: &serverLog{fatal: make(chan string, 1)}}
	o := &server.Options{DontListen: true, NoSystemAccount: true}
	switch {
	case listen.Config != "":
		var err error
		if o, err = server.ProcessConfigFile(listen.Config); err != nil {
			return nil, fmt.Errorf("%s: %w", listen.Config, err)
		}
	case listen.Address != "":
		host, port, err := net.SplitHostPort(listen.Address)
		if err != nil {
			return nil, fmt.Errorf("--listen %s: it is HOST:PORT", listen.Address)
		}
		if o.Port, err = strconv.Atoi(port); err != nil || o.Port < 0 || o.Port > 65535 {
			return nil, fmt.Errorf("--listen %s: the port is no number from 0 to 65535", listen.Address)
		}
		if o.Port == 0 {
			o.Port = server.RANDOM_PORT
		}
		if s.token, err = token(filepath.Join(dir, tokenFile)); err != nil {
			return nil, err
		}
		o.DontListen, o.Host, o.Authorization = false, host, s.token
	}
	o.NoSigs, o.JetStream, o.StoreDir = true, true, filepath.Join(dir, "store")
	if listen.Config == "" {
		o.ServerName, o.NoLog, o.JetStreamMaxMemory, o.JetStreamMaxStore, o.MaxPayload = "aton", true, 64<<20, 1<<40, 1<<20
	}
	var err error
	if s.server, err = server.NewServer(o); err != nil {
		return nil, fmt.Errorf("the server of the queue: %w", err)
	}
	s.server.SetLogger(s.said, false, false)
	go s.server.Start()
	ready := make(chan bool, 1)
	go func() { ready <- s.server.ReadyForConnections(30 * time.Second) }()
	said := "it is not ready after 30 seconds"
	select {
	case ok := <-ready:
		if ok {
			return s, nil
		}
	case said = <-s.said.fatal: // such as a port that is in use
	}
	s.server.Shutdown()
	if err := writable(dir); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the server of the queue does not start: %s", said)
}

// failed says why the server has given up its store.
func (s *Server) failed() error {
	if s.server.JetStreamEnabled() {
		return nil
	}
	if err := writable(s.dir); err != nil {
		return err
	}
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	return fmt.Errorf("%s: the server of the queue has given up: %s", s.dir, s.said.last)
}

// token reads the token of a file, or makes one. Only the owner may read it.
func token(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	fresh := randomID()
	return fresh, os.WriteFile(file, []byte(fresh+"\n"), 0o600)
}

func randomID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // does not fail
	return hex.EncodeToString(b)
}

// Listening is the URL that workers elsewhere come in by, and the file with the token, if that is what lets them in; empty if no port is open.
func (s *Server) Listening() (address, tokenPath string) {
	if s.server.Addr() == nil {
		return "", ""
	}
	if s.token != "" {
		tokenPath = filepath.Join(s.dir, tokenFile)
	}
	return redacted(s.server.ClientURL()), tokenPath
}

// Connect is a connection inside of the process. A server with a configuration wants what others come in with too.
func (s *Server) Connect(a Access, build string, role Role, log func(format string, args ...any)) (*Queue, error) {
	a.URLs, a.CA, a.Cert, a.Key = "", "", "", "" // inside there is no network
	opts, err := a.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, nats.InProcessServer(s.server))
	if s.token != "" {
		opts = append(opts, nats.Token(s.token))
	}
	q, err := dial("", build, role, log, opts...)
	if err == nil {
		q.inside = s
	}
	return q, err
}

// Close stops the server.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
