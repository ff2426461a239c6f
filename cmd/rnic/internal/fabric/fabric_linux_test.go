package fabric

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/clitest"
	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/internal/test/otheruser"
	"github.com/softrnic/softrnic/rdmacore"
)

// home gives the test a folder of its own for sockets, with a short name, and ends what it leaves.
func home(t *testing.T) {
	dir, err := os.MkdirTemp("", "f")
	require.NoError(t, err)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv(placeVariable, "") // a test that runs in a fabric is for another
	t.Cleanup(func() {
		names, err := fabrics(context.Background())
		assert.NoError(t, err)
		for _, n := range names {
			assert.NoError(t, down(context.Background(), place(n)))
		}
		_ = os.RemoveAll(dir)
	})
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.fabric")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// aloneOnLoopback waits until no other fabric has the addresses of the loopback: one of another test of this machine, or one
// that is about to end.
func aloneOnLoopback(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		l, err := net.Listen("unix", loopbackName)
		return err == nil && l.Close() == nil
	}, time.Minute, 10*time.Millisecond)
}

// fabric is one that is up.
type fabric struct {
	t      *testing.T
	dir    string
	keeper int
	spaces map[string]bool // its namespaces
	ended  float64         // when the system had been up for so many seconds; 0: not yet
}

// uptime is for how many seconds the system has been up.
func uptime(t *testing.T) (seconds float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/uptime")
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &seconds)
	require.NoError(t, err)
	return seconds
}

// youngerThan reports a process that began later.
func youngerThan(pid int, seconds float64) bool {
	text, err := os.ReadFile(processFile(pid, "stat"))
	if err != nil {
		return true // it has ended
	}
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	began, _ := strconv.ParseFloat(words[22-3], 64) // proc_pid_stat(5): in hundredths
	return began/100 > seconds
}

// begun makes a fabric in namespaces, or skips the test.
func begun(t *testing.T, text string, flags ...string) *fabric {
	t.Helper()
	home(t)
	f := raised(t, text, flags...)
	if s := f.state(); s.In == onLoopback && len(flags) == 0 {
		t.Skip("this system has no network namespaces for this user: " + strings.Join(s.Notes, "; "))
	}
	return f
}

func raised(t *testing.T, text string, flags ...string) *fabric {
	t.Helper()
	if len(flags) > 0 {
		aloneOnLoopback(t)
	}
	r := rnic(t, append([]string{"up", file(t, text)}, flags...)...)
	if strings.Contains(r.Stderr, errNoLinks.Error()) && len(flags) == 0 {
		t.Skip("this system has no network namespaces for this user: " + r.Stderr)
	}
	require.Zero(t, r.Status, r.Stderr)
	require.Contains(t, r.Stdout, notTime)
	f := &fabric{t: t, dir: place("test"), spaces: map[string]bool{}}
	f.keeper = f.state().Keeper
	require.Positive(t, f.keeper)
	if f.state().In != onLoopback {
		own := spaces(os.Getpid())
		for ns := range spaces(f.keeper) {
			f.spaces[ns] = !own[ns]
		}
		for _, h := range f.state().Hosts {
			own := strings.Fields(f.sh(h.Name, "for ns in net uts mnt; do readlink /proc/self/ns/$ns; done").Stdout)
			require.Len(t, own, 3)
			for _, ns := range own {
				require.False(t, f.spaces[ns], "a host has its own")
				f.spaces[ns] = true
			}
		}
	}
	return f
}

func rnic(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t.Context(), append([]string{"fabric"}, args...)...)
}

func (f *fabric) state() *state {
	f.t.Helper()
	var s state
	r := rnic(f.t, "ls", "--json")
	require.Zero(f.t, r.Status, r.Stderr)
	clitest.Decode(f.t, r.Stdout, &s)
	return &s
}

// exec runs a program on a host, as it is.
func (f *fabric) exec(host string, args ...string) clitest.Result {
	f.t.Helper()
	return rnic(f.t, append([]string{"exec", "--plain", host, "--"}, args...)...)
}

