package stress

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/droppedpeer"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// outcome is what a server does with a connection.
type outcome uint8

const (
	either  outcome = iota
	ended           // it ends it by itself
	granted         // it accepts it
)

// attacksOf are what a client may do with what an honest one says, and what becomes of it. The connection is closed behind it.
var attacksOf = []struct {
	name string
	does func(nc net.Conn, s droppedpeer.Script, r *rand.Rand) error
	then outcome
}{
	{"octets at random", func(nc net.Conn, _ droppedpeer.Script, r *rand.Rand) error { return say(nc, noise(r, 4096)) }, ended},
	{"another protocol", func(nc net.Conn, _ droppedpeer.Script, _ *rand.Rand) error {
		return say(nc, []byte("GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: a browser that asks for a page\r\n\r\n"))
	}, ended},
	{"the Request, one octet wrong", func(nc net.Conn, s droppedpeer.Script, r *rand.Rand) error {
		b := bytes.Clone(s.Request)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return say(nc, b)
	}, either},
	{"a Request that is longer than may be", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		b := append(bytes.Clone(s.Request), make([]byte, 1<<16)...)
		binary.BigEndian.PutUint16(b[18:], 0xffff) // MPA's private data; of VI a number
		binary.BigEndian.PutUint16(b[2:], 0xffff)  // VI's segment; of MPA its key
		return say(nc, b)
	}, either},
	{"the answer in place of the Request", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		b := bytes.Clone(s.Request)
		copy(b[7:], "Rep") // MPA's key
		if b[0] == 1 {     // of VI a ConnectAccept
			b[1]++
		}
		return say(nc, b)
	}, either},
	{"the Request, an octet at a time, and the answer read so", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		for i := range s.Request {
			if _, err := nc.Write(s.Request[i : i+1]); err != nil {
				return err
			}
		}
		return answered(octetwise{nc}, s)
	}, granted},
	{"the Request twice, at once", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		return say(nc, append(bytes.Clone(s.Request), s.Request...))
	}, either},
	{"octets at random behind the Request", func(nc net.Conn, s droppedpeer.Script, r *rand.Rand) error {
		return say(nc, append(bytes.Clone(s.Request), noise(r, 100<<10)...))
	}, either},
	{"octets at random behind the answer", func(nc net.Conn, s droppedpeer.Script, r *rand.Rand) error {
		if err := say(nc, s.Request); err != nil {
			return err
		}
		if err := answered(nc, s); err != nil {
			return err
		}
		return say(nc, noise(r, 100<<10))
	}, ended},
	{"a message behind the Request, before the answer", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		return say(nc, append(bytes.Clone(s.Request), s.Next...))
	}, either},
	{"half-closed before the Request", func(nc net.Conn, _ droppedpeer.Script, _ *rand.Rand) error { return half(nc) }, ended},
	{"half-closed within the Request", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		_ = say(nc, s.Request[:len(s.Request)/2])
		return half(nc)
	}, ended},
	{"half-closed behind the Request", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		_ = say(nc, s.Request)
		return half(nc)
	}, ended},
	{"half-closed behind the answer", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		_ = say(nc, s.Request)
		if err := answered(nc, s); err != nil {
			return err
		}
		return half(nc)
	}, ended},
	{"half-closed within a message", func(nc net.Conn, s droppedpeer.Script, _ *rand.Rand) error {
		_ = say(nc, s.Request)
		if err := answered(nc, s); err != nil {
			return err
		}
		_ = say(nc, s.Next[:len(s.Next)/2])
		return half(nc)
	}, ended},
}

// TestAttacks does each of the attacks with 24 connections, eight at a time, while honest clients come, which none may keep out: no
// connection stays that the server is to end, and nothing of any.
func TestAttacks(t *testing.T) {
	more := []serverOf{
		{"vipl", startVIPL}, {"a shared receive queue", startShared}, {"a program that sends", startSending},
		{"rsocket that is not read", startUnread},
	}
	for _, s := range slices.Concat(servers, more) {
		t.Run(s.name, func(t *testing.T) {
			srv := s.start(t)
			_, err := srv.connect(t.Context())
			require.NoError(t, err)
			require.NoError(t, droppedpeer.Steps[6].Run(srv.addr, srv.script)) // what is made once is there then
			for i, a := range attacksOf {
				ok := t.Run(a.name, func(t *testing.T) {
					l := leakcheck.Open(t)
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					defer cancel()
					var both sync.WaitGroup
					both.Go(func() {
						for range 8 {
							_, err := srv.connect(ctx)
							assert.NoError(t, err, "an honest client")
						}
					})
					for k := range 8 {
						both.Go(func() {
							r := rand.New(rand.NewPCG(uint64(i), uint64(k)))
							for range 3 {
								if !assert.NoError(t, attackOnce(srv, a.does, a.then, r)) {
									return
								}
							}
						})
					}
					both.Wait()
					l.Settle()
				})
				if !ok {
					return // what is left over would be counted again
				}
			}
		})
	}
}

// attackPatience is how long a server may take.
const attackPatience = 30 * time.Second

func attackOnce(srv server, does func(net.Conn, droppedpeer.Script, *rand.Rand) error, then outcome, r *rand.Rand) error {
	d := droppedpeer.Dialer(net.IPv4(127, 2, 0, 1))
	nc, err := d.Dial("tcp", srv.addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(attackPatience))
	err = does(nc, srv.script, r)
	if errors.Is(err, os.ErrDeadlineExceeded) || then == granted {
		return err
	}
	if then == either {
		return nil
	}
	if _, err = io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("after %v the server has not ended the connection", attackPatience)
	}
	return nil
}

// say writes; that the server ends the connection meanwhile is its right.
func say(nc net.Conn, b []byte) error {
	_, err := nc.Write(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// answered waits for the answer, which is to accept.
func answered(nc net.Conn, s droppedpeer.Script) error {
	accepted, err := s.Answer(nc)
	if err == nil && !accepted {
		err = errors.New("refused")
	}
	return err
}

func half(nc net.Conn) error {
	_ = nc.(*net.TCPConn).CloseWrite() // of a connection that has ended
	return nil
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// octetwise reads one octet at a time.
type octetwise struct{ net.Conn }

func (o octetwise) Read(b []byte) (int, error) { return o.Conn.Read(b[:min(1, len(b))]) }
