// Package archive reads the zip containers that PyTorch writes, from mapped
// memory: a stored record is a slice of the file, never a copy. What all front
// ends say of their files is here, too: errors and remarks.
package archive

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"

	"github.com/aton-project/aton/ssa/tensor/mapfile"
)

// Limits bounds what a hostile file can make the reader do.
type Limits struct {
	Records  int   // entries in the directory
	Inflated int64 // bytes of all deflated records together; of a small file less, see mostRatio
	Spool    int64 // bytes of deflated records that are kept in memory; more go to a file. 0 is the usual number
	Text     int64 // bytes of one record read by Text
}

// DefaultLimits suits any model that PyTorch writes.
var defaultLimits = Limits{Records: 1 << 20, Inflated: 4 << 30, Text: 256 << 20}

// Records that are deflated may be spool bytes, whatever the file has, and for each byte of the file mostRatio more. Weights do not get this
// small; deflate gets to 1032. Spool is as much as is kept in memory.
const (
	spool     = 256 << 20
	mostRatio = 64
)

// Archive is an open container. It is not safe for concurrent use.
type Archive struct {
	// File is the name for messages.
	File string
	// Prefix is the folder that holds all records: the first component of the
	// first entry. It is empty if that lies in no folder.
	Prefix string

	data     []byte
	records  map[string]*zip.File
	order    []string
	limits   Limits
	inflated int64
	cache    map[string][]byte
}

// IsZip reports whether the bytes begin as a zip file does.
func IsZip(data []byte) bool { return bytes.HasPrefix(data, []byte("PK\x03\x04")) }

// Read opens a container that lies in memory. data must not change while the
// archive, or anything read from it, is in use. A nil limits means the usual ones.
func Read(data []byte, file string, limits *Limits) (*Archive, error) {
	a := &Archive{File: file, data: data, records: map[string]*zip.File{}, limits: defaultLimits, cache: map[string][]byte{}}
	if limits != nil {
		a.limits = *limits
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, &Error{File: file, Offset: -1, Err: fmt.Errorf("not a complete zip file (%w), so its download or copy was cut short; fetch or save it again", err)}
	}
	if len(z.File) == 0 {
		return nil, &Error{File: file, Offset: -1, Err: errors.New("the zip file is empty")}
	}
	if len(z.File) > a.limits.Records {
		return nil, &Error{File: file, Offset: -1, Err: fmt.Errorf("%d records are more than %d", len(z.File), a.limits.Records)}
	}
	root := ""
	if folder, _, ok := strings.Cut(z.File[0].Name, "/"); ok {
		a.Prefix, root = folder, folder+"/"
	}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue // the entry of a folder, which other zip programs add
		}
		if err := checkName(f.Name); err != nil {
			return nil, &Error{File: file, Record: fmt.Sprintf("%.60q", f.Name), Offset: -1, Err: err}
		}
		name, ok := strings.CutPrefix(f.Name, root)
		if !ok {
			continue
		}
		if a.records[name] != nil {
			return nil, &Error{File: file, Record: name, Offset: -1, Err: errors.New("the archive has two records of this name")}
		}
		a.records[name] = f
		a.order = append(a.order, name)
	}
	return a, nil
}

func checkName(n string) error {
	if n == "" || strings.ContainsAny(n, "\\\x00") || n[0] == '/' || len(n) > 4096 {
		return errors.New("bad record name")
	}
	for _, part := range strings.Split(n, "/") {
		if part == ".." || part == "." {
			return errors.New("bad record name")
		}
	}
	return nil
}

// Has reports whether a record is there.
func (a *Archive) Has(record string) bool { return a.records[record] != nil }

// Records lists the records in directory order.
func (a *Archive) Records() []string { return a.order }

// HasFolder reports whether any record lies in a folder.
func (a *Archive) HasFolder(folder string) bool {
	for _, r := range a.order {
		if strings.HasPrefix(r, folder+"/") {
			return true
		}
	}
	return false
}

// Base is the last component of a record's name.
func Base(record string) string { return path.Base(record) }

func (a *Archive) fail(record string, at int64, format string, args ...any) error {
	return &Error{File: a.File, Record: record, Offset: at, Err: fmt.Errorf(format, args...)}
}