func (f *fabric) sh(host, command string) clitest.Result {
	f.t.Helper()
	return f.exec(host, "/bin/sh", "-c", command)
}

// spaces are the namespaces of a process.
func spaces(pid int) map[string]bool {
	list := map[string]bool{}
	for _, kind := range []string{"net", "uts", "mnt", "pid", "ipc"} {
		if ns, err := os.Readlink(processFile(pid, "ns/"+kind)); err == nil {
			list[ns] = true
		}
	}
	return list
}

// left is what there still is of a fabric: processes in its namespaces or with its name, mounts and links of this host, and
// files.
func (f *fabric) left() (list []string) {
	for _, pid := range processes() {
		for ns := range spaces(pid) {
			// Numbers of namespaces are given again: a later process with one is another's.
			if f.spaces[ns] && !(f.ended > 0 && youngerThan(pid, f.ended)) {
				list = append(list, fmt.Sprintf("process %d in %s", pid, ns))
			}
		}
		env, err := os.ReadFile(processFile(pid, "environ"))
		if err == nil && bytes.Contains(env, []byte(placeVariable+"="+f.dir+"\x00")) {
			list = append(list, fmt.Sprintf("process %d of it", pid))
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil && strings.Contains(string(mounts), f.dir) {
		list = append(list, "a mount")
	}
	links, _ := net.Interfaces()
	for _, l := range links {
		if l.Name == "p0_0" || l.Name == "s0" {
			list = append(list, "the link "+l.Name)
		}
	}
	entries, _ := os.ReadDir(ownsock.Folder())
	for _, e := range entries {
		if e.Name() != "lock" {
			list = append(list, "the file "+e.Name())
		}
	}
	return list
}

// nothingLeft waits for what the kernel does behind a process that has ended.
func (f *fabric) nothingLeft() {
	f.t.Helper()
	f.ended = uptime(f.t)
	assert.Eventually(f.t, func() bool { return len(f.left()) == 0 }, 20*time.Second, 5*time.Millisecond, "%v", f.left())
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

const two = `
switch s1 s2
host h1 h2: s1 s2
host h3: s2
run h3: echo begun; exec sleep 1000
at 0s: break h2.nic1 down
at 0s: run h3: echo later
`

// TestFabric is the life of one: what hosts have, what programs get, cables that go, and an end that leaves nothing.
func TestFabric(t *testing.T) {
	f := begun(t, two)
	s := f.state()
	assert.Equal(t, "test", s.Name)
	assert.Len(t, s.Links, 5)

	t.Setenv("SOFTRNIC_ADDR", "192.0.2.1") // of the device that this test would have under rnic run
	r := f.sh("h2", `hostname; pwd; cat; echo "$SOFTRNIC_FABRIC_HOST $SOFTRNIC_ADDR" >&2; exit 7`)
	assert.Equal(t, 7, r.Status)
	here, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, "h2\n"+here+"\n", r.Stdout)
	assert.Equal(t, "h2 \n", r.Stderr)
	r = clitest.RunInput(t.Context(), "some text", "fabric", "exec", "--plain", "h2", "--", "cat")
	assert.Equal(t, "some text", r.Stdout)
	assert.Equal(t, 128+int(syscall.SIGTERM), f.sh("h1", "kill -TERM $$").Status)
	assert.Contains(t, f.exec("h1", "no-such-program").Stderr, "no-such-program: file does not exist in PATH")
	assert.Contains(t, f.exec("h9", "true").Stderr, `there is no host "h9"; there are h1, h2, h3`)
	assert.Contains(t, rnic(t, "exec", "--nic", "nic1", "h3", "--", "true").Stderr, `h3 has no NIC "nic1"; it has nic0`)
	r = rnic(t, "exec", "--rsh", "--plain", "--", "-x", "h1", `echo "a  b";`, "echo", "c")
	assert.Equal(t, "a  b\nc\n", r.Stdout, "a shell has the words")
	assert.Contains(t, f.sh("h1", "cat /etc/hosts").Stdout, "10.64.1.2 h2 h2-nic0\n10.65.1.2 h2-nic1\n")
	assert.Eventually(t, func() bool {
		said := rnic(t, "log", "h3").Stdout
		return strings.Contains(said, "h3: begun\n") && strings.Contains(said, "h3: later\n")
	}, 10*time.Second, time.Millisecond)

	// RDMA between two hosts, by the first rail; the second is out, since the file says so.
	f.serve("h1", "10.64.1.1")
	f.ping("h2", "10.64.1.1")
	assert.Equal(t, "0", strings.TrimSpace(f.exec("h2", "cat", "/sys/class/net/nic1/carrier").Stdout))
	require.Zero(t, rnic(t, "break", "h2.nic1", "mend").Status)
	f.serve("h3", "10.65.1.3")
	f.ping("h2", "10.65.1.3")
	require.Zero(t, rnic(t, "break", "h1", "h2.nic0", "down").Status)
	f.noPing("h2", "10.64.1.1")
	require.Zero(t, rnic(t, "break", "*", "up").Status)
	f.ping("h2", "10.64.1.1")
	assert.Contains(t, rnic(t, "break", "h1.nic0", "gone").Stderr, "want links and then down, up, delay TIME")
	assert.Contains(t, rnic(t, "up", file(t, two)).Stderr, "the fabric test is up already")

	r = rnic(t, "top", "--interval", "10ms")
	require.Zero(t, r.Status, r.Stderr)
	assert.Len(t, strings.Split(strings.TrimSpace(r.Stdout), "\n"), 6, r.Stdout)

	var listed []string
	for _, p := range f.state().Programs {
		listed = append(listed, fmt.Sprint(p.Host, " ", p.Command, " ", p.Ended))
	}
	assert.Contains(t, listed, "h3 echo begun; exec sleep 1000 false")
	assert.Contains(t, listed, "h3 echo later true", "what the file has run is listed when it is over")
	assert.Len(t, listed, 4, "and what exec has run is not: %v", listed)

	// What has left its parent, session and group ends too.
	require.Zero(t, f.sh("h1", "setsid sh -c 'sleep 1000 & sleep 1001' >/dev/null 2>&1 </dev/null &").Status)
	require.NotEmpty(t, f.left())
	r = rnic(t, "down")
	require.Zero(t, r.Status, r.Stderr)
	f.nothingLeft()
	assert.Contains(t, rnic(t, "down").Stderr, "no fabric is up")
}

// serve has rnic ping listen on a host for the rest of the test.
func (f *fabric) serve(host, addr string, flags ...string) {
	f.t.Helper()
	me := self(f.t)
	server := exec.Command(me, append([]string{"fabric", "exec", "--plain", host, "--", me, "ping", "-s", "-P", "-a", addr, "-p", "7174"}, flags...)...)
	said, err := server.StderrPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, server.Start())
	f.t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(f.t, err)
	require.Contains(f.t, line, "listening on")
	go func() { _, _ = io.Copy(io.Discard, said) }()
}

// ping has rnic ping go from a host to one that serves.
func (f *fabric) ping(host, addr string, flags ...string) clitest.Result {
	f.t.Helper()
	r := f.exec(host, append([]string{self(f.t), "ping", "-c", "-a", addr, "-p", "7174", "--json", "-V", "-C", "2"}, flags...)...)
	require.Zero(f.t, r.Status, r.Stdout+r.Stderr)
	return r
}

// noPing looks whether none goes there.
func (f *fabric) noPing(host, addr string) {
	f.t.Helper()
	over := []int{124, 128 + int(syscall.SIGTERM)} // of timeout(1), and of busybox's
	assert.Contains(f.t, over, f.exec(host, "timeout", "0.7", self(f.t), "ping", "-c", "-a", addr, "-p", "7174", "-C", "2").Status)
}

// TestPipesBlock: a program that reads before anything is there waits for it.
func TestPipesBlock(t *testing.T) {
	var p pipes
	for _, f := range []*os.File{p.from(strings.NewReader("x")), p.to(io.Discard)} {
		raw, err := f.SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
			require.NoError(t, err)
			assert.Zero(t, flags&unix.O_NONBLOCK)
		}))
	}
	require.NoError(t, p.err)
	p.close()
	p.drain()
}

