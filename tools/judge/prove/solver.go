package prove

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Solver is z3 as a process that reads SMT-LIB 2. It is started when it is first asked, and again after it died.
type Solver struct {
	// Path is the program, z3 on PATH if it is empty.
	Path string
	// Limit bounds one question; 0 means 3 seconds.
	Limit time.Duration
	// Questions counts what was asked, and Spent is the time that it took.
	Questions int
	Spent     time.Duration

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// ErrNoSolver says that the solver is not installed.
var ErrNoSolver = errors.New("z3 is not installed (apt-get install z3)")

// Answer is what a solver says of a formula.
type Answer string

// The answers of a solver. A formula that is the negation of a claim is unsatisfiable if the claim holds.
const (
	Unsat   Answer = "unsat"
	Sat     Answer = "sat"
	Unknown Answer = "unknown"
)

func (s *Solver) start() error {
	path := s.Path
	if path == "" {
		path = "z3"
	}
	full, err := exec.LookPath(path)
	if err != nil {
		return ErrNoSolver
	}
	s.cmd = exec.Command(full, "-in", "-smt2")
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.out = bufio.NewReader(out)
	return s.cmd.Start()
}

// Installed reports that there is a program to ask.
func (s *Solver) Installed() bool {
	path := s.Path
	if path == "" {
		path = "z3"
	}
	_, err := exec.LookPath(path)
	return err == nil
}

// Close ends the process.
func (s *Solver) Close() {
	if s.cmd == nil {
		return
	}
	s.in.Close()
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
}

// end is what the solver prints behind its answer.
const end = "end-of-answer"

// Ask asks whether the assertions of a script can hold together. If they can, the values are those of the terms of want, in
// the words of SMT-LIB.
func (s *Solver) Ask(script string, want []string) (answer Answer, values []string, err error) {
	if s.cmd == nil {
		if err := s.start(); err != nil {
			return Unknown, nil, err
		}
	}
	limit := s.Limit
	if limit == 0 {
		limit = 3 * time.Second
	}
	began := time.Now()
	s.Questions++
	defer func() { s.Spent += time.Since(began) }()
	hung := time.AfterFunc(2*limit+2*time.Second, func() { s.cmd.Process.Kill() }) // the limit is z3's own; it does not always keep it
	defer hung.Stop()
	ask := func(text string) ([]string, error) {
		if _, err := io.WriteString(s.in, text+"\n(echo \""+end+"\")\n"); err != nil {
			return nil, err
		}
		var lines []string
		for {
			line, err := s.out.ReadString('\n')
			if err != nil {
				return nil, err
			}
			if line = strings.TrimSpace(line); line == end {
				return lines, nil
			}
			lines = append(lines, line)
		}
	}
	lines, err := ask(fmt.Sprintf("(reset)\n(set-option :timeout %d)\n%s\n(check-sat)", limit.Milliseconds(), script))
	if err != nil { // it was killed
		s.Close()
		return Unknown, nil, nil
	}
	for _, l := range lines {
		if strings.HasPrefix(l, "(error") {
			return Unknown, nil, fmt.Errorf("z3: %s", l)
		}
		answer = Answer(l)
	}
	if answer == "timeout" {
		answer = Unknown
	}
	if answer != Sat || len(want) == 0 {
		return answer, nil, nil
	}
	for _, w := range want {
		lines, err := ask("(get-value (" + w + "))")
		if err != nil {
			s.Close()
			return Unknown, nil, nil
		}
		text := strings.Join(lines, " ")
		values = append(values, strings.TrimSuffix(strings.TrimPrefix(text, "(("+w+" "), "))"))
	}
	return answer, values, nil
}