// Forget drops the copies of compressed records. What was given out stays valid, and a record that is asked for again is made anew.
func (a *Archive) Forget() { clear(a.cache) }

// Bytes gives a record's content: a slice of the file if it is stored, else a
// copy that is kept. The checksum of stored records is not verified, since that
// would touch every page of the weights; see Text.
func (a *Archive) Bytes(record string) ([]byte, error) {
	if b, ok := a.cache[record]; ok {
		return b, nil
	}
	b, inflated, err := a.content(record)
	if inflated {
		a.cache[record] = b
	}
	return b, err
}

// content gives a record's content and whether it was inflated, which makes a copy.
func (a *Archive) content(record string) (b []byte, inflated bool, err error) {
	f := a.records[record]
	if f == nil {
		return nil, false, a.fail(record, -1, "the record is missing")
	}
	off, err := f.DataOffset()
	if err != nil {
		return nil, false, a.fail(record, -1, "bad local header: %w", err)
	}
	size := f.CompressedSize64
	if off < 0 || off > int64(len(a.data)) || size > uint64(int64(len(a.data))-off) {
		return nil, false, a.fail(record, off, "%d bytes of data reach beyond the end of the file (%d bytes)", size, len(a.data))
	}
	raw := a.data[off : off+int64(size) : off+int64(size)]
	switch f.Method {
	case zip.Store:
		if f.UncompressedSize64 != size {
			return nil, false, a.fail(record, off, "a stored record has two sizes, %d and %d", size, f.UncompressedSize64)
		}
		return raw, false, nil
	case zip.Deflate:
		// deflate cannot do better than 1032:1
		if f.UncompressedSize64 > size*1032+64 {
			return nil, false, a.fail(record, off, "%d bytes cannot inflate to %d", size, f.UncompressedSize64)
		}
		if a.inflated += int64(f.UncompressedSize64); a.inflated > a.limits.Inflated {
			return nil, false, a.fail(record, off, "the deflated records are larger than %d bytes; store the archive without compression", a.limits.Inflated)
		}
		if most := spool + mostRatio*int64(len(a.data)); a.inflated > most {
			return nil, false, a.fail(record, off, "the deflated records of this file of %d bytes are larger than %d bytes; if that is meant, store the archive without compression", len(a.data), most)
		}
		r, err := f.Open()
		if err != nil {
			return nil, false, a.fail(record, off, "%w", err)
		}
		defer r.Close()
		if a.inflated > cmp.Or(a.limits.Spool, spool) {
			if b, err = mapfile.Spool(r, int64(f.UncompressedSize64)); err != nil {
				return nil, false, a.fail(record, off, "cannot inflate: %w", err)
			}
		} else {
			b = make([]byte, f.UncompressedSize64)
			if _, err := io.ReadFull(r, b); err != nil {
				return nil, false, a.fail(record, off, "cannot inflate: %w", err)
			}
		}
		var more [1]byte
		if n, err := r.Read(more[:]); n != 0 || err != nil && err != io.EOF {
			return nil, false, a.fail(record, off, "cannot inflate: wrong size or checksum")
		}
		return b, true, nil
	}
	return nil, false, a.fail(record, off, "compression method %d is not supported; use store or deflate", f.Method)
}

// Text gives a small record's content and verifies its checksum: code, pickles, versions. It is read once, so no copy is kept.
func (a *Archive) Text(record string) ([]byte, error) {
	f := a.records[record]
	if f == nil {
		return nil, a.fail(record, -1, "the record is missing")
	}
	if f.UncompressedSize64 > uint64(a.limits.Text) {
		return nil, a.fail(record, -1, "%d bytes are more than %d", f.UncompressedSize64, a.limits.Text)
	}
	b, _, err := a.content(record)
	if err != nil {
		return nil, err
	}
	// writers may leave the checksum out, which reads as zero
	if f.Method == zip.Store && f.CRC32 != 0 && crc32.ChecksumIEEE(b) != f.CRC32 {
		return nil, a.fail(record, -1, "the checksum is wrong; the file is damaged")
	}
	return b, nil
}
