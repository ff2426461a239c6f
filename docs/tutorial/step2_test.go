package tutorial

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// Step 2: the client reads and writes the server's memory; the server's program does
// nothing meanwhile.

func offerMemory(ctx context.Context, l *cm.Listener) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return err
	}
	board := []byte("the quick brown fox")
	mr, err := qp.PD().RegisterRegion(verbs.RegionConfig{
		Memory: board,
		Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite,
		QP:     qp, // nobody else's peer may use it
	})
	if err != nil {
		return err
	}
	where, err := mr.Remote(0).AppendBinary(nil)
	if err != nil {
		return err
	}
	// The client says with an empty Send that it is done.
	if _, err := qp.PostRecv(verbs.Recv{}); err != nil {
		return err
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	conn, err := req.Accept(ctx, qp, cm.Config{PrivateData: where})
	if err != nil {
		return err
	}
	if _, err := qp.RecvCQ().WaitOne(ctx); err != nil {
		return err
	}
	fmt.Printf("the board says %q\n", board)
	return conn.Close()
}

func readAndWrite(ctx context.Context, addr string) error {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return err
	}
	// The sink of an RDMA Read needs the remote-write right: the peer's answer is
	// written there.
	sink, err := qp.PD().Register(make([]byte, 9), verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		return err
	}
	source, err := qp.PD().Register([]byte("green"), verbs.LocalRead)
	if err != nil {
		return err
	}
	conn, err := cm.Dial(ctx, addr, qp, cm.Config{})
	if err != nil {
		return err
	}
	board, err := verbs.ParseRemote(conn.PrivateData())
	if err != nil {
		return err
	}

	read := verbs.Request{Op: verbs.OpRead, Local: sink.SGE(0, 9), Remote: board}
	if _, err := qp.PostSend(read); err != nil {
		return err
	}
	if _, err := qp.SendCQ().WaitOne(ctx); err != nil {
		return err
	}
	fmt.Printf("read %q\n", sink.Bytes())

	// A Write completes when TCP has it. The Send behind it arrives behind it: when the
	// server has that, it has the Write too.
	at := verbs.Remote{STag: board.STag, TO: board.TO + 10}
	write := verbs.Request{Op: verbs.OpWrite, SGL: source.All(), Remote: at}
	if _, err := qp.PostSend(write, verbs.Request{Op: verbs.OpSend}); err != nil {
		return err
	}
	for range 2 {
		if _, err := qp.SendCQ().WaitOne(ctx); err != nil {
			return err
		}
	}
	return conn.Close()
}

func Example_oneSided() {
	both(offerMemory, readAndWrite)
	// Output:
	// read "the quick"
	// the board says "the quick green fox"
}
