/* The sockets and pipes of this engine, so that the child of a fork can close them: the parent's connections have to end
   with the parent. The child has no Go, so this is C. */
#include "own.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX = 1 << 16 };

/* The inode number of each descriptor when the engine made it; 0: none. A descriptor that was closed since, and whose
   number is another file's now, has another. */
static _Atomic ino_t owned[MAX];
static _Atomic int top;

static ino_t inode(int fd)
{
	struct stat st;
	/* Event and epoll descriptors share one inode: what cannot be told apart stays open, which no peer notices. */
	if (fstat(fd, &st) != 0 || !(S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)))
		return 0;
	return st.st_ino;
}

/* The completion channels of the program, by descriptor: who reads one may srn_watch. The preload library clears an
   element when it sees the descriptor closed, and one whose descriptor is another file's now. */
__attribute__((visibility("default"))) _Atomic ino_t srn_channels[MAX];

void srn_channel(int fd)
{
	if (fd >= 0 && fd < MAX)
		srn_channels[fd] = inode(fd);
}

/* The preload library sets it before the program has handlers of its own for faults. */
__attribute__((visibility("default"))) _Atomic int srn_foreign;

void *srn_foreign_word(void) { return &srn_foreign; }

void srn_own(int fd)
{
	if (fd < 0 || fd >= MAX)
		return;
	owned[fd] = inode(fd);
	for (int t = top; fd >= t && !atomic_compare_exchange_weak(&top, &t, fd + 1);)
		;
}

__attribute__((visibility("default"))) void srn_forked(void)
{
	for (int fd = 0; fd < top; fd++)
		if (owned[fd] != 0 && owned[fd] == inode(fd))
			close(fd);
}
