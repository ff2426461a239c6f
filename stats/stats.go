// Package stats names what the RNICs of a process count, and offers it to other processes on a local
// socket, from which `rnic top` reads. verbs.RNIC.Stats and its kind have the numbers themselves;
// packages stats/prometheus and stats/expvars publish them where programs already look.
//
//	counters.go tables.go  the counters      stats.go   all of some RNICs at one moment
//	serve.go               the socket        folder.go  where it is
//	control.go             what other processes may do to the RNICs of one that lets them
package stats

import (
	"os"
	"path/filepath"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// Snapshot is what a process has counted. As JSON it is what the socket gives.
type Snapshot struct {
	Program string    `json:"program"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"`
	RNICs   []RNIC    `json:"rnics"`
}

// RNIC is one of them. Its counters are those of RNICCounters, and the sums of the others, with what
// has been destroyed.
type RNIC struct {
	ID string `json:"id"`
	// Name is that of its verbs.Config: for C programs the device, as libibverbs calls it. Empty: it has none.
	Name string `json:"name,omitempty"`
	// Port is how its port is, of a process that says so (Controller).
	Port *Port `json:"port,omitempty"`
	Values
	QPs  []QP    `json:"qps"`
	CQs  []Queue `json:"cqs"`
	SRQs []Queue `json:"srqs"`
}

// QP is a queue pair that there is.
type QP struct {
	ID    uint32 `json:"id"`
	State string `json:"state"`
	// Local and Remote are the addresses of the stream; empty without one.
	Local  string `json:"local,omitempty"`
	Remote string `json:"remote,omitempty"`
	Values
}

// Queue is a CQ or an S-RQ.
type Queue struct {
	ID uint32 `json:"id"`
	Values
}

// Take takes the counters of RNICs.
func Take(nics ...*verbs.RNIC) Snapshot { return take(nil, nics) }

func take(c Controller, nics []*verbs.RNIC) Snapshot {
	s := Snapshot{Program: filepath.Base(os.Args[0]), PID: os.Getpid(), Time: time.Now(), RNICs: []RNIC{}}
	for _, nic := range nics {
		r := of(nic)
		if c != nil {
			r.Port = c.Port(nic)
		}
		s.RNICs = append(s.RNICs, r)
	}
	return s
}

func of(nic *verbs.RNIC) RNIC {
	r := RNIC{QPs: []QP{}, CQs: []Queue{}, SRQs: []Queue{}}
	r.ID, r.Name = nic.ID().String(), nic.Name()
	all := nic.Stats()
	add(&r.Values, RNICCounters, &all)
	add(&r.Values, QPCounters, &all.QP)
	add(&r.Values, CQCounters, &all.CQ)
	add(&r.Values, SRQCounters, &all.SRQ)
	for _, q := range nic.QPs() {
		r.QPs = append(r.QPs, ofQP(q))
	}
	for _, c := range nic.CQs() {
		q, s := Queue{ID: uint32(c.ID())}, c.Stats()
		add(&q.Values, CQCounters, &s)
		r.CQs = append(r.CQs, q)
	}
	for _, c := range nic.SRQs() {
		q, s := Queue{ID: uint32(c.ID())}, c.Stats()
		add(&q.Values, SRQCounters, &s)
		r.SRQs = append(r.SRQs, q)
	}
	return r
}

func ofQP(q *verbs.QP) QP {
	one := QP{ID: uint32(q.ID()), State: q.State().String()}
	if a, err := q.Query(); err == nil && a.Stream != nil {
		one.Local, one.Remote = a.Stream.Conn.LocalAddr().String(), a.Stream.Conn.RemoteAddr().String()
	}
	s := q.Stats()
	add(&one.Values, QPCounters, &s)
	return one
}
