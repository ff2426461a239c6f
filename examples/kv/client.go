package main

import (
	"context"
	"errors"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// store is a client of the table; one goroutine at a time.
type store struct {
	nic   *verbs.RNIC
	qp    *verbs.QP
	conn  *cm.Conn
	table verbs.Remote
	bunch *verbs.MR // what is read of the table
	slot  *verbs.MR // what is put, and behind it the answer
}

func dial(ctx context.Context, addr string) (_ *store, err error) {
	s := &store{}
	if s.nic, err = verbs.Open(verbs.Config{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.nic.Close()
		}
	}()
	if s.qp, err = s.nic.CreateEndpoint(verbs.QPConfig{ReadIntoLocal: true}); err != nil { // the server need not write to the sink
		return nil, err
	}
	if s.bunch, err = s.qp.PD().Register(make([]byte, probes*slotSize), verbs.LocalWrite); err != nil {
		return nil, err
	}
	if s.slot, err = s.qp.PD().Register(make([]byte, 2*slotSize), verbs.LocalRead|verbs.LocalWrite); err != nil {
		return nil, err
	}
	if s.conn, err = cm.Dial(ctx, addr, s.qp, cm.Config{}); err != nil {
		return nil, err
	}
	s.table, err = verbs.ParseRemote(s.conn.PrivateData())
	return s, err
}

func (s *store) close() error { return errors.Join(s.conn.Close(), s.nic.Close()) }

// get is one RDMA Read: the server's program does not know of it. Nil stands for a key that is not there.
func (s *store) get(ctx context.Context, key string) ([]byte, error) {
	from := s.table
	from.TO += uint64(place(key))
	for {
		if _, err := s.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: s.bunch.SGE(0, probes*slotSize), Remote: from}); err != nil {
			return nil, err
		}
		if _, err := s.qp.SendCQ().WaitOne(ctx); err != nil {
			return nil, err
		}
		torn := false
		for i := range probes {
			there, value, ok := decode(s.bunch.Bytes()[i*slotSize:])
			if ok && there == key {
				return value, nil
			}
			torn = torn || !ok
		}
		if !torn {
			return nil, nil
		}
		// Somebody puts there at this moment: look again.
	}
}

// put sends the slot, and the server answers with "ok" or why not.
func (s *store) put(ctx context.Context, key string, value []byte) error {
	if err := encode(s.slot.Bytes(), key, value); err != nil {
		return err
	}
	if _, err := s.qp.PostRecv(verbs.Recv{SGL: s.slot.SGL(slotSize, slotSize)}); err != nil {
		return err
	}
	if _, err := s.qp.PostSend(verbs.Request{SGL: s.slot.SGL(0, slotSize)}); err != nil {
		return err
	}
	if _, err := s.qp.SendCQ().WaitOne(ctx); err != nil {
		return err
	}
	c, err := s.qp.RecvCQ().WaitOne(ctx)
	if err != nil {
		return err
	}
	if answer := string(s.slot.Bytes()[slotSize:][:c.Bytes]); answer != "ok" {
		return errors.New("the server: " + answer)
	}
	return nil
}
