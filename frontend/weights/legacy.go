package weights

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa/tensor"
)

// readLegacy reads the form of torch.save before PyTorch 1.6: five pickles
// (magic number, protocol, sizes of types, the object, the storage keys), then
// for each key the number of elements and the elements.
func readLegacy(data []byte, name, key string) (*Set, error) {
	pos := 0
	next := func(r *pickle.Reader) (any, error) {
		v, n, err := r.Read(data[pos:])
		if err != nil {
			if p, ok := err.(*pickle.Error); ok {
				p.Offset += pos
			}
			return nil, archive.At(name, "", err)
		}
		pos += n
		return v, nil
	}
	plain := &pickle.Reader{}
	if _, err := next(plain); err != nil { // the magic number was looked at
		return nil, err
	}
	if _, err := next(plain); err != nil {
		return nil, err
	}
	sizes, err := next(plain)
	if err != nil {
		return nil, err
	}
	big := false
	if d, ok := sizes.(*pickle.Dict); ok {
		if little, ok := d.Get("little_endian"); ok {
			big = little == false
		}
	}
	// the data comes last, so read the object twice: for the storages' types, then with the data
	object := pos
	shapes := &pickle.Tensors{ShapesOnly: true}
	if _, err := next(reader(shapes)); err != nil {
		return nil, err
	}
	keys, err := next(plain)
	if err != nil {
		return nil, err
	}
	l, ok := keys.(*pickle.List)
	if !ok {
		return nil, &archive.Error{File: name, Offset: int64(pos), Err: errors.New("the storage keys are " + pickle.Describe(keys))}
	}
	storages := map[string][]byte{}
	for _, k := range l.Items {
		s, ok := k.(string)
		if !ok {
			return nil, &archive.Error{File: name, Offset: int64(pos), Err: errors.New("a storage key is " + pickle.Describe(k))}
		}
		if len(data)-pos < 8 {
			return nil, &archive.Error{File: name, Offset: int64(pos), Err: errors.New("the file ends before storage " + s)}
		}
		n := binary.LittleEndian.Uint64(data[pos:])
		if big {
			n = binary.BigEndian.Uint64(data[pos:])
		}
		pos += 8
		size := uint64(1)
		if ref := shapes.Storage(s); ref != nil && ref.DType != tensor.Undefined {
			size = uint64(ref.DType.Size())
		}
		if n > math.MaxInt64/16 || n*size > uint64(len(data)-pos) {
			return nil, &archive.Error{File: name, Offset: int64(pos), Err: fmt.Errorf("storage %s of %d elements reaches beyond the end of the file", s, n)}
		}
		// not aligned here, so copied
		storages[s] = append([]byte(nil), data[pos:pos+int(n*size)]...)
		pos += int(n * size)
	}
	ts := &pickle.Tensors{BigEndian: big, Load: func(key string) ([]byte, error) {
		b, ok := storages[key]
		if !ok {
			return nil, fmt.Errorf("storage %s is missing", key)
		}
		return b, nil
	}}
	pos = object
	v, err := next(reader(ts))
	if err != nil {
		return nil, err
	}
	return collect(v, name, key)
}