// TestNICs: the NIC of a program that runs on a host is broken from that host, and by its name there.
func TestNICs(t *testing.T) {
	f := begun(t, "switch s1\nhost h1 h2: s1")
	f.serve("h1", "10.64.1.1", "--stats")
	f.ping("h2", "10.64.1.1")
	do := func(args ...string) string {
		t.Helper()
		r := f.exec("h1", append([]string{self(t), "nic"}, args...)...)
		require.Zero(t, r.Status, r.Stderr)
		return r.Stdout
	}
	assert.Contains(t, do("ls"), "ACTIVE")
	assert.Contains(t, do("down", "rnic0"), "/rnic0: down\n")
	f.noPing("h2", "10.64.1.1")
	do("up", "rnic0")
	f.ping("h2", "10.64.1.1")
}

// TestProperties: a link is as slow as it is said to be, by whatever makes it so.
func TestProperties(t *testing.T) {
	f := begun(t, "switch s1 s2\nhost h1: s1\nhost h2: s2\ntrunk s1 s2\nlink h1.nic0: delay 20ms\nhost m1 m2\nmesh m1 m2: delay 30ms")
	trip := func(host, addr string, flags ...string) time.Duration {
		t.Helper()
		var got struct {
			Times struct {
				Mean float64 `json:"mean"`
				Min  float64 `json:"min"`
			} `json:"round_trip_us"`
		}
		require.NoError(t, json.Unmarshal([]byte(f.ping(host, addr, flags...).Stdout), &got))
		if len(flags) > 0 {
			return time.Duration(got.Times.Mean * 1e3)
		}
		return time.Duration(got.Times.Min * 1e3)
	}
	set := func(words string) {
		t.Helper()
		r := rnic(t, append([]string{"break"}, strings.Fields(words)...)...)
		require.Zero(t, r.Status, r.Stderr)
	}
	f.serve("h1", "10.64.1.1")
	f.serve("m2", "10.128.0.3")
	assert.GreaterOrEqual(t, trip("h2", "10.64.1.1"), 2*20*time.Millisecond, "each way")
	assert.GreaterOrEqual(t, trip("m1", "10.128.0.3"), 2*30*time.Millisecond, "a pair's cable is one")
	set("h1.nic0 delay 0s")
	set("s2-s1 delay 25ms")
	set("s1-s2 loss 1%")
	set("s1-s2 loss 0%")
	assert.GreaterOrEqual(t, trip("h2", "10.64.1.1"), 2*25*time.Millisecond, "a trunk's, and now")
	set("s1-s2 mend")
	set("h1.nic0 rate 4m")
	// A burst of 64 KiB is free, each way.
	assert.GreaterOrEqual(t, trip("h2", "10.64.1.1", "-C", "10", "-S", "30000"), 40*time.Millisecond, "30,000 octets each way, of 500,000 a second")
	set("h1.nic0 loss 100%")
	f.noPing("h2", "10.64.1.1")
	for _, l := range f.state().Links {
		assert.Contains(t, []string{"plain", "tbf", "netem", "rnic"}, string(l.Medium))
	}
	require.Zero(t, rnic(t, "down").Status)
	f.nothingLeft()
}

