package inventory

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

const module = "github.com/softrnic/softrnic"

// process is what belongs to the process: goroutines that run code of this module, by number, without the caller's, and
// descriptors (on Linux), by number.
type process struct {
	goroutines  map[string]string // their stacks
	descriptors map[string]string // what they are of
}

// warm makes what Go's runtime makes once, with the first socket.
var warm = sync.OnceFunc(func() {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
	}
})

func processNow() process {
	warm()
	p := process{goroutines: map[string]string{}, descriptors: map[string]string{}}
	for _, g := range Goroutines() {
		p.goroutines[number(g)] = g
	}
	const dir = "/proc/self/fd"
	list, _ := os.ReadDir(dir) // elsewhere than on Linux there are none
	for _, e := range list {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && !strings.HasPrefix(to, "/proc/") { // the one that ReadDir has
			p.descriptors[e.Name()] = to
		}
	}
	return p
}

// beyond are the lines of what p has and before has not.
func (p process) beyond(before process) (lines []string) {
	for id, g := range p.goroutines {
		if _, there := before.goroutines[id]; !there {
			lines = append(lines, "goroutine left behind:\n"+g)
		}
	}
	for fd, of := range p.descriptors {
		if before.descriptors[fd] != of {
			lines = append(lines, fmt.Sprintf("descriptor %s left open: %s", fd, of))
		}
	}
	return lines
}

// Census is what a process holds at a moment: what there is later, and was not then, has been left by what ran in
// between.
type Census struct {
	objects map[*Object]struct{}
	process process
}

// Take takes a Census.
func Take() Census {
	c := Census{objects: map[*Object]struct{}{}, process: processNow()}
	for _, o := range all.snapshot(func(*Object) bool { return true }) {
		c.objects[o] = struct{}{}
	}
	return c
}

// Left are the lines of what is left.
func (c Census) Left() []string {
	return append(left(all.snapshot(c.lacks)), processNow().beyond(c.process)...)
}

func (c Census) lacks(o *Object) bool {
	_, there := c.objects[o]
	return !there
}

// Wait is Left as Scope.Wait has it.
func (c Census) Wait(d time.Duration) []string { return wait(d, c.Left) }

// Goroutines are the stacks of the goroutines that run code of this module, without the caller's and those of package
// testing.
func Goroutines() (list []string) {
	for i, g := range stacks() {
		if i > 0 && strings.Contains(g, module) && !strings.Contains(g, "testing.RunTests") {
			list = append(list, g)
		}
	}
	return list
}

// stacks are those of all goroutines, the caller's first.
func stacks() []string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			return strings.Split(strings.TrimSpace(string(buf[:n])), "\n\n")
		}
		buf = make([]byte, 2*len(buf))
	}
}

// caller is the number of the calling goroutine, and of the one that has started it.
func caller() (id, parent string) {
	buf := make([]byte, 64<<10)
	g := string(buf[:runtime.Stack(buf, false)])
	return number(g), starter(g)
}

// ThisGoroutine is the number of the calling goroutine.
func ThisGoroutine() string {
	id, _ := caller()
	return id
}

// mostCalls bounds what WaitsIn tells.
const mostCalls = 8

// WaitsIn says what a goroutine waits for at this moment, in the runtime's words ("chan receive"), and in which calls of
// this module, a line each, the innermost first; nothing of one that has ended.
func WaitsIn(id string) (state, calls string) {
	for _, g := range stacks() {
		if number(g) != id {
			continue
		}
		lines := strings.Split(g, "\n")
		_, state, _ = strings.Cut(lines[0], "[")
		state, _, _ = strings.Cut(state, "]")
		var list []string
		for i := 1; i+1 < len(lines) && len(list) < mostCalls; i++ {
			if call, ours := strings.CutPrefix(lines[i], module+"/"); ours {
				at, _, _ := strings.Cut(filepath.Base(strings.TrimSpace(lines[i+1])), " ")
				list = append(list, fmt.Sprintf("  %s (%s)", call[:max(strings.LastIndex(call, "("), 0)], at))
			}
		}
		return state, strings.Join(list, "\n")
	}
	return "", ""
}

// family has for each goroutine the one that has started it.
func family() map[string]string {
	of := map[string]string{}
	for _, g := range stacks() {
		of[number(g)] = starter(g)
	}
	return of
}

// number is that in the first line of a stack: "goroutine 18 [running]:".
func number(g string) string {
	_, g, _ = strings.Cut(g, "goroutine ")
	id, _, _ := strings.Cut(g, " ")
	return id
}

// starter is the number in the last lines of a stack, "created by F in goroutine 18".
func starter(g string) string {
	at := strings.LastIndex(g, "\ncreated by ")
	if at < 0 {
		return ""
	}
	line, _, _ := strings.Cut(g[at+1:], "\n")
	_, id, _ := strings.Cut(line, " in goroutine ")
	return id
}
