/* Every call that libsoftrnic-preload.so stands before: CALL(name, result, parameters, why). For all that concerns
   neither a device nor its sysfs files the call goes on as it came. Of libibverbs there are ibv_open_device (verbs.c),
   ibv_qp_to_qp_ex (qp_ex.c) and ibv_rereg_mr (mr.c), and for programs that look these up dlsym and dlvsym (dl.c), which have no
   place here. */

/* A device's path gives a descriptor of ours; a path of sysfs is led to the generated tree. The 64 and the _2 (of
   _FORTIFY_SOURCE) are the same call for a program that was compiled otherwise. */
CALL(open, int, (const char *, int, ...), "opens devices, reads sysfs")
CALL(open64, int, (const char *, int, ...), "")
CALL(__open_2, int, (const char *, int), "")
CALL(__open64_2, int, (const char *, int), "")
CALL(openat, int, (int, const char *, int, ...), "libibverbs opens devices so")
CALL(openat64, int, (int, const char *, int, ...), "")
CALL(__openat_2, int, (int, const char *, int), "")
CALL(__openat64_2, int, (int, const char *, int), "")

/* A device is a character device with the number that sysfs tells: libibverbs compares. */
CALL(stat, int, (const char *, struct stat *), "libibverbs looks whether the device is there")
CALL(stat64, int, (const char *, struct stat64 *), "")
CALL(lstat, int, (const char *, struct stat *), "ls, file walkers")
CALL(lstat64, int, (const char *, struct stat64 *), "")
CALL(fstat, int, (int, struct stat *), "libibverbs compares the device number")
CALL(fstat64, int, (int, struct stat64 *), "")
CALL(fstatat, int, (int, const char *, struct stat *, int), "find, Python")
CALL(fstatat64, int, (int, const char *, struct stat64 *, int), "")
CALL(statx, int, (int, const char *__restrict, int, unsigned, struct statx *__restrict), "ls, Rust")
CALL(__xstat, int, (int, const char *, struct stat *), "stat, in programs built with a glibc before 2.33")
CALL(__xstat64, int, (int, const char *, struct stat64 *), "")
CALL(__lxstat, int, (int, const char *, struct stat *), "")
CALL(__lxstat64, int, (int, const char *, struct stat64 *), "")
CALL(__fxstat, int, (int, int, struct stat *), "")
CALL(__fxstat64, int, (int, int, struct stat64 *), "")
CALL(access, int, (const char *, int), "programs look whether there is RDMA")
CALL(faccessat, int, (int, const char *, int, int), "")

/* What happens to a descriptor. The last close of an open ends everything that was made with it. */
CALL(write, ssize_t, (int, const void *, size_t), "a command to the device")
CALL(read, ssize_t, (int, void *, size_t), "a completion channel: channel.c")
CALL(ioctl, int, (int, unsigned long, ...), "ENOTTY: libibverbs uses write for everything then")
CALL(close, int, (int), "may be the last")
CALL(fclose, int, (FILE *), "may be the last, too")
CALL(dup, int, (int), "one more descriptor of the same open")
CALL(dup2, int, (int, int), "and the target is closed")
CALL(dup3, int, (int, int, int), "")
CALL(fcntl, int, (int, int, ...), "F_DUPFD and F_DUPFD_CLOEXEC")
CALL(fcntl64, int, (int, int, ...), "")
CALL(close_range, int, (unsigned, unsigned, int), "may close devices")
CALL(closefrom, void, (int), "")

CALL(socket, int, (int, int, int), "NETLINK_RDMA fails, so that sysfs is read and not the kernel asked")

/* Programs that read sysfs themselves (pyverbs, NCCL, hwloc, ls). */
CALL(opendir, DIR *, (const char *), "lists devices")
CALL(scandir, int, (const char *__restrict, struct dirent ***__restrict, int (*)(const struct dirent *), int (*)(const struct dirent **, const struct dirent **)), "libpciaccess lists the bus so")
CALL(scandir64, int, (const char *__restrict, struct dirent64 ***__restrict, int (*)(const struct dirent64 *), int (*)(const struct dirent64 **, const struct dirent64 **)), "")
CALL(fopen, FILE *, (const char *__restrict, const char *__restrict), "reads a file")
CALL(fopen64, FILE *, (const char *__restrict, const char *__restrict), "")
CALL(readlink, ssize_t, (const char *__restrict, char *__restrict, size_t), "the device's network interface")
CALL(readlinkat, ssize_t, (int, const char *__restrict, char *__restrict, size_t), "hwloc, find, Python")
CALL(__readlink_chk, ssize_t, (const char *__restrict, char *__restrict, size_t, size_t), "of _FORTIFY_SOURCE")
CALL(__readlinkat_chk, ssize_t, (int, const char *__restrict, char *__restrict, size_t, size_t), "")
CALL(realpath, char *, (const char *__restrict, char *__restrict), "the device's place, and its PCI function")
CALL(canonicalize_file_name, char *, (const char *), "")
CALL(__realpath_chk, char *, (const char *__restrict, char *__restrict, size_t), "of _FORTIFY_SOURCE")

/* Signals: signals.c, enter.c. A name that libc lacks nobody calls. */
CALL(sigaction, int, (int, const struct sigaction *__restrict, struct sigaction *__restrict), "a handler: signals wait in the engine from now on")
CALL(signal, handler_t, (int, handler_t), "")
CALL(bsd_signal, handler_t, (int, handler_t), "")
CALL(ssignal, handler_t, (int, handler_t), "")
CALL(sysv_signal, handler_t, (int, handler_t), "")
CALL(__sysv_signal, handler_t, (int, handler_t), "")
CALL(sigset, handler_t, (int, handler_t), "")
CALL(pthread_cancel, int, (pthread_t), "a signal of libc's")
CALL(sigaltstack, int, (const stack_t *__restrict, stack_t *__restrict), "does not show ours")