// TestKeeperKilled: all ends with the keeper, and the next command clears its folder.
func TestKeeperKilled(t *testing.T) {
	f := begun(t, two)
	require.Zero(t, f.sh("h1", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &").Status)
	client := exec.Command(self(t), "fabric", "exec", "--plain", "h2", "--", "sleep", "1000")
	require.NoError(t, client.Start())
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(f.state().Programs, func(p programState) bool { return p.Host == "h2" && p.Command == "sleep 1000" })
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, syscall.Kill(f.keeper, syscall.SIGKILL))
	f.ended = uptime(t)
	assert.Error(t, client.Wait(), "the program is over, and did not end well")
	assert.Eventually(t, func() bool {
		left := f.left()
		return len(left) == 1 && left[0] == "the file fabric-test"
	}, 20*time.Second, 5*time.Millisecond)
	assert.Contains(t, rnic(t, "ls").Stderr, "no fabric is up")
	f.nothingLeft()
}

// TestOthersEnd: a folder that is being removed while a command looks for fabrics is none of its concern.
func TestOthersEnd(t *testing.T) {
	home(t)
	_, err := fabrics(t.Context())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	others.Go(func() {
		for ctx.Err() == nil {
			_ = os.Mkdir(place("other"), 0o700)
			_ = os.RemoveAll(place("other"))
		}
	})
	for range 2000 {
		_, err := fabrics(t.Context())
		require.NoError(t, err)
	}
}

// TestDownAndUp: down waits for the fabric that it has found, and leaves alone another one that is made in its place meanwhile.
func TestDownAndUp(t *testing.T) {
	home(t)
	dir, locked, err := claim(t.Context(), "test")
	require.NoError(t, err)
	l, err := ownsock.Listen(filepath.Join(dir, socketFile))
	require.NoError(t, err)
	next := make(chan *os.File, 1)
	go func() {
		defer close(next)
		uc, err := l.AcceptUnix()
		if !assert.NoError(t, err) {
			return
		}
		c, err := ownsock.NewConn(uc, within)
		if !assert.NoError(t, err) {
			return
		}
		defer c.Close()
		_, err = c.Read(within)
		assert.NoError(t, err)
		assert.NoError(t, os.RemoveAll(dir))
		assert.NoError(t, locked.Close())
		_, other, err := claim(t.Context(), "test")
		assert.NoError(t, err)
		next <- other
		assert.NoError(t, reply(c, answer{}))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	assert.NoError(t, down(ctx, dir), "the other one is not waited for")
	other := <-next
	own, err := holds(dir, other)
	require.NoError(t, err)
	assert.True(t, own, "it is there")
	require.NoError(t, l.Close())
	require.NoError(t, other.Close())
}

// TestUpInterrupted: what the file has begun ends with an up that is interrupted, without namespaces too.
func TestUpInterrupted(t *testing.T) {
	home(t)
	f := &fabric{t: t, dir: place("test"), spaces: map[string]bool{}}
	text := "host h1\nrun h1: setsid sleep 1000 & echo begun\n" + strings.Repeat("run h1: true\n", 4000) // which takes a while
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	aloneOnLoopback(t)
	go func() {
		_, err := up(ctx, "test", text, true)
		over <- err
	}()
	require.Eventually(t, func() bool {
		said, _ := os.ReadFile(filepath.Join(f.dir, logFolder, "h1"))
		return len(said) > 0
	}, 20*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-over, context.Canceled)
	assert.Empty(t, f.left())
}

// TestEnding: while a fabric ends, each command hears so, and a second down waits for the same end.
func TestEnding(t *testing.T) {
	f := begun(t, two)
	unlock, err := ownsock.Lock(t.Context(), patience) // so its folder stays for now
	require.NoError(t, err)
	downs := make(chan error, 2)
	go func() { downs <- down(t.Context(), f.dir) }()
	change := func() error {
		_, err := ask(t.Context(), f.dir, msgBreak, []string{"h1", "up"})
		return err
	}
	require.Eventually(t, func() bool { return change() != nil }, 10*time.Second, time.Millisecond)
	assert.EqualError(t, change(), errEnds.Error())
	req := execRequest{Host: "h1", Args: []string{"true"}, Plain: true}
	_, err = onHost(t.Context(), f.dir, &req, strings.NewReader(""), io.Discard, io.Discard)
	assert.EqualError(t, err, errEnds.Error())
	a, err := ask(t.Context(), f.dir, msgState, nil)
	require.NoError(t, err)
	assert.Equal(t, "test", a.State.Name)
	go func() { downs <- down(t.Context(), f.dir) }()
	unlock()
	assert.NoError(t, <-downs)
	assert.NoError(t, <-downs)
	f.nothingLeft()
	_, err = ask(t.Context(), f.dir, msgState, nil)
	assert.ErrorIs(t, err, errEnded)
	assert.NoError(t, down(t.Context(), f.dir), "there is nothing to end")
}

// TestPaths: names with which sockets of programs could not be made are refused, and one octet less makes them.
func TestPaths(t *testing.T) {
	home(t)
	room := longestPath - socketRoom - len(filepath.Join(place(""), runFolder, "x")) + 1 // of both names
	require.Greater(t, room, 32)
	require.Less(t, room, 32+32)
	name := strings.Repeat("f", 32)
	long := "host " + strings.Repeat("h", room-32+1)
	r := rnic(t, "up", "--loopback", "--name", name, file(t, long))
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "would have paths of 108 octets")
	assert.NoDirExists(t, place(name))

	aloneOnLoopback(t)
	host := strings.TrimPrefix(long, "host h")
	r = rnic(t, "up", "--loopback", "--name", name, file(t, "host "+host))
	require.Zero(t, r.Status, r.Stderr)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(place(name), runFolder, host)) // as a program there has it
	dir, err := ownsock.Make()
	require.NoError(t, err)
	l, err := ownsock.Listen(filepath.Join(dir, "4194304.sock"))
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// TestSignalAll: a process that is not the first of its namespace sends no signal to all others of the system.
func TestSignalAll(t *testing.T) {
	k := &keeper{boxed: true}
	assert.Eventually(t, func() bool { return !k.signalAll(0) }, 20*time.Second, 5*time.Millisecond, "it has no children but those that tests before it end")
}

// TestFolderGone: a fabric whose folder somebody has removed ends by itself, and leaves alone the next one in that place.
func TestFolderGone(t *testing.T) {
	for _, flags := range [][]string{nil, {"--loopback"}} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			f := begun(t, "switch s\nhost h1: s\nrun h1: sleep 1000", flags...)
			require.NoError(t, os.RemoveAll(f.dir))
			f.nothingLeft()

			f = raised(t, "host h1\nrun h1: sleep 1000", flags...)
			require.NoError(t, os.RemoveAll(f.dir))
			raised(t, "host h2", flags...)
			f.ended = uptime(t)
			ended := func() bool { return syscall.Kill(f.keeper, 0) != nil }
			assert.Eventually(t, ended, 20*time.Second, 5*time.Millisecond, "the keeper ends")
			assert.Equal(t, "h2", f.state().Hosts[0].Name, "and the other fabric is there")
		})
	}
}

