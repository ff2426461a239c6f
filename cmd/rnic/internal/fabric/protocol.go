package fabric

import (
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/box"
)

// What is said at the keeper's socket, as messages of package ownsock whose bodies are JSON. A client sends one request;
// an exec has its standard descriptors before it, and signals behind it. The keeper answers once, and before that once a
// program has begun. What is too long for a message goes before its answer in parts.
const (
	msgStdin  = 'i'
	msgStdout = 'o'
	msgStderr = 'e'
	msgExec   = 'x' // execRequest
	msgSignal = 's' // a number
	msgBreak  = 'b' // words
	msgState  = 'l'
	msgDown   = 'q'
	msgPart   = 'p' // the beginning of an answer
	msgAnswer = 'r' // answer, or the rest of it
)

// execRequest asks for a program on a host.
type execRequest struct {
	Host  string   `json:"host"` // "": the first
	NIC   string   `json:"nic"`  // the only one that it is to have; "": all
	Args  []string `json:"args"`
	Shell bool     `json:"shell"` // Args are words of a shell's command, as rsh has them
	Plain bool     `json:"plain"` // without rnic run
	// Terminal says that the standard input is a terminal, and to be the program's controlling one.
	Terminal bool     `json:"terminal"`
	Flags    []string `json:"flags"` // of rnic run
	Env      []string `json:"env"`
	Dir      string   `json:"dir"`
}

// answer is the keeper's to each.
type answer struct {
	Error  string `json:"error,omitempty"`
	Begun  bool   `json:"begun,omitempty"` // the program runs: its end is another answer
	Status int    `json:"status"`          // of the program
	State  *state `json:"state,omitempty"`
}

// state is what a fabric is now.
type state struct {
	Name     string         `json:"name"`
	Began    time.Time      `json:"began"`
	Keeper   int            `json:"keeper"` // its process, where rnic fabric up ran
	In       string         `json:"in"`     // kind of namespaces
	Notes    []string       `json:"notes,omitempty"`
	Hosts    []hostState    `json:"hosts"`
	Links    []box.State    `json:"links"`
	Programs []programState `json:"programs"`
}

type hostState struct {
	Name string     `json:"name"`
	NICs []nicState `json:"nics"`
}

type nicState struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Link    int    `json:"link"` // in Links
}

type programState struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"` // in the fabric
	Command string `json:"command"`
	Ended   bool   `json:"ended"`
	Status  int    `json:"status"` // then
}

// spec is what rnic fabric up tells the keeper.
type spec struct {
	Name   string   `json:"name"`
	Dir    string   `json:"dir"` // of its files
	Text   string   `json:"text"`
	In     string   `json:"in"`
	Env    []string `json:"env"` // of what the file runs
	Cwd    string   `json:"cwd"`
	Self   string   `json:"self"` // the path of this program
	Keeper int      `json:"-"`
}

// ready is the keeper's first and last word to rnic fabric up.
type ready struct {
	Error string `json:"error,omitempty"`
	// Denied says that the system does not let it have namespaces.
	Denied bool   `json:"denied,omitempty"`
	State  *state `json:"state,omitempty"`
}

// Kinds of namespaces.
const (
	inRoot     = "network namespaces"
	inUser     = "network namespaces, of a user namespace"
	onLoopback = "no namespaces: the hosts are addresses of the loopback"
)
