package batch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// lossy stands between clients and a server of NATS. It swallows one message: the first of a kind. With silent it swallows all that comes after
// it on that connection, too, which stays open, as where a machine between the two is gone.
type lossy struct {
	t      *testing.T
	at     net.Listener
	server string
	silent bool

	passing sync.WaitGroup // what accepts and passes on; what is below is read behind close
	mu      sync.Mutex
	open    []net.Conn
	closed  bool
	kind    string
	lost    bool
	kinds   []string          // in the order of their first messages
	answers map[string]string // the kinds of answers, by the subject that they go to
}

func newLossy(t *testing.T, server, kind string, silent bool) *lossy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossy{t: t, at: l, server: strings.TrimPrefix(server, "nats://"), kind: kind, silent: silent, answers: map[string]string{}}
	p.passing.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.open = append(p.open, c)
			if p.closed {
				c.Close()
			}
			p.mu.Unlock()
			p.passing.Go(func() { p.pass(c) })
		}
	})
	return p
}

// close ends all connections, and waits until nothing is passed on any more.
func (p *lossy) close() {
	p.at.Close()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.passing.Wait()
}

// lossyConn is a connection through it.
type lossyConn struct {
	p     *lossy
	mu    sync.Mutex
	role  string
	muted bool
}

func (p *lossy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	c := &lossyConn{p: p}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			c.copy(bufio.NewReader(way[0]), way[1])
			client.Close()
			server.Close()
		})
	}
	both.Wait()
}

// copy passes on what comes, line by line; a message has its bytes after its line.
func (c *lossyConn) copy(from *bufio.Reader, to io.Writer) {
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		body := []byte(nil)
		message := len(words) > 2 && slices.Contains([]string{"PUB", "HPUB", "MSG", "HMSG"}, words[0])
		if message {
			n, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return
			}
			body = make([]byte, n+2)
			if _, err := io.ReadFull(from, body); err != nil {
				return
			}
		}
		if c.swallows(words, body, message) {
			continue
		}
		if _, err := to.Write(append([]byte(line), body...)); err != nil {
			return
		}
	}
}

func (c *lossyConn) swallows(words []string, body []byte, message bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.muted {
		return true
	}
	for _, role := range []Role{Coordinator, Taker} {
		if c.role == "" && len(words) > 1 && strings.HasPrefix(words[1], string(role)) {
			c.role = strings.TrimPrefix(string(role), "_INBOX.")
		}
	}
	if !message || !c.p.swallows(c.role, words, body) {
		return false
	}
	c.muted = c.p.silent
	return true
}

// variable are the parts of subjects that are others in each run: identifiers and hashes.
var variable = regexp.MustCompile(`[0-9a-f]{12,}`)

// kindOf is what all messages have in common whose subjects differ in names and numbers alone.
func kindOf(subject string) string {
	words := strings.Split(variable.ReplaceAllString(subject, "*"), ".")
	if n := slices.Index(words, "API"); n >= 0 {
		words = words[:min(len(words), n+4)] // $JS.API.STREAM.INFO.NAME
	}
	return strings.Join(words, ".")
}

func (p *lossy) swallows(role string, words []string, body []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	subject := words[1]
	var kind string
	if strings.HasSuffix(words[0], "PUB") {
		kind = role + " sends " + kindOf(subject)
		if strings.HasPrefix(subject, "$JS.ACK.") {
			kind = role + " says " + strings.Fields(string(body) + " ?")[0]
		}
		if reply := len(words) - 2 - strings.Count(words[0], "H"); reply > 1 {
			p.answers[words[reply]] = strings.Replace(kind, " sends ", " is answered ", 1)
		}
	} else if kind = p.answers[subject]; kind == "" {
		kind = role + " gets " + kindOf(subject)
	}
	if !slices.Contains(p.kinds, kind) {
		p.kinds = append(p.kinds, kind)
	}
	if p.lost || kind != p.kind {
		return false
	}
	p.lost = true
	return true
}