// TestClientKilled: a program ends with the rnic fabric exec that it was started by, children and all.
func TestClientKilled(t *testing.T) {
	f := begun(t, two)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	client := exec.Command(self(t), "fabric", "exec", "--plain", "h2", "--", "sh", "-c", "sleep 1000 & echo begun; wait")
	client.Stdout = w
	require.NoError(t, client.Start())
	require.NoError(t, w.Close())
	line := make([]byte, 6)
	_, err = r.Read(line)
	require.NoError(t, err)
	require.NoError(t, client.Process.Kill())
	_ = client.Wait()
	_, err = r.Read(line) // its end closes the pipe's other end, which both had
	assert.Error(t, err)
	require.Zero(t, rnic(t, "down").Status)
	f.nothingLeft()
}

// TestUpKilled: rnic fabric up may be killed at any time: then there is the fabric, whole, or nothing.
func TestUpKilled(t *testing.T) {
	f := begun(t, two)
	require.Zero(t, rnic(t, "down").Status)
	path := file(t, two)
	for i := range 6 {
		cmd := exec.Command(self(t), "fabric", "up", path)
		require.NoError(t, cmd.Start())
		over := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(over)
		}()
		select {
		case <-time.After(time.Duration(i*15) * time.Millisecond):
			_ = cmd.Process.Kill()
			<-over
		case <-over:
		}
		// The keeper, if it is there, finds its client gone, or is whole.
		assert.Eventually(t, func() bool {
			names, err := fabrics(t.Context())
			if err != nil || len(names) == 0 {
				return err == nil
			}
			_, err = ask(t.Context(), place("test"), msgDown, nil)
			return err == nil
		}, 20*time.Second, 5*time.Millisecond)
		f.nothingLeft()
	}
}

