package nvmeof

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// admin runs an admin command; data as in hostCall, always from the target.
func (h *Host) adminCall(ctx context.Context, name string, c command, data []byte) (completion, error) {
	return h.do(ctx, hostCall{queue: h.admin.free, command: c, name: name, data: data, fetch: true})
}

// join sends the Connect of a queue; that of the admin queue makes the controller.
func (h *Host) join(ctx context.Context, q *hostQueue) error {
	c := newFabrics(typeConnect)
	le.PutUint16(c[connectQID:], q.id)
	le.PutUint16(c[connectSQSize:], uint16(len(q.slots)))
	data := make([]byte, connectSize)
	copy(data, h.config.HostID[:])
	copy(data[connectNQN:], h.nqn)
	copy(data[connectHost:], h.config.HostNQN)
	le.PutUint16(data[connectID:], h.info.ID)
	if q.id == 0 {
		le.PutUint16(data[connectID:], anyController)
		if h.nqn != DiscoveryNQN && h.config.KeepAlive > 0 {
			c.setDW(12, uint32(h.config.KeepAlive.Milliseconds()))
		}
	}
	end, err := h.do(ctx, hostCall{queue: q.free, command: c, name: "Connect", data: data})
	var refused *CommandError
	if errors.As(err, &refused) {
		refused.Detail = connectDetail(refused.Status, end.result)
	}
	if q.id == 0 {
		h.info.ID = uint16(end.result)
	}
	return err
}

// connectDetail says which field of a Connect the target does not take (NVMe over Fabrics 1.1, 3.3).
func connectDetail(s Status, result uint64) string {
	if !s.Is(ConnectParameter) {
		return ""
	}
	switch result & (connectInData | 0xffff) {
	case connectInData | connectNQN:
		return "it has no subsystem of that NQN"
	case connectInData | connectHost:
		return "it does not take the host's NQN"
	case connectInData | connectID:
		return "it has no such controller"
	case connectQID:
		return "it has not granted the queue"
	case connectSQSize:
		return "the queue is too long: ask for a smaller Depth"
	}
	where := "command"
	if result&connectInData != 0 {
		where = "data"
	}
	return fmt.Sprintf("octet %d of the %s", result&0xffff, where)
}

func (h *Host) property(ctx context.Context, offset uint32, eight bool) (uint64, error) {
	c := newFabrics(typePropertyGet)
	if eight {
		c[40] = 1
	}
	c.setDW(11, offset)
	end, err := h.adminCall(ctx, "Property Get", c, nil)
	return end.result, err
}

func (h *Host) setProperty(ctx context.Context, offset, value uint32) error {
	c := newFabrics(typePropertySet)
	c.setDW(11, offset)
	c.setDW(12, value)
	_, err := h.adminCall(ctx, "Property Set", c, nil)
	return err
}

// enable makes the controller ready, and asks what it is. entries is how long its queues may be.
func (h *Host) enable(ctx context.Context) (entries int, err error) {
	capabilities, err := h.property(ctx, regCAP, true)
	if err != nil {
		return 0, err
	}
	if capabilities&capNVM == 0 && h.nqn != DiscoveryNQN {
		return 0, fmt.Errorf("its controller does not have the NVM command set (CAP %#x)", capabilities)
	}
	if err := h.setProperty(ctx, regCC, ccEnable|ccEntries); err != nil {
		return 0, err
	}
	limit := time.Duration(max(capabilities>>capTO&0xff, 1)) * 500 * time.Millisecond
	if err := h.status(ctx, limit, "become ready", func(v uint32) bool { return v&cstsRDY != 0 }); err != nil {
		return 0, err
	}
	page, err := h.identify(ctx, idController, 0)
	if err != nil {
		return 0, err
	}
	id := h.info.ID
	if h.info, err = parseController(page, uint(capabilities>>capMin&0xf), h.nqn == DiscoveryNQN); err != nil {
		return 0, err
	}
	if h.info.ID != id {
		return 0, fmt.Errorf("its controller is %d by Connect, and %d by Identify", id, h.info.ID)
	}
	return int(capabilities&capMQES) + 1, nil
}

// status waits until CSTS is as wanted. No event tells of it.
func (h *Host) status(ctx context.Context, limit time.Duration, what string, wanted func(uint32) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("its controller did not %s in %v", what, limit))
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		v, err := h.property(ctx, regCSTS, false)
		switch {
		case err != nil:
			return err
		case v&cstsCFS != 0:
			return fmt.Errorf("its controller has failed (CSTS %#x)", v)
		case wanted(uint32(v)):
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.gone:
			return h.Err()
		case <-time.After(pause):
		}
	}
}

// shutDown tells the controller that this is the end.
func (h *Host) shutDown(ctx context.Context) error {
	if err := h.setProperty(ctx, regCC, ccEnable|ccEntries|ccShutdown); err != nil {
		return err
	}
	return h.status(ctx, h.config.CloseTimeout, "shut down", func(v uint32) bool { return v&cstsSHST == cstsSHSTComplete })
}

// setQueues asks for the I/O queues, and settles how many there are, and how long.
func (h *Host) setQueues(ctx context.Context, entries int) error {
	c := newCommand(adminSetFeatures, 0)
	c[40] = featNumQueues
	c.setDW(11, uint32(queueCount(h.config.Queues)))
	end, err := h.adminCall(ctx, "Set Features (Number of Queues)", c, nil)
	if err != nil {
		return err
	}
	granted := min(int(end.result&0xffff), int(end.result>>16&0xffff)) + 1
	h.info.Queues = min(granted, h.config.Queues)
	h.info.Depth = min(h.config.Depth, entries-1) // the size of a queue, less one (NVM Express 1.4, 4.1)
	if h.info.Depth < 1 {
		return fmt.Errorf("its queues have %d place, want 2", entries)
	}
	return nil
}

// identify gets a page of Identify.
func (h *Host) identify(ctx context.Context, cns byte, nsid uint32) ([]byte, error) {
	c := newCommand(adminIdentify, nsid)
	c[40] = cns
	page := make([]byte, identifySize)
	_, err := h.adminCall(ctx, "Identify", c, page)
	return page, err
}

// readLog gets part of a log page, a multiple of four octets, from offset.
func (h *Host) readLog(ctx context.Context, lid byte, offset uint64, n int) ([]byte, error) {
	c := newCommand(adminGetLogPage, 0)
	dwords := uint32(n/4 - 1)
	c.setDW(10, uint32(lid)|dwords<<16)
	c.setDW(11, dwords>>16)
	c.setDW(12, uint32(offset))
	c.setDW(13, uint32(offset>>32))
	page := make([]byte, n)
	_, err := h.adminCall(ctx, "Get Log Page", c, page)
	return page, err
}
