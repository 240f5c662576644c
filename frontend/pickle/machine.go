package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is a problem at a byte of the pickle.
type Error struct {
	Offset int
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %v", e.Offset, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Reader says how to interpret what is not plain data.
type Reader struct {
	// Global may refuse a name; nil accepts all.
	Global func(g Global) error
	// Call gives the result of calling a global; ok is false for an unknown one,
	// which then becomes a *Call.
	Call func(g Global, args Tuple) (v any, ok bool, err error)
	// Persistent gives the value of a persistent id; nil refuses them.
	Persistent func(id any) (any, error)
	// MaxObjects bounds stack, memo and items; 0 means 8 million.
	MaxObjects int
}

type machine struct {
	r     *Reader
	data  []byte
	pos   int
	op    int // start of the current opcode
	stack []any
	marks []int
	memo  map[uint32]any
	count int
	max   int
}

// Read reads one pickle from the start of data and tells how many bytes it took.
// Errors are *Error.
func (r *Reader) Read(data []byte) (v any, n int, err error) {
	m := &machine{r: r, data: data, memo: map[uint32]any{}, max: r.MaxObjects}
	if m.max == 0 {
		m.max = 8 << 20
	}
	v, err = m.run()
	if err != nil {
		return nil, 0, &Error{m.op, err}
	}
	return v, m.pos, nil
}

func (m *machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.data)-m.pos {
		return nil, fmt.Errorf("%d bytes expected, %d left", n, len(m.data)-m.pos)
	}
	b := m.data[m.pos : m.pos+n]
	m.pos += n
	return b, nil
}

func (m *machine) u8() (int, error) {
	b, err := m.take(1)
	if err != nil {
		return 0, err
	}
	return int(b[0]), nil
}

func (m *machine) u32() (uint32, error) {
	b, err := m.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (m *machine) length8() (int, error) {
	b, err := m.take(8)
	if err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(len(m.data)) {
		return 0, fmt.Errorf("length %d is larger than the pickle", n)
	}
	return int(n), nil
}

func (m *machine) line() (string, error) {
	for i := m.pos; i < len(m.data); i++ {
		if m.data[i] == '\n' {
			s := string(m.data[m.pos:i])
			m.pos = i + 1
			return strings.TrimSuffix(s, "\r"), nil
		}
	}
	return "", fmt.Errorf("a line without end")
}

func (m *machine) push(v any) error {
	if m.count++; m.count > m.max {
		return fmt.Errorf("more than %d objects", m.max)
	}
	m.stack = append(m.stack, v)
	return nil
}

// floor is the lowest position that the current frame may pop.
func (m *machine) floor() int {
	if len(m.marks) > 0 {
		return m.marks[len(m.marks)-1]
	}
	return 0
}

func (m *machine) pop() (any, error) {
	if len(m.stack) <= m.floor() {
		return nil, fmt.Errorf("pop of an empty stack")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

func (m *machine) top() (any, error) {
	if len(m.stack) <= m.floor() {
		return nil, fmt.Errorf("the stack is empty")
	}
	return m.stack[len(m.stack)-1], nil
}

// popMark takes everything above the last mark.
func (m *machine) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, fmt.Errorf("no mark on the stack")
	}
	at := m.marks[len(m.marks)-1]
	m.marks = m.marks[:len(m.marks)-1]
	items := append([]any(nil), m.stack[at:]...)
	m.stack = m.stack[:at]
	return items, nil
}

func (m *machine) popN(n int) (Tuple, error) {
	if len(m.stack)-n < m.floor() {
		return nil, fmt.Errorf("%d values expected on the stack", n)
	}
	t := append(Tuple(nil), m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	return t, nil
}

func (m *machine) put(i uint32) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	if len(m.memo) >= m.max {
		return fmt.Errorf("the memo is too large")
	}
	m.memo[i] = v
	return nil
}

func (m *machine) get(i uint32) error {
	v, ok := m.memo[i]
	if !ok {
		return fmt.Errorf("memo entry %d is empty", i)
	}
	return m.push(v)
}

func (m *machine) str(n int) error {
	b, err := m.take(n)
	if err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("a string is not UTF-8")
	}
	return m.push(string(b))
}