// TestLoopback: without namespaces hosts are addresses, links are refused, and all ends the same.
func TestLoopback(t *testing.T) {
	home(t)
	r := rnic(t, "up", "--loopback", file(t, "switch s\nhost h: s\nlink h: delay 1ms"))
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, "link h.nic0: without network namespaces there are no links to slow or break")
	text := "switch s\nhost h1 h2: s\nrun h2: sleep 1000"
	f := raised(t, text, "--loopback")
	assert.Equal(t, onLoopback, f.state().In)
	assert.Equal(t, "127.64.1.2", f.state().Hosts[1].NICs[0].Address)
	assert.Equal(t, "h1\n", f.sh("h1", "echo $SOFTRNIC_FABRIC_HOST").Stdout)
	assert.Contains(t, rnic(t, "break", "h1", "down").Stderr, errNoLinks.Error())
	r = rnic(t, "up", "--loopback", "--name", "other", file(t, text))
	assert.Equal(t, 1, r.Status)
	assert.Contains(t, r.Stderr, errLoopback.Error())
	const stray = "setsid sh -c 'sleep 1000 & sleep 1001' >/dev/null 2>&1 </dev/null &"
	require.Zero(t, f.sh("h1", stray).Status)
	require.Zero(t, rnic(t, "down").Status)
	f.nothingLeft()

	f = raised(t, text, "--loopback")
	require.Zero(t, f.sh("h1", stray).Status)
	require.NoError(t, syscall.Kill(f.keeper, syscall.SIGKILL))
	assert.Eventually(t, func() bool {
		names, err := fabrics(t.Context())
		return err == nil && len(names) == 0
	}, 10*time.Second, time.Millisecond)
	f.nothingLeft()
}

