package stats

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/verbs"
)

// Port is how the port of an RNIC is.
type Port struct {
	// Device is the name by which programs, and commands, know it.
	Device string `json:"device"`
	// State is ACTIVE, DOWN, FAILED or UNPLUGGED.
	State string `json:"state"`
	// Rate is what the program is told, as /sys has it.
	Rate string `json:"rate,omitempty"`
	// Degraded is what bounds it: a rate, a delay, a loss; empty for nothing.
	Degraded string `json:"degraded,omitempty"`
	// GID is where in its table the GID is.
	GID int `json:"gid"`
	// Rules are those of the fault plan that is carried out.
	Rules int `json:"rules"`
}

// Command is what another process wants done.
type Command struct {
	// Do is one of Commands.
	Do string `json:"do"`
	// Device is the Port's; empty: all of the process.
	Device string `json:"device,omitempty"`
	// Text is a degradation, or a fault plan; MaxText octets at most.
	Text string `json:"text,omitempty"`
}

// Commands are what a process may be told to do. docs/nic.md says what each does.
var Commands = []string{"down", "up", "degrade", "move-gid", "fatal", "unplug", "plan", "quiet"}

// Controller lets other processes of this user do something to the RNICs of this one. Its methods may be called by several
// goroutines at a time.
type Controller interface {
	// Port is how the port of an RNIC is; nil for one that is left alone.
	Port(nic *verbs.RNIC) *Port
	// Control carries out a command, and says in a clause what was done, such as "the port is down". An error is for a person.
	Control(Command) (done string, err error)
}

// MaxText bounds the text of a Command, in octets.
const MaxText = 1 << 20

// answer is what became of a Command.
type answer struct {
	Done  string `json:"done,omitempty"`
	Error string `json:"error,omitempty"`
}

// commandWait is how long a command may take to begin to come behind a Snapshot. Readers are told the end so much later, if they wait for that.
const commandWait = 300 * time.Millisecond

// obey carries out the command that a client has sent, if it has sent one, and is this user's process.
func obey(c *net.UnixConn, control Controller) {
	_ = c.SetReadDeadline(time.Now().Add(commandWait))
	in := bufio.NewReader(io.LimitReader(c, 2*MaxText))
	if _, err := in.Peek(1); err != nil {
		return // a reader
	}
	_ = c.SetDeadline(time.Now().Add(wait))
	var cmd Command
	if json.NewDecoder(in).Decode(&cmd) != nil {
		return
	}
	var a answer
	if err := ownsock.SameUser(c); err != nil {
		a.Error = "that is for processes of this user alone: " + err.Error()
	} else if a.Done, err = control.Control(cmd); err != nil {
		a.Error = err.Error()
	}
	text, _ := json.Marshal(a) // of strings
	_ = c.SetDeadline(time.Now().Add(wait))
	_, _ = c.Write(text)
}

// Order has the process that has the socket carry out cmd, and returns what was done. Errors: of the socket; of a process that takes no
// commands, or ends before it answers; the process's own.
func Order(path string, cmd Command) (string, error) {
	text, err := json.Marshal(cmd)
	if err != nil {
		return "", err
	}
	c, err := ownsock.Dial(path)
	if ownsock.Refused(err) {
		return "", fmt.Errorf("stats: the process that had %s is gone", path)
	}
	if err != nil {
		return "", fmt.Errorf("stats: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wait))
	var s Snapshot
	var a answer
	in := json.NewDecoder(&io.LimitedReader{R: c, N: most})
	sent := make(chan error, 1) // at once, since it is not waited for; and while the Snapshot comes, which may be as large
	go func() {
		_, err := c.Write(text)
		sent <- err
	}()
	if err := in.Decode(&s); err != nil {
		return "", fmt.Errorf("stats: %s: %w", path, err)
	}
	err = in.Decode(&a)
	if err == nil {
		err = <-sent
	}
	if err != nil {
		if slices.ContainsFunc(s.RNICs, func(r RNIC) bool { return r.Port != nil }) {
			return "", fmt.Errorf("stats: process %d has ended, or has closed the connection, before it answered: of what it was told, maybe; see `rnic nic ls`", s.PID)
		}
		return "", fmt.Errorf("stats: process %d takes no commands: it offers its counters alone", s.PID)
	}
	if a.Error != "" {
		return "", errors.New(a.Error)
	}
	return a.Done, nil
}