func (m *machine) bytes(n int) error {
	b, err := m.take(n)
	if err != nil {
		return err
	}
	return m.push(Bytes(b))
}

func (m *machine) global(module, name string) error {
	g := Global{module, name}
	if m.r.Global != nil {
		if err := m.r.Global(g); err != nil {
			return err
		}
	}
	return m.push(g)
}

func (m *machine) run() (any, error) {
	for {
		m.op = m.pos
		if m.pos >= len(m.data) {
			return nil, fmt.Errorf("the pickle ends without STOP")
		}
		c := m.data[m.pos]
		m.pos++
		if c == '.' {
			v, err := m.pop()
			if err != nil {
				return nil, err
			}
			return v, nil
		}
		if err := m.step(c); err != nil {
			return nil, err
		}
	}
}

func (m *machine) step(c byte) error {
	switch c {
	case 0x80: // PROTO
		v, err := m.u8()
		if err == nil && v > 5 {
			err = fmt.Errorf("pickle protocol %d is not known", v)
		}
		return err
	case 0x95: // FRAME
		_, err := m.take(8)
		return err
	case 'c': // GLOBAL
		module, err := m.line()
		if err != nil {
			return err
		}
		name, err := m.line()
		if err != nil {
			return err
		}
		return m.global(module, name)
	case 0x93: // STACK_GLOBAL
		t, err := m.popN(2)
		if err != nil {
			return err
		}
		module, ok1 := t[0].(string)
		name, ok2 := t[1].(string)
		if !ok1 || !ok2 {
			return fmt.Errorf("a global's name is %s", Describe(t[0]))
		}
		return m.global(module, name)
	case 'q': // BINPUT
		i, err := m.u8()
		if err != nil {
			return err
		}
		return m.put(uint32(i))
	case 'r': // LONG_BINPUT
		i, err := m.u32()
		if err != nil {
			return err
		}
		return m.put(i)
	case 0x94: // MEMOIZE
		return m.put(uint32(len(m.memo)))
	case 'h': // BINGET
		i, err := m.u8()
		if err != nil {
			return err
		}
		return m.get(uint32(i))
	case 'j': // LONG_BINGET
		i, err := m.u32()
		if err != nil {
			return err
		}
		return m.get(i)
	case 'p', 'g': // PUT, GET
		s, err := m.line()
		if err != nil {
			return err
		}
		i, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return fmt.Errorf("memo index %.20q", s)
		}
		if c == 'p' {
			return m.put(uint32(i))
		}
		return m.get(uint32(i))
	case '(': // MARK
		if len(m.marks) >= m.max {
			return fmt.Errorf("too many marks")
		}
		m.marks = append(m.marks, len(m.stack))
		return nil
	case '0': // POP
		if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) {
			m.marks = m.marks[:n-1]
			return nil
		}
		_, err := m.pop()
		return err
	case '1': // POP_MARK
		_, err := m.popMark()
		return err
	case '2': // DUP
		v, err := m.top()
		if err != nil {
			return err
		}
		return m.push(v)
	}
	return m.data1(c)
}

