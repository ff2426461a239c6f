package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// send sends a file over nc, which is closed at the end.
func send(ctx context.Context, name string, nc net.Conn) (err error) {
	defer nc.Close()
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return err
	}
	source, err := qp.PD().Register(make([]byte, blocks*(blockSize+noteSize)), verbs.LocalRead)
	if err != nil {
		return err
	}
	for range blocks { // for the blocks that come back
		if _, err := qp.PostRecv(verbs.Recv{}); err != nil {
			return err
		}
	}
	conn, err := cm.Connect(ctx, nc, qp, cm.Config{PrivateData: []byte(filepath.Base(name))})
	if no := (*cm.RejectedError)(nil); errors.As(err, &no) {
		return fmt.Errorf("the receiver refuses: %s", no.PrivateData)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Abort())
		}
	}()
	there, err := verbs.ParseRemote(conn.PrivateData())
	if err != nil {
		return err
	}
	for i, end := 0, false; !end; i++ {
		if i >= blocks { // the block was used before
			if err := back(ctx, qp); err != nil {
				return err
			}
			if _, err := qp.PostRecv(verbs.Recv{}); err != nil {
				return err
			}
		}
		block := i % blocks
		data, words := block*blockSize, blocks*blockSize+block*noteSize
		n, err := io.ReadFull(f, source.Bytes()[data:][:blockSize])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		end = n == 0
		to := there
		to.TO += uint64(data)
		writeNote(source.Bytes()[words:], block, n)
		// The message arrives behind the Write: the side that gets it finds the octets in place.
		if _, err := qp.PostSend(
			verbs.Request{Op: verbs.OpWrite, SGL: source.SGL(data, n), Remote: to, Flags: verbs.Unsignaled},
			verbs.Request{Op: verbs.OpSend, SGL: source.SGL(words, noteSize)},
		); err != nil {
			return err
		}
		if end {
			for range min(i+1, blocks) {
				if err := back(ctx, qp); err != nil {
					return fmt.Errorf("the receiver has not confirmed the end: %w", err)
				}
			}
		}
	}
	return conn.Close()
}

// back waits until a block is this side's again: it was sent, and the receiver has written it down.
func back(ctx context.Context, qp *verbs.QP) error {
	for _, cq := range []*verbs.CQ{qp.SendCQ(), qp.RecvCQ()} {
		if _, err := cq.WaitOne(ctx); err != nil {
			return err
		}
	}
	return nil
}
