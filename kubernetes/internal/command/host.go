package command

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/softrnic/softrnic/kubernetes/internal/cdifile"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// host is what this node has for containers. check and inject may be called at the same time, check by one caller.
type host struct {
	rnic string
	file *cdifile.File // nil: containers get mounts and variables

	edits atomic.Pointer[cdifile.Edits] // nil: not known yet
}

// check is nil if containers can have devices. It asks rnic once, or again when something of it was gone, and keeps the
// CDI file as it should be.
func (h *host) check(ctx context.Context) error {
	e := h.edits.Load()
	if e == nil {
		generated, err := cdifile.Generate(ctx, h.rnic)
		if err != nil {
			return err
		}
		e = &generated
	}
	if err := e.Present(); err != nil {
		h.edits.Store(nil)
		return err
	}
	if h.file != nil {
		if err := h.file.Ensure(*e); err != nil {
			return err
		}
	}
	h.edits.Store(e)
	return nil
}

// inject is what a container with these devices is given.
func (h *host) inject(ids []string) (*api.ContainerAllocateResponse, error) {
	e := h.edits.Load()
	switch {
	case e == nil:
		return nil, errors.New("what containers need is not on this host now")
	case h.file != nil:
		return h.file.Response(ids), nil
	}
	return e.Response(), nil
}
