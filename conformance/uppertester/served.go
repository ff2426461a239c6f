package uppertester

// Served is a Service as net/rpc wants it: with errors that can travel.
type Served struct{ s *Service }

// Open is Service.Open.
func (v *Served) Open(a OpenArgs, r *Opened) error { return travelling(v.s.Open(a, r)) }

// Destroy is Service.Destroy.
func (v *Served) Destroy(a int, r *None) error { return travelling(v.s.Destroy(a, r)) }

// Listen is Service.Listen.
func (v *Served) Listen(a ConnectArgs, r *Listening) error { return travelling(v.s.Listen(a, r)) }

// Dial is Service.Dial.
func (v *Served) Dial(a ConnectArgs, r *None) error { return travelling(v.s.Dial(a, r)) }

// Connected is Service.Connected.
func (v *Served) Connected(a Wait, r *Connection) error { return travelling(v.s.Connected(a, r)) }

// Ended is Service.Ended.
func (v *Served) Ended(a Wait, r *QPState) error { return travelling(v.s.Ended(a, r)) }

// Query is Service.Query.
func (v *Served) Query(a int, r *QPState) error { return travelling(v.s.Query(a, r)) }

// Modify is Service.Modify.
func (v *Served) Modify(a ModifyArgs, r *None) error { return travelling(v.s.Modify(a, r)) }

// Register is Service.Register.
func (v *Served) Register(a RegisterArgs, r *Region) error { return travelling(v.s.Register(a, r)) }

// Allocate is Service.Allocate.
func (v *Served) Allocate(a RegisterArgs, r *Region) error { return travelling(v.s.Allocate(a, r)) }

// Share is Service.Share.
func (v *Served) Share(a ShareArgs, r *Region) error { return travelling(v.s.Share(a, r)) }

// Reregister is Service.Reregister.
func (v *Served) Reregister(a ReregisterArgs, r *Region) error {
	return travelling(v.s.Reregister(a, r))
}

// Deregister is Service.Deregister.
func (v *Served) Deregister(a int, r *None) error { return travelling(v.s.Deregister(a, r)) }

// QueryRegion is Service.QueryRegion.
func (v *Served) QueryRegion(a int, r *RegionState) error { return travelling(v.s.QueryRegion(a, r)) }

// Memory is Service.Memory.
func (v *Served) Memory(a int, r *Octets) error { return travelling(v.s.Memory(a, r)) }

// Fill is Service.Fill.
func (v *Served) Fill(a FillArgs, r *None) error { return travelling(v.s.Fill(a, r)) }

// AllocateWindow is Service.AllocateWindow.
func (v *Served) AllocateWindow(a int, r *Window) error { return travelling(v.s.AllocateWindow(a, r)) }

// DeallocateWindow is Service.DeallocateWindow.
func (v *Served) DeallocateWindow(a int, r *None) error {
	return travelling(v.s.DeallocateWindow(a, r))
}

// QueryWindow is Service.QueryWindow.
func (v *Served) QueryWindow(a int, r *WindowState) error { return travelling(v.s.QueryWindow(a, r)) }

// PostSend is Service.PostSend.
func (v *Served) PostSend(a PostSendArgs, r *Posted) error { return travelling(v.s.PostSend(a, r)) }

// PostRecv is Service.PostRecv.
func (v *Served) PostRecv(a PostRecvArgs, r *Posted) error { return travelling(v.s.PostRecv(a, r)) }

// Poll is Service.Poll.
func (v *Served) Poll(a PollArgs, r *Completions) error { return travelling(v.s.Poll(a, r)) }

// Notify is Service.Notify.
func (v *Served) Notify(a NotifyArgs, r *None) error { return travelling(v.s.Notify(a, r)) }

// Notified is Service.Notified.
func (v *Served) Notified(a Wait, r *Answer) error { return travelling(v.s.Notified(a, r)) }

// Events is Service.Events.
func (v *Served) Events(a EventsArgs, r *Events) error { return travelling(v.s.Events(a, r)) }

// Ping is Service.Ping.
func (v *Served) Ping(a ConnectArgs, r *Listening) error { return travelling(v.s.Ping(a, r)) }
