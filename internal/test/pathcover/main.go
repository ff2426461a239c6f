// Command pathcover counts the files and functions that one operation runs through: a Send of 64 octets, from PostSend to
// its return, and the segment of one, until a program that polls has its completion. The peer is another process, so that
// nothing of it is counted.
//
//	go run -cover -covermode=atomic -coverpkg=./... ./internal/test/pathcover [-v]
//
// With -v it lists them.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strings"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// warmUp is how many Sends come before the one that is counted, and octets how long each is.
const (
	warmUp = 16
	octets = 64
	limit  = time.Minute
)

func main() {
	verbose := flag.Bool("v", false, "list the files and functions")
	part := flag.String("part", "", "`name` of the side that this process is: send or segment; for the command itself")
	addr := flag.String("addr", "", "where the other side listens; for the command itself")
	dir := flag.String("dir", "", "where the counters go; for the command itself")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var err error
	switch *part {
	case "send":
		err = send(ctx, *addr, *dir)
	case "segment":
		err = receive(ctx, *dir)
	default:
		err = report(ctx, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pathcover:", err)
		os.Exit(1) //nolint:gocritic // the context goes with the process
	}
}

// report runs both sides, and says what each ran through.
func report(ctx context.Context, verbose bool) error {
	work, err := os.MkdirTemp("", "pathcover")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := bothSides(ctx, work); err != nil {
		return err
	}
	for _, part := range []string{"send", "segment"} {
		out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "func", "-i="+filepath.Join(work, part)).Output()
		if err != nil {
			return fmt.Errorf("go tool covdata: %w", err)
		}
		functions := reached(string(out))
		var files []string
		for _, f := range functions {
			file, _, _ := strings.Cut(f, ":")
			files = append(files, file)
		}
		slices.Sort(files)
		files = slices.Compact(files)
		fmt.Printf("%-8s %d files, %d functions\n", part, len(files), len(functions))
		if verbose {
			fmt.Println("  " + strings.Join(files, "\n  "))
			fmt.Println("    " + strings.Join(functions, "\n    "))
		}
	}
	return nil
}

// bothSides runs the receiver, and then the sender.
func bothSides(ctx context.Context, work string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	start := func(part string, args ...string) (*exec.Cmd, io.Reader, error) {
		dir := filepath.Join(work, part)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, nil, err
		}
		cmd := exec.CommandContext(ctx, self, append([]string{"-part", part, "-dir", dir}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, nil, err
		}
		err = cmd.Start()
		return cmd, out, err
	}
	receiver, out, err := start("segment")
	if err != nil {
		return err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the receiver ended: %w", err)
	}
	sender, _, err := start("send", "-addr", strings.TrimSpace(addr))
	if err != nil {
		return err
	}
	return errors.Join(sender.Wait(), receiver.Wait())
}

// reached are the functions of which a statement ran, as "file:line name", those of this command left out.
func reached(table string) (list []string) {
	const module = "github.com/softrnic/softrnic/"
	for line := range strings.Lines(table) {
		field := strings.Fields(line)
		if len(field) != 3 || field[2] == "0.0%" || field[0] == "total" || strings.Contains(field[0], "/pathcover/") {
			continue
		}
		at := strings.TrimPrefix(field[0], module)
		list = append(list, strings.TrimSuffix(at, ":")+" "+field[1])
	}
	return list
}

// node is what one side needs.
type node struct {
	nic *verbs.RNIC
	qp  *verbs.QP
	mr  *verbs.MR
}

func open() (*node, error) {
	nic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return nil, err
	}
	qp, err := nic.CreateEndpoint(verbs.QPConfig{})
	if err != nil {
		return nil, err
	}
	mr, err := qp.PD().Register(make([]byte, 2*octets), verbs.LocalRead|verbs.LocalWrite)
	return &node{nic, qp, mr}, err
}

// config is that of both sides: with CRC, as it is without a wish.
var config = cm.Config{}

// receive answers each Send but the last with one, and counts that last one.
func receive(ctx context.Context, dir string) error {
	n, err := open()
	if err != nil {
		return err
	}
	defer n.nic.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println(l.Addr())
	c, err := l.Accept()
	if err != nil {
		return err
	}
	for range warmUp + 1 {
		if err := n.post(); err != nil {
			return err
		}
	}
	req, err := cm.Await(ctx, c, config)
	if err != nil {
		return err
	}
	if _, err := req.Accept(ctx, n.qp, config); err != nil {
		return err
	}
	for range warmUp {
		if err := n.poll(ctx, n.qp.RecvCQ()); err != nil {
			return err
		}
		if err := n.send(ctx); err != nil {
			return err
		}
	}
	done := make([]verbs.Completion, 1)
	cq := n.qp.RecvCQ()
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	for cq.Poll(done) == 0 && ctx.Err() == nil { // a program that polls
	}
	if err := write(dir); err != nil {
		return err
	}
	return n.send(ctx) // the sender ends
}

// send sends, and counts the last one.
func send(ctx context.Context, addr, dir string) error {
	n, err := open()
	if err != nil {
		return err
	}
	defer n.nic.Close()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	for range warmUp + 1 {
		if err := n.post(); err != nil {
			return err
		}
	}
	if _, err := cm.Connect(ctx, c, n.qp, config); err != nil {
		return err
	}
	for range warmUp {
		if err := n.send(ctx); err != nil {
			return err
		}
		if err := n.poll(ctx, n.qp.RecvCQ()); err != nil {
			return err
		}
	}
	time.Sleep(10 * time.Millisecond) // the background poller takes over, and sleeps: nothing of it is to be counted
	list := []verbs.Request{{SGL: n.mr.SGL(0, octets)}}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if _, err := n.qp.PostSend(list...); err != nil {
		return err
	}
	if err := write(dir); err != nil {
		return err
	}
	if err := n.poll(ctx, n.qp.SendCQ()); err != nil {
		return err
	}
	return n.poll(ctx, n.qp.RecvCQ())
}

func write(dir string) error {
	return errors.Join(coverage.WriteCountersDir(dir), coverage.WriteMetaDir(dir))
}

func (n *node) post() error {
	_, err := n.qp.PostRecv(verbs.Recv{SGL: n.mr.SGL(octets, octets)})
	return err
}

func (n *node) send(ctx context.Context) error {
	if _, err := n.qp.PostSend(verbs.Request{SGL: n.mr.SGL(0, octets)}); err != nil {
		return err
	}
	return n.poll(ctx, n.qp.SendCQ())
}

func (n *node) poll(ctx context.Context, cq *verbs.CQ) error {
	done := make([]verbs.Completion, 1)
	for cq.Poll(done) == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if done[0].Status != verbs.StatusSuccess {
		return fmt.Errorf("%v: %v", done[0].Op, done[0].Status)
	}
	return nil
}
