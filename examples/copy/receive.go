package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

const (
	blocks    = 4 // of memory, a sender
	blockSize = 1 << 20
	noteSize  = 16 // of a message: see note
)

// receiveAll takes one file of each sender, side by side, until ctx is done.
func receiveAll(ctx context.Context, l *cm.Listener, dir *os.Root) error {
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			_ = l.Shutdown(ctx) // ctx is done: this aborts the connections that are left
			return nil
		}
		go func() {
			name := path.Base(string(req.PrivateData()))
			switch size, err := receive(ctx, req, dir, name); {
			case err != nil:
				fmt.Printf("%s: %v\n", name, err)
			default:
				fmt.Printf("%s: %d octets\n", name, size)
			}
		}()
	}
}

// receive takes one file, whose name came with the request to connect.
func receive(ctx context.Context, req *cm.Request, dir *os.Root, name string) (size int64, err error) {
	f, err := dir.Create(name)
	if err != nil {
		return 0, errors.Join(err, req.Reject([]byte("the file cannot be made")))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return 0, err
	}
	defer nic.Close()
	cq, err := nic.CreateCQ(verbs.CQConfig{Entries: 256})
	if err != nil {
		return 0, err
	}
	qp, err := nic.CreateEndpoint(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	if err != nil {
		return 0, err
	}
	sink, err := qp.PD().RegisterRegion(verbs.RegionConfig{
		Memory: make([]byte, blocks*blockSize),
		Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite,
		QP:     qp, // this sender's, and no other's
	})
	if err != nil {
		return 0, err
	}
	notes, err := qp.PD().Register(make([]byte, blocks*noteSize), verbs.LocalRead|verbs.LocalWrite)
	if err != nil {
		return 0, err
	}
	for i := range blocks {
		if _, err := qp.PostRecv(verbs.Recv{ID: uint64(i), SGL: notes.SGL(i*noteSize, noteSize)}); err != nil {
			return 0, err
		}
	}
	where, err := sink.Remote(0).MarshalBinary()
	if err != nil {
		return 0, err
	}
	conn, err := req.Accept(ctx, qp, cm.Config{PrivateData: where})
	if err != nil {
		return 0, err
	}
	for {
		c, err := cq.WaitOne(ctx)
		if err != nil {
			return size, errors.Join(err, conn.Abort())
		}
		if c.Op == verbs.OpSend {
			continue // a block has been given back
		}
		at := int(c.ID) * noteSize
		block, n := note(notes.Bytes()[at:])
		if block >= blocks || n > blockSize {
			return size, errors.Join(fmt.Errorf("the sender speaks of %d octets in block %d", n, block), conn.Abort())
		}
		// The Writes before this message have been placed: it came behind them.
		if _, err := f.Write(sink.Bytes()[block*blockSize:][:n]); err != nil {
			return size, errors.Join(err, conn.Abort())
		}
		size += int64(n)
		if _, err := qp.PostRecv(verbs.Recv{ID: c.ID, SGL: notes.SGL(at, noteSize)}); err != nil {
			return size, err
		}
		if n == 0 { // the end of the file
			err = f.Sync()
		}
		if err == nil { // blocks are given back in the order in which they came: no word is needed
			_, err = qp.PostSend(verbs.Request{})
		}
		if err != nil {
			return size, errors.Join(err, conn.Abort())
		}
		if n == 0 {
			<-conn.Done() // the sender closes
			return size, conn.Err()
		}
	}
}

// note reads a message: the number of a block, and how many octets are in it; none means the end of the file.
func note(b []byte) (block, n int) {
	return int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
}

func writeNote(b []byte, block, n int) {
	binary.BigEndian.PutUint32(b, uint32(block))
	binary.BigEndian.PutUint32(b[4:], uint32(n))
}
