package fabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/internal/ownsock"
)

// within is how long a client may take to say what it wants.
const within = 10 * time.Second

// lastSignal is the highest of Linux.
const lastSignal = 64

// accept serves clients until l is closed.
func (k *keeper) accept(l *net.UnixListener, clients *sync.WaitGroup) {
	for {
		uc, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // there may be no descriptors for now
			continue
		}
		clients.Go(func() {
			c, err := ownsock.NewConn(uc, within) // of this user alone
			if err != nil {
				return
			}
			defer c.Close()
			k.serve(c)
		})
	}
}

// serve takes one request, and answers it.
func (k *keeper) serve(c *ownsock.Conn) {
	var files [3]*os.File
	defer func() {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	for {
		m, err := c.Read(within)
		if err != nil {
			return
		}
		if at := strings.IndexByte("ioe", m.Type); at >= 0 && m.File != nil && files[at] == nil {
			files[at] = m.File
			continue
		}
		m.Discard()
		a, err := k.answer(c, m, &files)
		if err != nil {
			a.Error = err.Error()
		}
		if err := reply(c, a); err != nil && !gone(err) {
			k.note("answering a client", err)
		}
		return
	}
}

// answer does what a message asks for.
func (k *keeper) answer(c *ownsock.Conn, m ownsock.Message, files *[3]*os.File) (a answer, err error) {
	switch m.Type {
	case msgExec:
		var req execRequest
		if err = json.Unmarshal(m.Body, &req); err == nil {
			a.Status, err = k.exec(c, &req, files)
		}
	case msgBreak:
		var words []string
		if err = json.Unmarshal(m.Body, &words); err == nil {
			err = k.breaks(words)
		}
	case msgState:
		a.State = k.state()
	case msgDown:
		k.end()
		<-k.stopped
	default:
		err = fmt.Errorf("no request is %q: are both rnic of one version?", m.Type)
	}
	return a, err
}

func (k *keeper) breaks(words []string) error {
	links, c, err := k.f.ParseBreak(words)
	for _, i := range links {
		if err == nil {
			err = k.change(i, c)
		}
	}
	return err
}

// exec runs a program until it ends, or its client does.
func (k *keeper) exec(c *ownsock.Conn, req *execRequest, files *[3]*os.File) (status int, err error) {
	for _, f := range files {
		if f == nil {
			return 0, errors.New("a standard descriptor did not come")
		}
	}
	p, err := k.start(req, *files, false)
	if err != nil {
		return 0, err
	}
	for _, f := range files { // of pipes the program alone is to have an end
		_ = f.Close()
	}
	_ = reply(c, answer{Begun: true}) // who is gone is found so below
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			m, err := c.Read(0)
			if err != nil {
				return
			}
			m.Discard()
			var n int
			if m.Type == msgSignal && json.Unmarshal(m.Body, &n) == nil && n > 0 && n <= lastSignal {
				k.signal(p, syscall.Signal(n))
			}
		}
	}()
	select {
	case <-p.done:
	case <-gone:
		k.endProgram(p)
	}
	return k.status(p), nil
}

// gone reports the error of an answer whose client is not there to hear it.
func gone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

// reply sends an answer, in parts if it is long: the state of a thousand hosts is.
func reply(c *ownsock.Conn, a answer) error {
	body, err := json.Marshal(a)
	for err == nil && len(body) > ownsock.MaxBody {
		err = c.Write(msgPart, body[:ownsock.MaxBody], nil)
		body = body[ownsock.MaxBody:]
	}
	if err == nil {
		err = c.Write(msgAnswer, body, nil)
	}
	return err
}

// say sends a request.
func say(c *ownsock.Conn, kind byte, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > ownsock.MaxBody {
		return fmt.Errorf("arguments and environment together have %d octets, and may have %d", len(body), ownsock.MaxBody)
	}
	return c.Write(kind, body, nil)
}
