package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/verbs"
)

// patience is how long a reader may take for what it is given.
const patience = time.Second

// atOnce bounds the readers.
const atOnce = 16

// Server offers counters on a socket. It changes nothing for a reader.
type Server struct {
	path    string
	made    os.FileInfo // the socket at path
	l       *net.UnixListener
	readers sync.WaitGroup
}

// Offer offers the counters of RNICs on a unix socket, which only this user may open: to each who connects
// a Snapshot in JSON, and the end. An empty path stands for one in Folder. The file is gone after Close.
func Offer(path string, nics func() []*verbs.RNIC) (*Server, error) {
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
	s.readers.Go(func() { s.accept(nics) })
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

func (s *Server) accept(nics func() []*verbs.RNIC) {
	places := make(chan struct{}, atOnce)
	for {
		c, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // there may be no descriptors for now
			continue
		}
		places <- struct{}{}
		s.readers.Go(func() {
			defer func() { c.Close(); <-places }()
			_ = c.SetDeadline(time.Now().Add(patience))
			_ = json.NewEncoder(c).Encode(Take(nics()...)) // a client that does not read gets nothing
		})
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
	_ = c.SetDeadline(time.Now().Add(patience))
	if err := json.NewDecoder(c).Decode(&s); err != nil {
		return s, fmt.Errorf("stats: %s: %w", path, err)
	}
	return s, nil
}
