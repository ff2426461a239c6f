//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

// pattern is what rstream and riostream send under -T v: octets that count up, from one transfer to the next.
type pattern struct{ next byte }

func (p *pattern) fill(b []byte) {
	for i := range b {
		b[i] = p.next
		p.next++
	}
}

func (p *pattern) check(b []byte) error {
	for i, v := range b {
		if v != p.next {
			return fmt.Errorf("octet %d of %d is %d, and not %d", i, len(b), v, p.next)
		}
		p.next++
	}
	return nil
}

// exchange is what rstream does: the client sends so many transfers, and gets as many, for each iteration.
type exchange struct{ size, transfers, iterations int }

func (x exchange) client(c *rsocket.Conn, _ files) error { return x.run(c, true) }
func (x exchange) server(c *rsocket.Conn, _ files) error { return x.run(c, false) }

func (x exchange) run(c io.ReadWriter, client bool) error {
	var out, in pattern
	buf := make([]byte, max(x.size, syncSize))
	send := func(n int) error {
		out.fill(buf[:n])
		_, err := c.Write(buf[:n])
		return err
	}
	receive := func(n int) error {
		if _, err := io.ReadFull(c, buf[:n]); err != nil {
			return err
		}
		return in.check(buf[:n])
	}
	turns := []func(int) error{send, receive}
	if !client {
		turns = []func(int) error{receive, send}
	}
	return x.turns(turns)
}

// plain is run without a look at the data, as rstream is without -T v.
func (x exchange) plain(c io.ReadWriter, client bool) error {
	buf := make([]byte, max(x.size, syncSize))
	turns := []func(int) error{
		func(n int) error { _, err := c.Write(buf[:n]); return err },
		func(n int) error { _, err := io.ReadFull(c, buf[:n]); return err },
	}
	if !client {
		turns[0], turns[1] = turns[1], turns[0]
	}
	return x.turns(turns)
}

// syncSize is what either sends first.
const syncSize = 16

func (x exchange) turns(turns []func(int) error) error {
	for _, turn := range turns {
		if err := turn(syncSize); err != nil {
			return err
		}
	}
	for range x.iterations {
		for _, turn := range turns {
			for range x.transfers {
				if err := turn(x.size); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// mapping is what riostream does: either writes into the other's buffer, and looks at the last octet of its own.
type mapping struct{ size, transfers, iterations int }

func (x mapping) client(c *rsocket.Conn, _ files) error { return x.run(c, true) }
func (x mapping) server(c *rsocket.Conn, _ files) error { return x.run(c, false) }

func (x mapping) run(c *rsocket.Conn, client bool) error {
	mine := make([]byte, x.size)
	mine[x.size-1] = 0xff
	if err := c.Map(mine, 0); err != nil {
		return err
	}
	hello := make([]byte, syncSize)
	turns := []func() error{
		func() error { _, err := c.Write(hello); return err },
		func() error { _, err := io.ReadFull(c, hello); return err },
	}
	if !client {
		turns[0], turns[1] = turns[1], turns[0]
	}
	for _, turn := range turns {
		if err := turn(); err != nil {
			return err
		}
	}
	var in, out pattern
	var marker byte
	shown := make([]byte, x.size)
	shown[x.size-1] = 0xff // no marker yet
	write := func() error {
		for i := range x.transfers {
			if i == x.transfers-1 {
				shown[x.size-1] = marker
				marker++
				out.fill(shown[:x.size-1])
			}
			if _, err := c.WriteAt(shown, 0); err != nil {
				return err
			}
		}
		return nil
	}
	see := func() error {
		if err := await(mine, marker); err != nil {
			return err
		}
		marker++
		return in.check(mine[:x.size-1])
	}
	for range x.iterations {
		first, second := write, see
		if !client {
			first, second = see, write
		}
		if err := errors.Join(first(), second()); err != nil {
			return err
		}
	}
	return nil
}

// await looks at the last octet of b until it is marker.
func await(b []byte, marker byte) error {
	last := len(b) - 4
	word := (*atomic.Uint32)(unsafe.Pointer(&b[last])) // sizes are multiples of four
	for end := time.Now().Add(rowTime); ; {
		if byte(word.Load()>>24) == marker {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("octet %d did not become %d", len(b)-1, marker)
		}
	}
}

// What rcopy says: version, command, length, data, id, as the host has them.
const (
	copyHeader             = 16
	copyOpen, copyClose    = 1, 2
	copyWrite, copyAnswers = 3, 0x80
	fileSize               = 3<<20 + 17
)

func copyMessage(command byte, data uint32, rest []byte) []byte {
	b := []byte{0, command}
	b = binary.LittleEndian.AppendUint16(b, uint16(copyHeader+len(rest)))
	b = binary.LittleEndian.AppendUint32(b, data)
	b = binary.LittleEndian.AppendUint64(b, 0)
	return append(b, rest...)
}

// copyServer takes a file, and holds it against the original.
func copyServer(c *rsocket.Conn, at files) error {
	var got bytes.Buffer
	for {
		head := make([]byte, copyHeader)
		if _, err := io.ReadFull(c, head); err != nil {
			return err
		}
		rest := make([]byte, int(binary.LittleEndian.Uint16(head[2:]))-copyHeader)
		if _, err := io.ReadFull(c, rest); err != nil {
			return err
		}
		if head[1] == copyWrite {
			if _, err := io.CopyN(&got, c, int64(binary.LittleEndian.Uint64(rest))); err != nil {
				return err
			}
		}
		if _, err := c.Write(copyMessage(head[1]|copyAnswers, 0, nil)); err != nil {
			return err
		}
		if head[1] == copyClose {
			return at.same("original", got.Bytes())
		}
	}
}

// files are those of a program of C.
type files struct {
	ctx context.Context
	at  place
	dir string
}

// same reports an error unless the file name holds want.
func (f files) same(name string, want []byte) error {
	got, err := f.at.sum(f.ctx, filepath.Join(f.dir, name))
	if sum := fmt.Sprintf("%x", md5.Sum(want)); err == nil && got != sum {
		err = fmt.Errorf("%s has MD5 %s, and the %d octets that went over %s", name, got, len(want), sum)
	}
	return err
}

// copyClient sends a file, and holds what the program has written against it.
func copyClient(c *rsocket.Conn, at files) error {
	body := octets(fileSize)
	for _, m := range [][]byte{
		copyMessage(copyOpen, 0o600, []byte("copy\x00\x00\x00\x00")),
		append(copyMessage(copyWrite, 0, binary.LittleEndian.AppendUint64(nil, fileSize)), body...),
		copyMessage(copyClose, 0, nil),
	} {
		if _, err := c.Write(m); err != nil {
			return err
		}
		answer := make([]byte, copyHeader)
		if _, err := io.ReadFull(c, answer); err != nil {
			return err
		}
		if answer[1] != m[1]|copyAnswers || binary.LittleEndian.Uint32(answer[4:]) != 0 {
			return fmt.Errorf("rcopy answers % x to command %d", answer, m[1])
		}
	}
	return at.same("copy", body)
}

func octets(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}