// data1 handles the opcodes that push plain data.
func (m *machine) data1(c byte) error {
	switch c {
	case 'N':
		return m.push(nil)
	case 0x88:
		return m.push(true)
	case 0x89:
		return m.push(false)
	case 'K': // BININT1
		v, err := m.u8()
		if err != nil {
			return err
		}
		return m.push(int64(v))
	case 'M': // BININT2
		b, err := m.take(2)
		if err != nil {
			return err
		}
		return m.push(int64(binary.LittleEndian.Uint16(b)))
	case 'J': // BININT
		v, err := m.u32()
		if err != nil {
			return err
		}
		return m.push(int64(int32(v)))
	case 0x8a, 0x8b: // LONG1, LONG4
		var n int
		if c == 0x8a {
			v, err := m.u8()
			if err != nil {
				return err
			}
			n = v
		} else {
			v, err := m.u32()
			if err != nil {
				return err
			}
			if n = int(v); n > 1024 {
				return fmt.Errorf("an integer of %d bytes", n)
			}
		}
		b, err := m.take(n)
		if err != nil {
			return err
		}
		return m.push(long(b))
	case 'G': // BINFLOAT
		b, err := m.take(8)
		if err != nil {
			return err
		}
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 'X': // BINUNICODE
		n, err := m.u32()
		if err != nil {
			return err
		}
		return m.str(int(n))
	case 0x8c: // SHORT_BINUNICODE
		n, err := m.u8()
		if err != nil {
			return err
		}
		return m.str(n)
	case 0x8d: // BINUNICODE8
		n, err := m.length8()
		if err != nil {
			return err
		}
		return m.str(n)
	case 'T', 'B': // BINSTRING, BINBYTES
		n, err := m.u32()
		if err != nil {
			return err
		}
		if c == 'T' {
			return m.str(int(n))
		}
		return m.bytes(int(n))
	case 'U', 'C': // SHORT_BINSTRING, SHORT_BINBYTES
		n, err := m.u8()
		if err != nil {
			return err
		}
		if c == 'U' {
			return m.str(n)
		}
		return m.bytes(n)
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		n, err := m.length8()
		if err != nil {
			return err
		}
		return m.bytes(n)
	case 'I', 'L', 'F', 'S', 'V':
		return m.text(c)
	}
	return m.container(c)
}

// text handles the printed forms of protocol 0.
func (m *machine) text(c byte) error {
	s, err := m.line()
	if err != nil {
		return err
	}
	switch c {
	case 'I', 'L':
		if c == 'I' && s == "01" {
			return m.push(true)
		}
		if c == 'I' && s == "00" {
			return m.push(false)
		}
		s = strings.TrimSuffix(s, "L")
		if len(s) > 2048 {
			return fmt.Errorf("an integer of %d digits", len(s))
		}
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			return m.push(v)
		}
		v, ok := new(big.Int).SetString(s, 10)
		if !ok {
			return fmt.Errorf("%.20q is not an integer", s)
		}
		return m.push(v)
	case 'F':
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%.20q is not a float", s)
		}
		return m.push(v)
	case 'S':
		v, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.Trim(s, `'"`), `"`, `\"`) + `"`)
		if err != nil {
			return fmt.Errorf("a string is badly quoted")
		}
		return m.push(v)
	}
	u, err := rawUnicode(s)
	if err != nil {
		return err
	}
	return m.push(u)
}

// rawUnicode decodes Python's raw-unicode-escape: a byte is the code point of its value, \uXXXX and \UXXXXXXXX are others.
func rawUnicode(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		digits := 0
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case 'u':
				digits = 4
			case 'U':
				digits = 8
			}
		}
		if digits == 0 {
			b.WriteRune(rune(s[i]))
			continue
		}
		if i+2+digits > len(s) {
			return "", fmt.Errorf("a string ends in an escape")
		}
		n, err := strconv.ParseUint(s[i+2:i+2+digits], 16, 32)
		if err != nil || n > utf8.MaxRune {
			return "", fmt.Errorf("%.12q is no escape", s[i:])
		}
		b.WriteRune(rune(n))
		i += 1 + digits
	}
	return b.String(), nil
}

