//go:build linux

package main

import (
	"os"
	"strings"
	"time"
)

// row is a line of the table: a program, or a server and a client, under `rnic run`.
type row struct {
	pkg    string // Debian's package
	server string // empty: the row is one program, client
	client string
	port   int           // the server is ready when it listens on this port
	flags  string        // of `rnic run`, both sides
	plain  side          // the side that runs without `rnic run`
	user   bool          // as nobody, not as root
	stays  bool          // the server does not end by itself; it is ended after the client
	early  int           // an exit status of the client that says no more than that the peer hung up behind the last octet
	leaves string        // why the server's exit status says nothing
	before string        // a script that makes what the programs need, in their folder
	after  string        // a script that holds what they left against what is right
	want   string        // the client prints a match of this regexp; see program.prints
	checks bool          // the program compares the data itself, or after does
	limit  time.Duration // of the whole row; 0 is rowTime
	cannot string        // why it cannot work; the row is red when it does
	lossy  bool          // also over a wire that loses packets
	newer  bool          // also with newer releases of Debian
}

// side is one of a row's two programs.
type side int

const (
	neither side = iota
	server
	client
	both
)

// rowTime bounds a row.
const rowTime = 60 * time.Second

// In commands HOST is the server's address, RNIC the path of rnic, and HERE the folder of the sources of this program.
func (r row) fill(command, host string, o options) string {
	return strings.NewReplacer("HOST", host, "RNIC", o.rnic, "HERE", o.here).Replace(command)
}

// name is what -run is matched with.
func (r row) name() string {
	name := r.client
	if r.server != "" {
		name = r.server + " / " + r.client
	}
	if r.flags != "" {
		name += " [" + r.flags + "]"
	}
	if r.user {
		name += " [nobody]"
	}
	return name
}

// words is the command line of one side.
func (r row) words(s side, host, trace string, o options) []string {
	command := r.client
	if s == server {
		command = r.server
	}
	script := r.fill(command, host, o)
	if r.plain != s && r.plain != both {
		run := o.rnic + " run " + r.flags
		if trace != "" {
			run += " --strace " + trace
		}
		script = run + " -- " + script
	}
	shell := []string{"sh", "-c", "exec " + script}
	if r.user && os.Geteuid() == 0 {
		shell = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, shell...)
	}
	return shell
}
