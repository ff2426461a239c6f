// Package tap writes what goes over streams to a capture, as pcapng with synthetic TCP/IP headers: also of
// streams under TLS and on pipes. rnic dump and Wireshark decode it.
//
//	tap.go     the tap, and its writer     stream.go  a stream: its startup, its two directions
//	redact.go  what is left of a segment   packet.go  blocks and headers
//
// The program's octets (payload, private, immediate and atomic data, what comes before iWARP) are zeros of the right length, with the CRC
// computed anew, unless Config.Payload asks for them; the capture says which in its comment.
package tap

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/instrument"
	"github.com/softrnic/softrnic/internal/safeopen"
)

// Config says what a Tap writes. The zero value leaves the program's octets out.
type Config struct {
	// Payload has the program's octets written.
	Payload bool
}

// Tap writes the streams of one or more RNICs (verbs.Config.Tap) or of a proxy to one capture. Of two ends of one TCP connection, it
// writes one. A writer that fails or blocks costs records, which are counted, and nothing else.
type Tap struct {
	carrier // for package verbs
	payload bool
	w       io.Writer
	file    io.Closer // nil: w is not the Tap's
	atOnce  bool      // record writes it: the process may end at any time
	records chan []byte
	wrote   chan struct{} // closed when the writer is done

	mu      sync.Mutex
	closed  bool              // guarded by mu, as below
	queued  int               // octets
	pending uint64            // records that are queued, or on their way to w
	lost    uint64            // records
	givenUp bool              // by Close: what is pending is lost, unless w takes it after all
	err     error             // the writer's first
	streams uint64            // begun
	open    map[[2]string]int // streams by their ends, as this side has them
}

// The queue to the writer: so many records, and octets.
const (
	maxRecords = 1 << 14
	maxQueued  = 16 << 20
)

// lingerTime bounds how long Close waits for the writer.
const lingerTime = 5 * time.Second

// New makes a Tap that writes to w, from a goroutine of its own until Close.
func New(w io.Writer, c Config) *Tap {
	t := newTap(w, c)
	t.begins()
	return t
}

type carrier = instrument.TapCarrier

func newTap(w io.Writer, c Config) *Tap {
	t := &Tap{
		payload: c.Payload, w: w, records: make(chan []byte, maxRecords), wrote: make(chan struct{}),
		open: map[[2]string]int{},
	}
	t.carrier = instrument.CarryTap(inside{t})
	return t
}

func (t *Tap) begins() {
	t.record(header(t.payload))
	go t.write()
}

// Create is New for a file, which it makes, readable by its owner alone. A file of this user's that is there already
// is overwritten; one of another user, and a link of another's, are refused.
func Create(path string, c Config) (*Tap, error) { return openFile(path, c, os.O_TRUNC) }

// Append is Create behind what is there: several processes may write the same capture, each a section of it. To a regular file each record
// is written at once, since such a process may end at any time.
func Append(path string, c Config) (*Tap, error) { return openFile(path, c, os.O_APPEND) }

func openFile(path string, c Config, how int) (*Tap, error) {
	f, err := safeopen.Private(path, how)
	if err != nil {
		return nil, fmt.Errorf("tap: %w", err)
	}
	info, err := f.Stat()
	regular := err == nil && info.Mode().IsRegular()
	t := newTap(f, c)
	t.file, t.atOnce = f, regular && how == os.O_APPEND
	t.begins()
	return t, nil
}

// Lost is how many records were not written, and will not be.
func (t *Tap) Lost() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missing()
}

// missing is Lost; mu is held.
func (t *Tap) missing() uint64 {
	if t.givenUp {
		return t.lost + t.pending
	}
	return t.lost
}

// record queues a block, or counts it as lost.
func (t *Tap) record(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.err != nil || t.queued+len(b) > maxQueued {
		t.lost++
		return
	}
	if t.atOnce {
		if _, t.err = t.w.Write(b); t.err != nil {
			t.lost++
		}
		return
	}
	select {
	case t.records <- b:
		t.queued += len(b)
		t.pending++
	default:
		t.lost++
	}
}

// write writes what is queued, as much at a time as there is, and behind all how many records were lost.
func (t *Tap) write() {
	defer close(t.wrote)
	var sizes []int
	for b := range t.records {
		sizes = append(sizes[:0], len(b))
	more:
		for len(b) < 1<<20 {
			select {
			case next, ok := <-t.records:
				if !ok {
					break more
				}
				sizes = append(sizes, len(next))
				b = append(b, next...)
			default:
				break more
			}
		}
		t.put(b, sizes)
	}
	t.put(statistics(time.Now(), t.Lost()), nil)
}

// put writes b, which is records of these sizes. Of a write that fails those count as written that went whole.
func (t *Tap) put(b []byte, sizes []int) {
	t.mu.Lock()
	failed := t.err != nil
	t.mu.Unlock()
	n := 0
	var err error
	if !failed {
		if n, err = t.w.Write(b); err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.pending -= uint64(len(sizes))
	for _, size := range sizes {
		t.queued -= size
		if n -= size; n < 0 {
			t.lost++
		}
	}
}

// Close ends the capture: what is queued is written, for 5 s at most, and how many records were lost. The error is the writer's
// first, or says how many records are missing. Streams that are still there go on, without a tap.
func (t *Tap) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	close(t.records)
	t.mu.Unlock()
	limit := time.NewTimer(lingerTime)
	defer limit.Stop()
	blocked := false
	select {
	case <-t.wrote:
	case <-limit.C:
		blocked = true
	}
	var err error
	if t.file != nil {
		err = t.file.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.givenUp = blocked
	lost := t.missing()
	switch {
	case blocked:
		return fmt.Errorf("tap: %d records are missing: the writer blocks", lost)
	case t.err != nil:
		return fmt.Errorf("tap: %d records are missing: %w", lost, t.err)
	case lost > 0:
		return fmt.Errorf("tap: %d records are missing: the writer was too slow", lost)
	case err != nil:
		return fmt.Errorf("tap: %w", err)
	}
	return nil
}
