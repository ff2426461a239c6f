package cm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// childEnv names the variable that makes the test binary a second process, and
// holds the address that it connects to.
const childEnv = "SOFTRNIC_CM_CHILD"

const (
	processData = 3 << 20
	processKey  = 0x5a
)

// TestTwoProcesses moves data to and fro between two processes: the child
// writes it, the parent checks it, changes it and lets the child read it back.
func TestTwoProcesses(t *testing.T) {
	h := newHost(t, verbs.QPConfig{})
	mr, err := h.qp.PD().Register(make([]byte, processData), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
	require.NoError(t, err)
	l, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	require.NoError(t, err)
	defer l.Close()
	ctx := bounded(t)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+l.Addr().String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	waited := false
	defer func() {
		if !waited {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Logf("child: %s", out.String())
		}
	}()
	h.recv(t, 1)
	h.recv(t, 2)
	r, err := l.Accept(ctx)
	require.NoError(t, err)
	at := mr.Remote(0)
	conn, err := r.Accept(ctx, h.qp, cm.Config{PrivateData: binary.BigEndian.AppendUint64(
		binary.BigEndian.AppendUint32(nil, uint32(at.STag)), at.TO)})
	require.NoError(t, err)
	h.next(t, verbs.OpRecv, 1)
	for i, v := range mr.Bytes() {
		if v != pattern(i) {
			require.Failf(t, "the child's Write", "octet %d is %#x", i, v)
		}
		mr.Bytes()[i] ^= processKey
	}
	h.send(t, verbs.Request{ID: 3})
	h.next(t, verbs.OpSend, 3)
	h.next(t, verbs.OpRecv, 2)
	<-conn.Done()
	require.NoError(t, conn.Close())
	waited = true
	require.NoError(t, cmd.Wait(), "child: %s", out.String())
}

func pattern(i int) byte { return byte(i) + byte(i>>8)*3 + byte(i>>16)*5 }

// child is the other process.
func child(addr string) {
	if err := runChild(addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runChild(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return err
	}
	defer nic.Close()
	pd, err := nic.AllocatePD()
	if err != nil {
		return err
	}
	cq, err := nic.CreateCQ(verbs.CQConfig{})
	if err != nil {
		return err
	}
	qp, err := nic.CreateQP(verbs.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
	if err != nil {
		return err
	}
	mr, err := pd.Register(make([]byte, processData), verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		return err
	}
	for i := range mr.Bytes() {
		mr.Bytes()[i] = pattern(i)
	}
	if _, err := qp.PostRecv(verbs.Recv{}); err != nil {
		return err
	}
	conn, err := cm.Dial(ctx, addr, qp, cm.Config{})
	if err != nil {
		return err
	}
	p := conn.PrivateData()
	at := verbs.Remote{STag: verbs.STag(binary.BigEndian.Uint32(p)), TO: binary.BigEndian.Uint64(p[4:])}
	step := func(n int, reqs ...verbs.Request) error {
		if _, err := qp.PostSend(reqs...); err != nil {
			return err
		}
		var c [1]verbs.Completion
		for range n {
			if _, err := cq.Wait(ctx, c[:]); err != nil {
				return err
			}
			if err := c[0].Err(); err != nil {
				return err
			}
		}
		return nil
	}
	write := verbs.Request{Op: verbs.OpWrite, SGL: mr.SGL(0, processData), Remote: at}
	if err := step(3, write, verbs.Request{}); err != nil { // and the parent's answer
		return err
	}
	if err := step(1, verbs.Request{Op: verbs.OpRead, Local: mr.SGE(0, processData), Remote: at}); err != nil {
		return err
	}
	for i, v := range mr.Bytes() {
		if v != pattern(i)^processKey {
			return fmt.Errorf("octet %d was read as %#x", i, v)
		}
	}
	if err := step(1, verbs.Request{}); err != nil {
		return err
	}
	return conn.Close()
}
