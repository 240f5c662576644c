package batch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is a server of NATS with JetStream inside of this process.
type Server struct {
	server *server.Server
	dir    string
	token  string
}

// tokenFile is the file in the folder of a server with the token of its workers.
const tokenFile = "token"

// StartServer starts a server that keeps everything in a folder. It opens no port, unless listen is an address (HOST:PORT): then
// workers elsewhere come in with the token that is in a file of the folder.
func StartServer(dir, listen string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	o := &server.Options{
		ServerName: "aton", DontListen: true, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: filepath.Join(dir, "store"), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 40,
		MaxPayload: 1 << 20, NoSystemAccount: true,
	}
	if listen != "" {
		host, port, err := net.SplitHostPort(listen)
		if err != nil {
			return nil, fmt.Errorf("--listen %s: it is HOST:PORT", listen)
		}
		if o.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("--listen %s: the port is no number", listen)
		}
		if o.Port == 0 {
			o.Port = server.RANDOM_PORT
		}
		if s.token, err = token(filepath.Join(dir, tokenFile)); err != nil {
			return nil, err
		}
		o.DontListen, o.Host, o.Authorization = false, host, s.token
	}
	var err error
	if s.server, err = server.NewServer(o); err != nil {
		return nil, err
	}
	go s.server.Start()
	if !s.server.ReadyForConnections(30 * time.Second) {
		s.server.Shutdown()
		return nil, errors.New("the server of the queue does not start")
	}
	return s, nil
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

// Listening is the URL that workers elsewhere come in by, and the file with the token; empty if no port is open.
func (s *Server) Listening() (address, tokenPath string) {
	if s.token == "" {
		return "", ""
	}
	return s.server.ClientURL(), filepath.Join(s.dir, tokenFile)
}

// Connect is a connection inside of the process.
func (s *Server) Connect(ctx context.Context, build string, silence time.Duration) (*Queue, error) {
	opts := []nats.Option{nats.InProcessServer(s.server), nats.Name("aton")}
	if s.token != "" {
		opts = append(opts, nats.Token(s.token))
	}
	return dial(ctx, "", build, silence, opts...)
}

// Close stops the server.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