// through runs a batch of two models whose files go through the queue, by a server behind the connection. Each has to have its result.
func (p *lossy) through(b *bench, s *Server) error {
	_, token := s.Listening()
	a := Access{URLs: "nats://" + p.at.Addr().String(), Token: token}
	ctx, cancel := context.WithTimeout(b.Context(), 3*time.Minute)
	defer cancel()
	plan, err := NewPlan(commands, Request{Models: filepath.Join(b.dir, "models"), Out: b.out(""), Do: "export", Tries: 5, Build: "1"})
	if err != nil {
		return err
	}
	var log lockedLog
	worker := b.worker(filepath.Join(b.dir, "nothing"))
	worker.Folder = filepath.Join(b.dir, "work")
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		q, err := Dial(a, "1", Taker, log.printf)
		if err != nil {
			ended <- err
			return
		}
		defer q.Close()
		ended <- worker.Take(working, q, Serving{Jobs: 1, Log: log.printf})
	}()
	batch := &Batch{Plan: plan, Out: b.out(""), Access: a, Worker: b.worker(plan.Root), Upload: true, Silence: time.Second, Patience: 20 * time.Second, Log: log.printf}
	found, err := batch.Run(ctx)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return fmt.Errorf("%w; %d results; what was told:\n%s", err, len(found), log.String())
	}
	for _, name := range []string{"a", "b"} {
		text, err := os.ReadFile(b.out(name + ".onnx"))
		if err != nil || string(text) != "made of fine "+name {
			return fmt.Errorf("%s: %q, %v; what was told:\n%s", name, text, err, log.String())
		}
	}
	for _, r := range found {
		if r.Status != OK {
			return fmt.Errorf("%+v; what was told:\n%s", r, log.String())
		}
	}
	return nil
}

// Whichever message is lost between batch, server and worker, and whenever a connection becomes silent, each model has its result. make
// batch-storm has a connection silent at each kind of message, make test at some.
func TestLostMessages(t *testing.T) {
	defer func(a, l, p time.Duration) { answerWait, looks, pingEvery = a, l, p }(answerWait, looks, pingEvery)
	answerWait, looks, pingEvery = time.Second, 200*time.Millisecond, 700*time.Millisecond
	shared := newBench(t, nil)
	run := func(kind string, silent bool) (*lossy, time.Duration, error) {
		b := &bench{T: t, dir: t.TempDir(), conversions: shared.conversions}
		b.write("a.ir", "fine a")
		b.write("b.ir", "fine b")
		s, err := StartServer(filepath.Join(b.dir, "server"), Listen{Address: "127.0.0.1:0"})
		if err != nil {
			return nil, 0, err
		}
		defer s.Close()
		address, _ := s.Listening()
		p := newLossy(t, address, kind, silent)
		defer p.close()
		began := time.Now()
		err = p.through(b, s)
		return p, time.Since(began), err
	}
	clean, _, err := run("", false)
	if err != nil {
		t.Fatal(err)
	}
	if len(clean.kinds) < 25 {
		t.Errorf("only %d kinds of messages: %q", len(clean.kinds), clean.kinds)
	}
	var all sync.WaitGroup
	var lost, runs atomic.Int32
	room := make(chan struct{}, 16) // on a machine with much other work, more would have no answers in time
	for i, kind := range clean.kinds {
		for _, silent := range []bool{false, true} {
			if silent && i%8 != 0 && os.Getenv("ATON_STORM") == "" {
				continue
			}
			all.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				p, took, err := run(kind, silent)
				runs.Add(1)
				if err != nil {
					t.Errorf("%s (silent: %v): %v", kind, silent, err)
				} else if p.lost {
					lost.Add(1)
				}
				t.Logf("%s (silent: %v): %v", kind, silent, took.Round(time.Millisecond))
			})
		}
	}
	all.Wait()
	// whether some messages are sent at all depends on who is faster, as probes of the server, and answers that there is nothing to do
	if lost.Load() < runs.Load()*3/4 {
		t.Errorf("of %d kinds of messages %d were lost", runs.Load(), lost.Load())
	}
}

// An item that the server gives to nobody, as where its clock was put back by an hour, comes to a worker that waits.
func TestStuckItem(t *testing.T) {
	defer func(usual time.Duration) { looks = usual }(looks)
	looks = 200 * time.Millisecond
	b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "late b"})
	s, err := StartServer(filepath.Join(b.dir, "server"), Listen{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	address, token := s.Listening()
	q, err := Dial(Access{URLs: address, Token: token}, "1", Taker, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var log lockedLog
	b.change = func(batch *Batch) {
		batch.Access, batch.Jobs, batch.Silence, batch.Log = Access{URLs: address, Token: token}, 0, time.Second, log.printf
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		var c jetstream.Consumer
		for c == nil && ctx.Err() == nil {
			if c, err = q.consumer(ctx); err != nil {
				ended <- err
				return
			}
		}
		for n := 0; n < 1; {
			if m, err := c.Next(jetstream.FetchMaxWait(time.Second)); err == nil {
				_ = m.NakWithDelay(time.Hour)
				n++
			}
		}
		w := b.worker(filepath.Join(b.dir, "models"))
		w.Folder = filepath.Join(b.dir, "work")
		ended <- w.Take(ctx, q, Serving{Jobs: 2, Log: log.printf})
	}()
	for name, r := range b.run() {
		if r.Status != OK || r.Tries != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if !strings.Contains(log.String(), "1 models are in the queue and come to no worker") {
		t.Error(log.String())
	}
	if n := b.converted(); n != 2 {
		t.Errorf("%d conversions", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
