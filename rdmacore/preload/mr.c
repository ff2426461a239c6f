/* ibv_rereg_mr. The device has the command; the provider that libibverbs drives it with does not send it. What libibverbs does
   around it is done here: the checks, which pages a child shares, and what the program's struct says. */
#include "verbs.h"

#include <errno.h>

/* enum ibv_rereg_mr_flags, ibv_rereg_mr_err_code */
enum { TRANSLATION = 1, PD = 2, ACCESS = 4 };
enum { ERR_INPUT = -1, ERR_DONT_FORK_NEW = -2, ERR_DO_FORK_OLD = -3, ERR_COMMAND = -4, ERR_COMMAND_AND_FORK = -5 };

/* 0, or an errno */
static int rereg(struct v_mr *mr, int flags, const struct v_pd *pd, const void *addr, size_t length, int access)
{
	struct {
		uint32_t lkey, rkey;
	} answer = {0};
	struct {
		struct v_header header;
		uint32_t mr, flags;
		uint64_t start, length, va;
		uint32_t pd, access;
	} command = {V_HEADER(REREG_MR, command, answer), mr->handle, (uint32_t)flags, (uintptr_t)addr, length, (uintptr_t)addr,
		     flags & PD ? pd->handle : 0, (uint32_t)access};
	int r = v_command(mr->context, &command, sizeof command);
	if (r == 0)
		mr->lkey = answer.lkey, mr->rkey = answer.rkey;
	return r;
}

/* ibv_dontfork_range or ibv_dofork_range, which do nothing but for programs that have called ibv_fork_init. */
static int fork_range(const char *name, const void *caller, void *addr, size_t length)
{
	int (*f)(void *, size_t) = (int (*)(void *, size_t))v_next(name, caller);
	return f ? f(addr, length) : 0;
}

EXPORT int ibv_rereg_mr(struct v_mr *mr, int flags, struct v_pd *pd, void *addr, size_t length, int access)
{
	const void *caller = __builtin_return_address(0);
	if (!v_ours(mr->context)) {
		int (*next_rereg)(struct v_mr *, int, struct v_pd *, void *, size_t, int) =
			(int (*)(struct v_mr *, int, struct v_pd *, void *, size_t, int))v_next("ibv_rereg_mr", caller);
		if (next_rereg)
			return next_rereg(mr, flags, pd, addr, length, access);
		errno = ENOSYS;
		return ERR_INPUT;
	}
	if (flags & ~(TRANSLATION | PD | ACCESS) || (flags & TRANSLATION && (!addr || !length)) || (access && !(flags & ACCESS))) {
		errno = EINVAL;
		return ERR_INPUT;
	}
	if (flags & TRANSLATION && fork_range("ibv_dontfork_range", caller, addr, length) != 0)
		return ERR_DONT_FORK_NEW;
	void *old = mr->addr;
	size_t old_length = mr->length;
	int r = rereg(mr, flags, pd, addr, length, access);
	if (r != 0) {
		int code = flags & TRANSLATION && fork_range("ibv_dofork_range", caller, addr, length) != 0 ? ERR_COMMAND_AND_FORK : ERR_COMMAND;
		errno = r;
		return code;
	}
	if (flags & PD)
		mr->pd = pd;
	if (!(flags & TRANSLATION))
		return 0;
	mr->addr = addr;
	mr->length = length;
	return fork_range("ibv_dofork_range", caller, old, old_length) != 0 ? ERR_DO_FORK_OLD : 0;
}
