package nvmeof

import "github.com/softrnic/softrnic/verbs"

// receives are the buffers that command capsules arrive in: of one queue, or shared by all.
type receives struct {
	size int // of a capsule
	mr   *verbs.MR
	post func(...verbs.Recv) (int, error)
	srq  *verbs.SRQ
}

func newReceives(pd *verbs.PD, n, size int) (*receives, error) {
	mr, err := pd.Register(make([]byte, n*size), verbs.LocalRead|verbs.LocalWrite)
	return &receives{size: size, mr: mr}, err
}

func shareReceives(nic *verbs.RNIC, pd *verbs.PD, n, size int) (*receives, error) {
	v, err := newReceives(pd, n, size)
	if err != nil {
		return nil, err
	}
	if v.srq, err = nic.CreateSRQ(verbs.SRQConfig{PD: pd, Depth: n}); err != nil {
		return nil, err
	}
	v.post = v.srq.PostRecv
	err = v.postAll(n)
	return v, err
}

func (v *receives) postAll(n int) error {
	for i := range n {
		if err := v.repost(uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

func (v *receives) repost(id uint64) error {
	_, err := v.post(verbs.Recv{ID: id, SGL: v.mr.SGL(int(id)*v.size, v.size)})
	return err
}

func (v *receives) capsule(id uint64, n uint32) []byte { return v.mr.Bytes()[int(id)*v.size:][:n] }
