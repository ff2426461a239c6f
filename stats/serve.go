package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/verbs"
)

// wait is how long a process may take to say all, and a reader to take it: one with ten thousand queue pairs takes half a
// second, and forty times that on a machine where forty others want the processor.
const wait = 20 * time.Second

// atOnce bounds the readers. For one more the oldest goes.
const atOnce = 16

// most is how much Read takes, in octets: some times what an RNIC with all queue pairs that it may have says.
const most = 256 << 20

// Server offers counters on a socket. It changes nothing for a reader, but with a Controller what that does.
type Server struct {
	path    string
	made    os.FileInfo // the socket at path
	l       *net.UnixListener
	readers sync.WaitGroup
}

// Offer offers the counters of RNICs on a unix socket, which only this user may open: to each who connects
// a Snapshot in JSON, and the end. An empty path stands for one in Folder. The file is gone after Close.
func Offer(path string, nics func() []*verbs.RNIC) (*Server, error) {
	return OfferControl(path, nics, nil)
}

// OfferControl is Offer for a process that lets other processes of this user do something to its RNICs: behind the Snapshot a client
// may send a Command. With a nil Controller it is Offer.
func OfferControl(path string, nics func() []*verbs.RNIC, control Controller) (*Server, error) {
	if !ownsock.Supported {
		return nil, errNoSocket
	}
	if path == "" {
		var err error
		if path, err = ownPath(); err != nil {
			return nil, err
		}
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := ownsock.Listen(path)
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
	}
	s := &Server{path: path, l: l}
	if s.made, err = os.Lstat(path); err != nil {
		l.Close()
		return nil, fmt.Errorf("stats: %w", err)
	}
	s.readers.Go(func() { s.accept(&moments{nics: nics, control: control}) })
	return s, nil
}

// Path is where the socket is.
func (s *Server) Path() string { return s.path }

// Listener is the socket itself, for programs that have to know of every descriptor.
func (s *Server) Listener() *net.UnixListener { return s.l }

// Close ends the offer, and removes the socket.
func (s *Server) Close() error {
	gone := ownsock.RemoveIf(s.path, s.made)
	err := s.l.Close()
	s.readers.Wait()
	return errors.Join(err, gone)
}

func (s *Server) accept(now *moments) {
	var there []*reader // the oldest first
	for {
		c, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			for _, r := range there {
				_ = r.c.Close()
			}
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // there may be no descriptors for now
			continue
		}
		there = slices.DeleteFunc(there, (*reader).gone)
		if len(there) == atOnce {
			_ = there[0].c.Close() // its goroutine ends with the Snapshot that it waits for, as all others then
			there = there[1:]
		}
		r := &reader{c, make(chan struct{})}
		there = append(there, r)
		came := time.Now()
		s.readers.Go(func() {
			defer close(r.done)
			defer c.Close()
			now.tell(c, came) // a client that does not read gets nothing
			if now.control != nil {
				obey(c.(*net.UnixConn), now.control)
			}
		})
	}
}

// moments are Snapshots for readers, of which those that wait share one: many cost no more than some.
type moments struct {
	nics    func() []*verbs.RNIC
	control Controller // nil: none

	mu      sync.Mutex
	readers int       // guarded by mu, as all below
	begun   time.Time // when the newest was taken
	text    []byte    // it, in JSON; nil when nobody reads
}

// tell says a Snapshot that was taken after t.
func (m *moments) tell(c net.Conn, t time.Time) {
	text := m.since(t)
	defer m.done()
	_ = c.SetDeadline(time.Now().Add(wait))
	_, _ = c.Write(text)
}

// since is a Snapshot that was taken after t. Each call needs one of done.
func (m *moments) since(t time.Time) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers++
	if m.text == nil || !m.begun.After(t) {
		m.begun = time.Now()
		m.text, _ = json.Marshal(take(m.control, m.nics())) // of plain values
	}
	return m.text
}

func (m *moments) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.readers--; m.readers == 0 {
		m.text = nil
	}
}

// reader is who has connected.
type reader struct {
	c    net.Conn
	done chan struct{} // closed with c
}

func (r *reader) gone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Read asks the process that has the socket.
func Read(path string) (Snapshot, error) {
	var s Snapshot
	c, err := ownsock.Dial(path)
	if ownsock.Refused(err) {
		return s, fmt.Errorf("stats: the process that had %s is gone", path)
	}
	if err != nil {
		return s, fmt.Errorf("stats: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wait))
	if s, err = read(c, most); err != nil {
		return s, fmt.Errorf("stats: %s: %w", path, err)
	}
	return s, nil
}

// read reads a Snapshot of at most so many octets.
func read(r io.Reader, most int64) (s Snapshot, err error) {
	within := &io.LimitedReader{R: r, N: most + 1}
	if err = json.NewDecoder(within).Decode(&s); err == nil {
		return s, nil
	}
	if within.N == 0 {
		err = fmt.Errorf("more than %d MiB: no process with counters is there", most>>20)
	}
	return Snapshot{}, err
}
