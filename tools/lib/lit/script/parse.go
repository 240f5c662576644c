package script

import (
	"errors"
	"fmt"
	"strings"
)

type token struct {
	text    string
	special bool // an operator, not quoted
}

// tokens splits a RUN line into words and operators.
func tokens(s string) ([]token, error) {
	var out []token
	var word strings.Builder
	inWord := false
	flush := func() {
		if inWord {
			out = append(out, token{text: word.String()})
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t':
			flush()
		case '\'', '"':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return nil, fmt.Errorf("no closing %c", c)
			}
			word.WriteString(s[i+1 : i+1+end])
			inWord = true
			i += end + 1
		case '|', '<', '>', '&', ';', '`', '$', '(', ')':
			op := string(c)
			switch {
			case strings.HasPrefix(s[i:], "&&"):
				op = "&&"
			case strings.HasPrefix(s[i:], ">&1") && word.String() == "2":
				word.Reset()
				inWord = false
				op = "2>&1"
				i += 2
			case c != '|' && c != '<' && c != '>' || strings.HasPrefix(s[i:], "||") || strings.HasPrefix(s[i:], ">>"):
				return nil, fmt.Errorf("%q needs a shell, and there is none: quote it if it is meant as text", op)
			}
			flush()
			out = append(out, token{op, true})
			if op == "&&" {
				i++
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	flush()
	return out, nil
}

func parseLine(s string) ([]Pipeline, error) {
	words, err := tokens(s)
	if err != nil {
		return nil, err
	}
	var chain []Pipeline
	var pipe Pipeline
	var stage Stage
	endStage := func() error {
		if stage.Name == "" {
			return errors.New("a command is missing")
		}
		pipe = append(pipe, stage)
		stage = Stage{}
		return nil
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !w.special {
			switch {
			case stage.Name != "":
				stage.Args = append(stage.Args, w.text)
			case w.text == "not":
				stage.Not = !stage.Not
			default:
				stage.Name = w.text
			}
			continue
		}
		switch w.text {
		case "|", "&&":
			if w.text == "|" && stage.Output != "" {
				return nil, errors.New("'>' belongs to the last command of a pipeline")
			}
			if err := endStage(); err != nil {
				return nil, err
			}
			if w.text == "&&" {
				chain, pipe = append(chain, pipe), nil
			}
		case "2>&1":
			stage.Together = true
		case "<", ">":
			if i++; i == len(words) || words[i].special {
				return nil, fmt.Errorf("a file name is missing behind %q", w.text)
			}
			if w.text == "<" {
				if len(pipe) > 0 {
					return nil, errors.New("'<' belongs to the first command of a pipeline")
				}
				stage.Input = words[i].text
			} else {
				stage.Output = words[i].text
			}
		}
	}
	if err := endStage(); err != nil {
		return nil, err
	}
	return append(chain, pipe), nil
}
