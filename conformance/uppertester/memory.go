package uppertester

import (
	"fmt"

	"github.com/softrnic/softrnic/verbs"
)

// Register registers memory, and fills it with a pattern.
func (s *Service) Register(a RegisterArgs, r *Region) error {
	pd, c, err := s.region(a)
	if err != nil {
		return err
	}
	mr, err := pd.RegisterRegion(c)
	if err != nil {
		return err
	}
	return s.keep(mr, r)
}

// region is what verbs wants to know for a.
func (s *Service) region(a RegisterArgs) (*verbs.PD, verbs.RegionConfig, error) {
	c := verbs.RegionConfig{
		Memory: Pattern(a.Seed, a.Len), Access: a.Access, RemoteAccess: a.RemoteAccess,
		Key: a.Key, ZeroBased: a.ZeroBased, VA: a.VA, RemoteInvalidate: !a.NoRemoteInvalidate,
	}
	var err error
	if c.QP, err = s.scope(a.QP); err != nil {
		return nil, c, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pd, err := s.pd(a.PD)
	return pd, c, err
}

// scope is the queue pair of a number; nil for 0.
func (s *Service) scope(n int) (*verbs.QP, error) {
	if n == 0 {
		return nil, nil
	}
	e, err := s.end(n)
	if err != nil {
		return nil, err
	}
	return e.qp, nil
}

// keep gives a region a number.
func (s *Service) keep(mr *verbs.MR, r *Region) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*r = Region{Region: s.number(), STag: mr.STag(), Base: mr.Base()}
	s.regions[r.Region] = mr
	return nil
}

// Allocate allocates a region in the Invalid state.
func (s *Service) Allocate(a RegisterArgs, r *Region) error {
	pd, c, err := s.region(a)
	if err != nil {
		return err
	}
	mr, err := pd.AllocateRegion(verbs.AllocateConfig{
		RemoteAccess: c.RemoteAccess, QP: c.QP, RemoteInvalidate: c.RemoteInvalidate,
	})
	if err != nil {
		return err
	}
	return s.keep(mr, r)
}

// Share registers a region's memory once more.
func (s *Service) Share(a ShareArgs, r *Region) error {
	mr, err := s.mr(a.Region)
	if err != nil {
		return err
	}
	pd, c, err := s.region(RegisterArgs{PD: a.PD, QP: a.QP})
	if err != nil {
		return err
	}
	shared, err := mr.RegisterShared(pd, verbs.SharedConfig{
		Access: a.Access, Key: a.Key, ZeroBased: a.ZeroBased, VA: a.VA, QP: c.QP,
	})
	if err != nil {
		return err
	}
	return s.keep(shared, r)
}

// Reregister gives a region new memory and attributes.
func (s *Service) Reregister(a ReregisterArgs, r *Region) error {
	mr, err := s.mr(a.Region)
	if err != nil {
		return err
	}
	pd, c, err := s.region(a.RegisterArgs)
	if err != nil {
		return err
	}
	if err := mr.Reregister(pd, c); err != nil {
		return err
	}
	*r = Region{Region: a.Region, STag: mr.STag(), Base: mr.Base()}
	return nil
}

// Deregister deallocates a region.
func (s *Service) Deregister(region int, _ *None) error {
	mr, err := s.mr(region)
	if err != nil {
		return err
	}
	return mr.Deregister()
}

// QueryRegion is Query Memory Region.
func (s *Service) QueryRegion(region int, r *RegionState) error {
	mr, err := s.mr(region)
	if err != nil {
		return err
	}
	r.RegionAttributes, err = mr.Query()
	return err
}

// Memory is what a region's memory holds. What a message that has been processed
// placed is seen: the query comes after it.
func (s *Service) Memory(region int, r *Octets) error {
	mr, err := s.mr(region)
	if err != nil {
		return err
	}
	_, _ = mr.Query()
	r.Octets = append([]byte(nil), mr.Bytes()...)
	return nil
}

// Fill changes what a region's memory holds.
func (s *Service) Fill(a FillArgs, _ *None) error {
	mr, err := s.mr(a.Region)
	if err != nil {
		return err
	}
	if a.Off < 0 || a.Off > mr.Len() || len(a.Octets) > mr.Len()-a.Off {
		return fmt.Errorf("uppertester: octets %d to %d of a region of %d", a.Off, a.Off+len(a.Octets), mr.Len())
	}
	_, _ = mr.Query()
	copy(mr.Bytes()[a.Off:], a.Octets)
	return nil
}

// AllocateWindow allocates a window in a PD.
func (s *Service) AllocateWindow(pd int, r *Window) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.pd(pd)
	if err != nil {
		return err
	}
	w, err := p.AllocateWindow()
	if err != nil {
		return err
	}
	*r = Window{Window: s.number(), STag: w.STag(0)}
	s.windows[r.Window] = w
	return nil
}

// DeallocateWindow deallocates a window.
func (s *Service) DeallocateWindow(window int, _ *None) error {
	w, err := find(s, s.windows, window, "window")
	if err != nil {
		return err
	}
	return w.Deallocate()
}

// QueryWindow is Query Memory Window.
func (s *Service) QueryWindow(window int, r *WindowState) error {
	w, err := find(s, s.windows, window, "window")
	if err != nil {
		return err
	}
	r.WindowAttributes, err = w.Query()
	return err
}

func (s *Service) mr(n int) (*verbs.MR, error) { return find(s, s.regions, n, "region") }
