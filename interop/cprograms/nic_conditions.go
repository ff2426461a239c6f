//go:build linux

package main

// What a Go program says where it goes on, and where `rnic nic` refuses.
const (
	readsGoOn = "Reads go on"
	refuses   = "`rnic nic` refuses: "
	forC      = " is for C programs alone (rnic run): the RNIC of a Go program has no GIDs\n" + readsGoOn
	noHandle  = "invalid RNIC handle: it has failed: close it, and open another one"
)

// What UCX says of its NIC.
const (
	goOn       = "messages go on"
	gidChanged = "Async event on softrnic0: GID table change on port 1\n"
	timedOut   = "error handler called with status -80 (Endpoint timeout)"
	aborted    = "a post or a poll fails, which is `Fatal` to it: it aborts"
)

// conditions are what is done to a NIC.
func conditions() []condition {
	return []condition{
		{
			"down", "`down`, and `up` while the program waits",
			"PORT_ERR\nthe port is down, 100 Gb/s\na Write waits\nPORT_ACTIVE\nthe port is active, 100 Gb/s\nWrites go on",
			"a Read waits\n" + readsGoOn,
			goOn,
		},
		{
			"longer", "`down`, and `up` when it waits no longer",
			"PORT_ERR\nWrite 1: transport retry counter exceeded\nWrite 2: Work Request Flushed Error\nthe queue pair is in ERR\n" +
				"PORT_ACTIVE\nthe queue pair is in ERR",
			"a Read waits, for as long as the port is down (6s here)\n" + readsGoOn,
			timedOut,
		},
		{
			"degrade", "`degrade " + nicSlow + "`",
			"the port is active, 10 Gb/s\na Write takes longer",
			"a Read takes longer",
			goOn + "\nand are slower",
		},
		{
			"move-gid", "`move-gid`",
			"GID_CHANGE\nthe GID of index 0 is at index 1, and index 0 is empty\nWrites go on",
			refuses + "move-gid" + forC,
			gidChanged + goOn,
		},
		{
			"fatal", "`fatal`, then `quiet`",
			"DEVICE_FATAL\nibv_post_send 1: Input/output error\nibv_alloc_pd: Input/output error\nibv_open_device: succeeds\n" +
				"its ibv_alloc_pd: Input/output error\nafter `quiet` ibv_alloc_pd: Input/output error",
			"the event RNIC Catastrophic Failure\nthe stream ends: RNIC catastrophic failure\nPostSend: " + noHandle + "\nAllocatePD: " + noHandle,
			aborted,
		},
		{
			"unplug", "`unplug`, then `quiet`",
			"DEVICE_FATAL\nibv_post_send 1: Input/output error\nibv_alloc_pd: Input/output error\nibv_open_device: No such file or directory\n" +
				"after `quiet` ibv_alloc_pd: Input/output error\nafter `quiet` ibv_open_device: succeeds\nafter `quiet` its ibv_alloc_pd: succeeds",
			"the event RNIC Catastrophic Failure\nthe stream ends: RNIC catastrophic failure\nPostSend: " + noHandle + "\nAllocatePD: " + noHandle +
				"\nOpen: insufficient resources to complete request: the RNIC is unplugged: plug it in: Injector.Plug, or rnic nic quiet\nafter `quiet` AllocatePD: " + noHandle +
				"\nafter `quiet` Open: succeeds",
			aborted,
		},
		{
			"plan.verb", "`plan`: `verb reg_mr 1: errno ENOMEM`, `completion 3: status RETRY_EXC_ERR`",
			"ibv_reg_mr: Cannot allocate memory\nWrite 3: transport retry counter exceeded\nthe queue pair is in ERR",
			refuses + "fault plan: line 1: verb reg_mr 1: errno ENOMEM: that is of C programs alone, by the names of libibverbs (rnic run): " +
				"a Go program says open, registration, post or completion, and has no names of devices\n" + readsGoOn,
			timedOut,
		},
		{
			"plan.post", "`plan`: `post 3: fail`",
			"ibv_post_send 3: Cannot allocate memory\nWrites go on",
			"PostSend 3: too many work requests posted: by the fault plan, line 1: post 3: fail\n" + readsGoOn,
			aborted,
		},
		{
			"quiet", "`quiet`, behind `down`, `degrade 10g 5s`, `move-gid` and `plan`",
			"PORT_ACTIVE\nGID_CHANGE\nthe port is active, 100 Gb/s\nthe GID is at index 0\nibv_reg_mr: succeeds\nWrites go on",
			readsGoOn,
			gidChanged + gidChanged + goOn,
		},
	}
}