// TestLarge: ls and top tell of a fabric whose state is too long for a message, and of the last programs alone that are over.
func TestLarge(t *testing.T) {
	home(t)
	const more = 20
	f := raised(t, "switch s\nhost h1..h1024: s\nrun h1: exec sleep 1000\n"+strings.Repeat("run h2: exit 3\n", more)+
		strings.Repeat("run h3: exit 3\n", keptEnds), "--loopback")
	s := f.state()
	assert.Equal(t, 1024, len(s.Hosts)) //nolint:testifylint // Len would print them all
	assert.Equal(t, "h1024.nic0", s.Links[1023].Name)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.Greater(t, len(text), ownsock.MaxBody)
	r := rnic(t, "top", "--interval", "10ms")
	require.Zero(t, r.Status, r.Stderr)
	assert.Len(t, strings.Split(strings.TrimSpace(r.Stdout), "\n"), 1025)

	require.Eventually(t, func() bool {
		s = f.state()
		return !slices.ContainsFunc(s.Programs, func(p programState) bool { return p.Command == "exit 3" && !p.Ended })
	}, 20*time.Second, 10*time.Millisecond)
	assert.Equal(t, 1+keptEnds, len(s.Programs)) //nolint:testifylint // likewise
	assert.Equal(t, "exec sleep 1000", s.Programs[0].Command, "what runs is listed")
	assert.Equal(t, "h3", s.Programs[keptEnds].Host, "the newest are there")
	old := slices.DeleteFunc(s.Programs, func(p programState) bool { return p.Host != "h2" })
	assert.Less(t, len(old), more, "and older ones have gone")
	require.Zero(t, rnic(t, "down").Status)
	f.nothingLeft()
}

