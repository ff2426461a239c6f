/* Tells of a socket or pipe of the engine's. */
void srn_own(int fd);
/* Tells of a completion channel of the program's. */
void srn_channel(int fd);
/* In the child of a fork, whose memory this engine is in: closes them. Async-signal-safe. */
void srn_forked(void);
/* Where a word is that is not 0 once the program may have handlers of its own for faults. */
void *srn_foreign_word(void);
