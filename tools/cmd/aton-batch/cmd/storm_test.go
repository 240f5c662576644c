package cmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aton-project/aton/tools/lib/batch"
)

// asServer is the variable of the environment that makes this test a server of the queue: its folder and address, with a space between.
const asServer = "ATON_TEST_SERVER"

// serve is a server in a process of its own, until its standard input ends.
func serve(where string) int {
	dir, address, _ := strings.Cut(where, " ")
	s, err := batch.StartServer(dir, batch.Listen{Address: address})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Close()
	return 0
}

// heavy writes n models with weights of a size, each with other ones, and gives the hashes of the files that they are converted to.
func heavy(t *testing.T, n, floats int) (dir string, want map[string]string) {
	t.Helper()
	dir, want = t.TempDir(), map[string]string{}
	random := rand.New(rand.NewPCG(7, 0))
	for i := range n {
		raw := make([]byte, 4*floats)
		for j := range raw {
			raw[j] = byte(random.Uint32())&0x3f | 1 // floats of usual size
		}
		text := fmt.Sprintf("graph(%%x : Float(1, %d)):\n  %%w : Float(1, %d) = onnx::Constant[value=tensor(Float(1, %d), @0)]()\n  %%y : Float(1, %d) = onnx::Add(%%x, %%w)\n  return (%%y)\ndata {\n  @0 = %q\n}\n",
			floats, floats, floats, floats, base64.StdEncoding.EncodeToString(raw))
		name := fmt.Sprintf("model%03d", i)
		if err := os.WriteFile(filepath.Join(dir, name+".ir"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		if status := Main([]string{"export", filepath.Join(dir, name+".ir"), "-o", "-"}, nil, &out, &said); status != 0 {
			t.Fatal(said.String())
		}
		sum := sha256.Sum256(out.Bytes())
		want[name] = hex.EncodeToString(sum[:])
	}
	return dir, want
}

// complete compares a folder of outputs with the hashes that it should have.
func complete(t *testing.T, out string, want map[string]string) {
	t.Helper()
	found := results(t, out)
	if len(found) != len(want) {
		t.Errorf("%d results of %d", len(found), len(want))
	}
	for name, hash := range want {
		text, err := os.ReadFile(filepath.Join(out, name+".onnx"))
		sum := sha256.Sum256(text)
		if r := found[name]; err != nil || r == nil || r.Status != batch.OK || hex.EncodeToString(sum[:]) != hash || r.Outputs[0].Hash != hash {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
	left, err := filepath.Glob(filepath.Join(out, ".*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("half-written: %v, %v", left, err)
	}
}

// freePort is an address of this machine that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// member is a process of the storm that is started again when it ends.
type member struct {
	mu    sync.Mutex
	start func() *exec.Cmd
	now   *exec.Cmd
	ended chan struct{}
}

func (m *member) run(t *testing.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.start()
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Error(err)
		return
	}
	if err := c.Start(); err != nil {
		t.Error(err)
		return
	}
	ended := make(chan struct{})
	m.now, m.ended = c, ended
	go func() {
		_ = c.Wait()
		stdin.Close()
		close(ended)
	}()
}

// gone reports that the process has ended.
func (m *member) gone() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}

func (m *member) kill() {
	_ = m.now.Process.Kill()
	<-m.ended
}

// TestStorm converts models by three workers with a server and a coordinator, and has each of them killed, workers suspended, and disks
// full, at random: each result is there once with the same bytes, and nothing waits for ever. ATON_STORM=30m is how long it goes on, with 300
// models in each round; what the rounds had is in tools/lib/batch/README.md.
func TestStorm(t *testing.T) {
	n, most, floats := 24, time.Duration(0), 20_000
	if text := os.Getenv("ATON_STORM"); text != "" {
		var err error
		if most, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		n = 300
	} else if testing.Short() {
		t.Skip("seconds")
	}
	dir, want := heavy(t, n, floats)
	began := time.Now()
	var total stormed
	for round := 1; round == 1 || time.Since(began) < most; round++ {
		s := storm(t, dir, want, uint64(round))
		total.add(s)
		t.Logf("round %d: %s", round, s)
		if t.Failed() {
			return
		}
	}
	t.Logf("%.0f s, %d models in each round: %s", time.Since(began).Seconds(), n, total)
}

// stormed counts what was done to the processes of a round.
type stormed struct {
	rounds, results, tries                                  int
	workers, servers, coordinators, suspended, disks, ended int
	took                                                    time.Duration
}

func (s *stormed) add(o stormed) {
	s.rounds++
	s.results += o.results
	s.tries += o.tries
	s.workers += o.workers
	s.servers += o.servers
	s.coordinators += o.coordinators
	s.suspended += o.suspended
	s.disks += o.disks
	s.ended += o.ended
	s.took += o.took
}

func (s stormed) String() string {
	return fmt.Sprintf("%.0f s, %d results, %d tries; killed: %d workers, %d servers, %d coordinators; %d workers suspended, disks full %d times; %d times a process ended by itself",
		s.took.Seconds(), s.results, s.tries, s.workers, s.servers, s.coordinators, s.suspended, s.disks, s.ended)
}

// storm is one round.
func storm(t *testing.T, dir string, want map[string]string, seed uint64) stormed {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	base := t.TempDir()
	var disks []*disk
	place := func(name string) string {
		at := filepath.Join(base, name)
		if err := os.Mkdir(at, 0o777); err != nil {
			t.Fatal(err)
		}
		if d := mount(at, 96<<20); d != nil {
			disks = append(disks, d)
		}
		return at
	}
	defer func() {
		for _, d := range disks {
			d.unmount()
		}
	}()
	out, work, store := filepath.Join(place("out"), "results"), place("work"), filepath.Join(place("store"), "queue")
	address := freePort(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said lockedBuffer
	server := &member{start: func() *exec.Cmd {
		c := exec.Command(self)
		c.Env = append(os.Environ(), asServer+"="+store+" "+address)
		c.Stderr = &said
		return c
	}}
	token := filepath.Join(store, "token")
	queue := []string{"--queue", "nats://" + address, "--queue-token-file", token, "--no-cache"}
	server.run(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not start", said.String())
		}
	}
	var workers []*member
	for range 3 {
		workers = append(workers, &member{start: func() *exec.Cmd {
			c := program(t, append([]string{"worker", "--root", dir, "--work", work, "--jobs", "1"}, queue...)...)
			c.Stderr = &said
			return c
		}})
	}
	var lines lockedBuffer
	coordinator := &member{start: func() *exec.Cmd {
		c := program(t, append([]string{"batch", dir, "-o", out, "--jobs", "0", "--json", "--ack-wait", "2s", "--tries", "500", "--queue-timeout", "5s"}, queue...)...)
		c.Stdout, c.Stderr = &lines, &said
		return c
	}}
	for _, w := range workers {
		w.run(t)
	}
	coordinator.run(t)
	all := append([]*member{server, coordinator}, workers...)
	defer func() {
		for _, m := range all {
			resume(m.now)
			m.kill()
		}
	}()
	done := func() int {
		text, _ := os.ReadFile(filepath.Join(out, batch.Results))
		return bytes.Count(text, []byte("\n"))
	}
	var s stormed
	began, lastDone, lastAt := time.Now(), 0, time.Now()
	var asleep *member
	for tick := 0; ; tick++ {
		time.Sleep(time.Duration(300+random.IntN(700)) * time.Millisecond)
		if coordinator.gone() && coordinator.now.ProcessState.ExitCode() == 0 {
			break
		}
		if now := done(); now != lastDone {
			lastDone, lastAt = now, time.Now()
		} else if time.Since(lastAt) > 3*time.Minute {
			t.Fatalf("nothing comes any more: %d of %d after %v\n%s", now, len(want), time.Since(began), said.tail())
		}
		if asleep != nil && random.IntN(4) == 0 {
			resume(asleep.now)
			asleep = nil
		}
		for _, d := range disks {
			if d.full() && random.IntN(3) == 0 {
				d.empty()
			}
		}
		switch random.IntN(12) {
		case 0, 1, 2, 3:
			if w := workers[random.IntN(len(workers))]; w != asleep {
				w.kill()
				s.workers++
			}
		case 4:
			if server.kill(); true {
				s.servers++
			}
		case 5, 6:
			coordinator.kill()
			s.coordinators++
		case 7:
			if asleep == nil {
				asleep = workers[random.IntN(len(workers))]
				suspend(asleep.now)
				s.suspended++
			}
		case 8:
			if len(disks) > 0 {
				disks[random.IntN(len(disks))].fill()
				s.disks++
			}
		}
		for _, m := range all {
			if m == coordinator && m.gone() && m.now.ProcessState.ExitCode() == 0 {
				continue
			}
			if m.gone() {
				if m.now.ProcessState.ExitCode() > 0 {
					s.ended++
				}
				m.run(t)
			}
		}
	}
	s.took = time.Since(began)
	complete(t, out, want)
	for _, r := range results(t, out) {
		s.tries += r.Tries
		s.results++
	}
	// what came in twice would be told twice, but for a line whose coordinator was killed between telling and writing
	told := map[string]int{}
	for line := range strings.Lines(lines.String()) {
		var r batch.Result
		if json.Unmarshal([]byte(line), &r) == nil {
			told[r.Name]++
		}
	}
	for name := range want {
		if told[name] == 0 && s.coordinators == 0 {
			t.Errorf("nobody was told of %s", name)
		}
	}
	if t.Failed() {
		t.Log(said.tail())
	}
	return s
}

// lockedBuffer keeps what several processes write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) tail() string {
	s := l.String()
	return s[max(0, len(s)-8000):]
}
