package onnxfile

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
	"google.golang.org/protobuf/encoding/protowire"
)

// hashBytes is how much of a hash of the content is in the name of a data file.
const hashBytes = 8

// contentHash tells contents apart that differ by accident: two checksums of 32 bits by different polynomials, which processors compute at the
// pace of memory. A cryptographic hash would take as long as writing, and nobody gains by a collision: who can write here can replace the file.
type contentHash struct{ ieee, castagnoli uint32 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (h *contentHash) Write(p []byte) (int, error) {
	h.ieee = crc32.Update(h.ieee, crc32.IEEETable, p)
	h.castagnoli = crc32.Update(h.castagnoli, castagnoli, p)
	return len(p), nil
}

func (h *contentHash) bytes() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, h.ieee), h.castagnoli)
}

// dataName is the name of the data file of the model at path, by the hash of its content.
func dataName(path string, hash []byte) string {
	var b [hashBytes]byte
	copy(b[:], hash)
	return filepath.Base(path) + "." + hex.EncodeToString(b[:]) + ".data"
}

// DataFiles lists the data files of the model at path that Write has named, which lie in its folder; none if there is no model.
func DataFiles(path string) []string {
	m, err := mapfile.Open(path)
	if err != nil {
		return nil
	}
	defer m.Close() // was only read
	_, graph, err := split(m.Data)
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	var out []string
	// what cannot be read has no data file of ours
	_ = fields(graph, func(num protowire.Number, typ protowire.Type, field, value []byte) error {
		if num != fieldGraphInitializer || typ != protowire.BytesType {
			return nil
		}
		p, err := unmarshalTensor(value)
		if err != nil {
			return err
		}
		for _, kv := range p.ExternalData {
			if name := kv.GetValue(); kv.GetKey() == "location" && !found[name] && isDataName(path, name) {
				found[name] = true
				out = append(out, name)
			}
		}
		return nil
	})
	return out
}

// isSource reports whether the file at path is one that the module's weights lie in.
func isSource(path string, m *ssa.Module) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	for _, k := range m.Keep {
		if s, ok := k.(interface{ Info() os.FileInfo }); ok && s.Info() != nil && os.SameFile(info, s.Info()) {
			return true
		}
	}
	return false
}

func isDataName(path, name string) bool {
	rest, ok := strings.CutPrefix(name, filepath.Base(path)+".")
	rest, data := strings.CutSuffix(rest, ".data")
	hash, err := hex.DecodeString(rest)
	return ok && data && err == nil && len(hash) == hashBytes
}