// TestUpGone: a keeper whose rnic fabric up has gone before it was told that the fabric is there leaves nothing.
func TestUpGone(t *testing.T) {
	home(t)
	dir, locked, err := claim(t.Context(), "test")
	require.NoError(t, err)
	defer locked.Close()
	text, err := json.Marshal(spec{Name: "test", Dir: dir, Text: "host h", In: onLoopback, Self: self(t)})
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	aloneOnLoopback(t)
	keeper := exec.Command(self(t), "fabric", "up", "--"+keepFlag)
	keeper.Stdin, keeper.Stdout, keeper.ExtraFiles = bytes.NewReader(text), w, []*os.File{locked}
	var said bytes.Buffer
	keeper.Stderr = &said
	require.NoError(t, keeper.Start())
	require.NoError(t, w.Close())
	assert.Error(t, keeper.Wait())
	assert.Contains(t, said.String(), "rnic fabric up is gone")
	assert.NoDirExists(t, dir)
}

func TestWithoutOurs(t *testing.T) {
	assert.Empty(t, withoutOurs("/a/b/"+rdmacore.PreloadLibrary))
	assert.Equal(t, "/x.so:y.so", withoutOurs("/x.so "+rdmacore.PreloadLibrary+":y.so"))
}

// TestKeeperStands: a keeper that stands still is told of, with what to do.
func TestKeeperStands(t *testing.T) {
	f := begun(t, two)
	require.NoError(t, syscall.Kill(f.keeper, syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(processFile(f.keeper, "stat"))
		return err == nil && strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " T")
	}, 10*time.Second, time.Millisecond, "it stops in a moment")
	_, err := askWithin(t.Context(), 10*time.Millisecond, f.dir, msgState, nil)
	assert.ErrorContains(t, err, fmt.Sprintf("the keeper of the fabric has not answered for 10ms: end process %d (kill -9)", f.keeper))

	req := execRequest{Host: "h1", Args: []string{"sh", "-c", "echo ran >&2"}, Plain: true}
	var said bytes.Buffer
	_, err = onHostWithin(t.Context(), 10*time.Millisecond, f.dir, &req, strings.NewReader(""), io.Discard, &said)
	assert.ErrorContains(t, err, fmt.Sprintf("the keeper of the fabric has not answered for 10ms: end process %d (kill -9)", f.keeper))
	told, stop := context.WithCancelCause(t.Context())
	stop(io.ErrNoProgress) // as by ^C
	over := make(chan error, 1)
	go func() {
		_, err := onHost(told, f.dir, &req, strings.NewReader(""), io.Discard, io.Discard)
		over <- err
	}()
	select {
	case err := <-over:
		require.ErrorIs(t, err, io.ErrNoProgress)
	case <-time.After(answered / 2):
		assert.Fail(t, "a command whose program has not begun heeds no signal")
	}
	assert.Empty(t, said.String())

	require.NoError(t, syscall.Kill(f.keeper, syscall.SIGCONT))
	r := f.sh("h1", "sleep 0.1; exit 9")
	assert.Equal(t, 9, r.Status, "a program that has begun is waited for")
	require.Zero(t, rnic(t, "down").Status)
	f.nothingLeft()
}

// TestOthers: a process of another user neither sees nor steers it.
func TestOthers(t *testing.T) {
	f := begun(t, two)
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(f.dir)), 0o755))
	path := filepath.Join(f.dir, socketFile)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	reach := func() error { return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) }
	otheruser.Do(t, false, func() error {
		assert.ErrorIs(t, reach(), unix.EACCES)
		return nil
	})
	// Were all folders open, the keeper would still hang up.
	for _, open := range []string{filepath.Dir(f.dir), f.dir} {
		require.NoError(t, os.Chmod(open, 0o755))
	}
	require.NoError(t, os.Chmod(path, 0o666))
	otheruser.Do(t, false, reach)
	_ = unix.Send(fd, []byte{msgState, 0, 0, 0}, unix.MSG_NOSIGNAL) // it may have hung up
	n, err := unix.Read(fd, make([]byte, 64))
	assert.Zero(t, max(n, 0), "it answers with %v", err)
	require.NoError(t, os.Chmod(filepath.Dir(f.dir), 0o700))
	assert.Equal(t, "test", f.state().Name, "it is there still")
}