// long reads a little-endian two's complement integer.
func long(b []byte) any {
	if len(b) <= 8 {
		var v uint64
		for i, x := range b {
			v |= uint64(x) << (8 * i)
		}
		if n := len(b); n > 0 && n < 8 && b[n-1]&0x80 != 0 {
			v |= ^uint64(0) << (8 * n)
		}
		return int64(v)
	}
	be := make([]byte, len(b))
	for i, x := range b {
		be[len(b)-1-i] = x
	}
	v := new(big.Int).SetBytes(be)
	if be[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if v.IsInt64() {
		return v.Int64()
	}
	return v
}

// container handles tuples, lists, dicts, sets and objects.
func (m *machine) container(c byte) error {
	switch c {
	case ')':
		return m.push(Tuple{})
	case 0x85, 0x86, 0x87:
		t, err := m.popN(int(c) - 0x84)
		if err != nil {
			return err
		}
		return m.push(t)
	case 't', 'l', 'd', 0x91:
		items, err := m.popMark()
		if err != nil {
			return err
		}
		switch c {
		case 't':
			return m.push(Tuple(items))
		case 'l':
			return m.push(&List{items})
		case 0x91: // FROZENSET
			return m.push(&Set{items})
		}
		d := &Dict{}
		if len(items)%2 != 0 {
			return fmt.Errorf("a dict has a key without a value")
		}
		for i := 0; i < len(items); i += 2 {
			d.Set(items[i], items[i+1])
		}
		return m.push(d)
	case ']':
		return m.push(&List{})
	case '}':
		return m.push(&Dict{})
	case 0x8f:
		return m.push(&Set{})
	case 'a', 's': // APPEND, SETITEM
		n := 1
		if c == 's' {
			n = 2
		}
		items, err := m.popN(n)
		if err != nil {
			return err
		}
		return m.extend(items, c == 's')
	case 'e', 'u', 0x90: // APPENDS, SETITEMS, ADDITEMS
		items, err := m.popMark()
		if err != nil {
			return err
		}
		return m.extend(items, c == 'u')
	case 0x81: // NEWOBJ
		t, err := m.popN(2)
		if err != nil {
			return err
		}
		return m.object(t[0], t[1])
	case 0x92: // NEWOBJ_EX
		t, err := m.popN(3)
		if err != nil {
			return err
		}
		return m.object(t[0], t[1])
	case 'R': // REDUCE
		t, err := m.popN(2)
		if err != nil {
			return err
		}
		g, ok := t[0].(Global)
		if !ok {
			return fmt.Errorf("a call of %s", Describe(t[0]))
		}
		args, isTuple := t[1].(Tuple)
		if !isTuple { // TorchScript writes an enum member as a call with the bare value
			args = Tuple{t[1]}
		}
		if m.r.Call != nil {
			v, known, err := m.r.Call(g, args)
			if err != nil {
				return fmt.Errorf("%s: %w", g, err)
			}
			if known {
				return m.push(v)
			}
		}
		return m.push(&Call{Fn: g, Args: args})
	case 'b': // BUILD
		state, err := m.pop()
		if err != nil {
			return err
		}
		v, err := m.top()
		if err != nil {
			return err
		}
		switch v := v.(type) {
		case *Object:
			v.State, v.Built = state, true
		case *Call:
			v.State = state
		}
		return nil // the state of an OrderedDict and its like is not needed
	case 'Q': // BINPERSID
		id, err := m.pop()
		if err != nil {
			return err
		}
		if m.r.Persistent == nil {
			return fmt.Errorf("a persistent id is not expected here")
		}
		v, err := m.r.Persistent(id)
		if err != nil {
			return err
		}
		return m.push(v)
	}
	return fmt.Errorf("opcode 0x%02x is not supported", c)
}

func (m *machine) object(class, args any) error {
	g, ok := class.(Global)
	t, isTuple := args.(Tuple)
	if !ok || !isTuple {
		return fmt.Errorf("a new object of %s with %s", Describe(class), Describe(args))
	}
	return m.push(&Object{Class: g, Args: t, Offset: m.op})
}

// extend adds items to the list, set or dict on top of the stack.
func (m *machine) extend(items []any, pairs bool) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	if m.count += len(items); m.count > m.max {
		return fmt.Errorf("more than %d objects", m.max)
	}
	if pairs {
		if len(items)%2 != 0 {
			return fmt.Errorf("a dict has a key without a value")
		}
		switch v := v.(type) {
		case *Dict:
			for i := 0; i < len(items); i += 2 {
				v.Set(items[i], items[i+1])
			}
			return nil
		case *Object:
			v.Items = append(v.Items, items...)
			return nil
		case *Call:
			return nil
		}
		return fmt.Errorf("entries for %s", Describe(v))
	}
	switch v := v.(type) {
	case *List:
		v.Items = append(v.Items, items...)
	case *Set:
		v.Items = append(v.Items, items...)
	case *Object:
		v.Items = append(v.Items, items...)
	case *Call:
	default:
		return fmt.Errorf("items for %s", Describe(v))
	}
	return nil
}
