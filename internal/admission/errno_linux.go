package admission

import "syscall"

// passesHere are those that only this system has.
var passesHere = []syscall.Errno{syscall.ENONET}
