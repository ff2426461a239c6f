package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/safeopen"
)

// Writer writes records, a line of JSON each, in a goroutine of its own: Add never waits. Records that come
// faster than they are written are lost, and so are those behind an error of the file, and behind Close; Lost and Close say how many. Where
// some are missing between others, the file has a record of Kind Lost.
type Writer struct {
	queue chan Record
	done  chan error
	close func() error

	mu      sync.Mutex
	ended   bool   // the queue is closed; guarded by mu, as all below
	pending uint64 // taken and not written as yet
	lost    uint64
	unsaid  uint64 // of them, for want of room, and there is no record of it
	givenUp bool   // by Close: what is pending is lost, unless the file takes it after all
}

const (
	// queued is how many records a Writer keeps while its file is busy.
	queued = 1 << 14
	// lingerTime is how long Close waits for the file.
	lingerTime = 5 * time.Second
)

// Create makes a file of mode 0600, or empties one of this user's, and writes to it. One of another user, and a link
// of another's, are refused.
func Create(path string) (*Writer, error) { return openFile(path, os.O_TRUNC) }

// Append is Create for a file that other processes write to as well: it is added to, whole lines at a time.
func Append(path string) (*Writer, error) { return openFile(path, os.O_APPEND) }

func openFile(path string, how int) (*Writer, error) {
	f, err := safeopen.Private(path, how)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return newWriter(f, f.Close), nil
}

// NewWriter writes to w, which Close does not close.
func NewWriter(w io.Writer) *Writer { return newWriter(w, func() error { return nil }) }

func newWriter(w io.Writer, end func() error) *Writer {
	t := &Writer{queue: make(chan Record, queued), done: make(chan error, 1), close: end}
	go t.run(w)
	return t
}

// Add takes r.
func (t *Writer) Add(r Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		t.lost++
		return
	}
	if t.unsaid > 0 && t.take(t.gap(r.Time)) {
		t.unsaid = 0
	}
	if t.unsaid > 0 || !t.take(r) {
		t.lost++
		t.unsaid++
	}
}

// take queues r if there is room; mu is held.
func (t *Writer) take(r Record) bool {
	select {
	case t.queue <- r:
		t.pending++
		return true
	default:
		return false
	}
}

// gap is the record of those that are missing; mu is held.
func (t *Writer) gap(at int64) Record {
	return Record{Time: at, Kind: Lost, Name: fmt.Sprintf("%d records, which came faster than they were written", t.unsaid)}
}

// Lost is how many records were not written.
func (t *Writer) Lost() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.givenUp {
		return t.lost + t.pending
	}
	return t.lost
}

// account says that n of the records that were pending are, and that some of them are lost.
func (t *Writer) account(n, lost int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending -= uint64(n)
	t.lost += uint64(lost)
}

// Close writes what was added before it, for 5 s at most, and ends. Its error says how many records were lost.
func (t *Writer) Close() error {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return nil
	}
	t.ended = true
	close(t.queue)
	t.mu.Unlock()

	limit := time.NewTimer(lingerTime)
	defer limit.Stop()
	var err error
	select {
	case err = <-t.done:
	case <-limit.C:
		err = errors.New("trace: the file takes nothing more")
		t.mu.Lock()
		t.givenUp = true
		t.mu.Unlock()
	}
	err = errors.Join(err, t.close())
	if n := t.Lost(); n > 0 {
		err = errors.Join(err, fmt.Errorf("trace: %d records were lost", n))
	}
	return err
}

func (t *Writer) run(w io.Writer) {
	var b bytes.Buffer // of whole lines
	enc := json.NewEncoder(&b)
	var failed error
	flush := func() {
		var n int
		lines := func(b []byte) int { return bytes.Count(b, []byte{'\n'}) }
		if failed == nil && b.Len() > 0 {
			if n, failed = w.Write(b.Bytes()); failed == nil && n < b.Len() {
				failed = io.ErrShortWrite
			}
		}
		t.account(lines(b.Bytes()), lines(b.Bytes()[n:]))
		b.Reset()
	}
	put := func(r Record) {
		if err := enc.Encode(lineOf(&r)); err != nil { // nothing of it is in b
			t.account(1, 1)
			failed = cmp.Or(failed, err)
		}
	}
	for r := range t.queue {
		put(r)
		if failed != nil || b.Len() >= 1<<15 || len(t.queue) == 0 { // the queue is empty: what there is can be read
			flush()
		}
	}
	t.mu.Lock()
	last, missing := t.gap(time.Now().UnixNano()), t.unsaid > 0
	if missing {
		t.pending++
	}
	t.mu.Unlock()
	if missing {
		put(last)
	}
	flush()
	if failed != nil {
		failed = fmt.Errorf("trace: %w", failed)
	}
	t.done <- failed
}

// maxLine is how long the line of a record may be, in octets: it has some hundreds.
const maxLine = 1 << 20

// Read reads what a Writer wrote. A last line that was cut, since the program that wrote it was, ends it without an error, unless it is all there is.
func Read(r io.Reader) ([]Record, error) {
	var list []Record
	in := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return list, fmt.Errorf("trace: line %d is no record: it has more than %d octets", n, maxLine)
		}
		whole := err == nil
		if len(text) > 0 && (whole || json.Valid(text)) {
			var (
				l   line
				rec Record
			)
			bad := json.Unmarshal(text, &l)
			if bad == nil && l.Kind == 0 {
				bad = errors.New("it has no kind")
			}
			if bad == nil {
				rec, bad = l.record()
			}
			if bad != nil {
				return list, fmt.Errorf("trace: line %d is no record: %w", n, bad)
			}
			list = append(list, rec)
		}
		switch {
		case errors.Is(err, io.EOF) && len(text) > 0 && len(list) == 0:
			return nil, errors.New("trace: there is no record in it")
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return list, fmt.Errorf("trace: %w", err)
		}
	}
}
