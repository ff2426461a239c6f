package nvmeof

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// blockSize is the logical block of every namespace, in octets.
const (
	blockShift = 9
	blockSize  = 1 << blockShift
)

// Disk is what a namespace keeps its blocks in. Its methods are called from any goroutine, within Size only; a Disk keeps
// single calls apart or not, as disks do.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	Size() int64 // octets; what is behind the last whole block of 512 is not shown
	// Sync returns when what WriteAt and Zero have finished with survives the machine.
	Sync() error
	// Zero makes n octets from off zero; with deallocate it gives their storage back where it can.
	Zero(off, n int64, deallocate bool) error
	Close() error
}

// Memory returns a Disk of size octets in memory.
func Memory(size int64) Disk { return &memory{b: make([]byte, size)} }

type memory struct {
	mu sync.RWMutex
	b  []byte
}

func (m *memory) Size() int64  { return int64(len(m.b)) }
func (m *memory) Sync() error  { return nil }
func (m *memory) Close() error { return nil }

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return copy(p, m.b[off:]), nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copy(m.b[off:], p), nil
}

func (m *memory) Zero(off, n int64, _ bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.b[off : off+n])
	return nil
}

// OpenFile opens a file as a Disk of the size that it has.
func OpenFile(name string) (Disk, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	i, err := f.Stat()
	if err == nil && !i.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file; give a disk image", name)
	}
	if err == nil && i.Size() < blockSize {
		err = fmt.Errorf("%s has %d octets, less than a block of %d; make it longer first, with truncate -s", name, i.Size(), blockSize)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &file{File: f, size: i.Size()}, nil
}

var zeroes [64 << 10]byte

type file struct {
	*os.File
	size int64
}

func (f *file) Size() int64 { return f.size }
func (f *file) Sync() error { return syncData(f.File) }

func (f *file) Zero(off, n int64, deallocate bool) error {
	if deallocate && punch(f.File, off, n) == nil {
		return nil
	}
	for n > 0 {
		k := min(n, int64(len(zeroes)))
		if _, err := f.WriteAt(zeroes[:k], off); err != nil {
			return err
		}
		off, n = off+k, n-k
	}
	return nil
}
