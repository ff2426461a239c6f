/* Gloo, the collectives of PyTorch, over its ibverbs transport: `gloo` is four processes that add up and broadcast numbers of
   every size, compare what comes of it, and print "gloo: ok". */
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

static const int ranks = 4, rounds = 5, root = 2;
static const int sizes[] = {1, 16, 1000, 100000, 1000000};

static void must(bool holds, const char *what, int rank, size_t size)
{
	if (holds)
		return;
	fprintf(stderr, "gloo: %s is wrong at rank %d with %zu numbers\n", what, rank, size);
	_exit(1);
}

/* What a rank has at a place before a collective. */
static long has(int rank, size_t i, int round) { return (long)i * (rank + 1) + round; }

/* A collective of size numbers, and what comes of it at place i. Nothing is destroyed: Gloo wants all completions first,
   and its algorithms do not wait for the last of them. */
static void check(const char *what, int rank, size_t size, const std::function<gloo::Algorithm *(const std::vector<long *> &)> &make, const std::function<long(size_t, int)> &right)
{
	auto *numbers = new std::vector<long>(size);
	auto *algorithm = make({numbers->data()});
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < size; i++)
			(*numbers)[i] = has(rank, i, round);
		algorithm->run();
		for (size_t i = 0; i < size; i++)
			must((*numbers)[i] == right(i, round), what, rank, size);
	}
}

static long sum(size_t i, int round)
{
	long all = 0;
	for (int rank = 0; rank < ranks; rank++)
		all += has(rank, i, round);
	return all;
}

static void run(int rank, const char *folder)
{
	gloo::transport::ibverbs::attr attr = {"softrnic0", 1, 0};
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	gloo::rendezvous::FileStore store(folder);
	auto &context = *new std::shared_ptr<gloo::rendezvous::Context>(new gloo::rendezvous::Context(rank, ranks));
	context->connectFullMesh(store, device);
	for (size_t size : sizes) {
		using at = const std::vector<long *> &;
		check("a ring's sum", rank, size, [&](at p) { return new gloo::AllreduceRing<long>(context, p, size); }, sum);
		check("a chunked ring's sum", rank, size, [&](at p) { return new gloo::AllreduceRingChunked<long>(context, p, size); }, sum);
		check("a halving sum", rank, size, [&](at p) { return new gloo::AllreduceHalvingDoubling<long>(context, p, size); }, sum);
		check("a broadcast", rank, size, [&](at p) { return new gloo::BroadcastOneToAll<long>(context, p, size, root); }, [](size_t i, int round) { return has(root, i, round); });
	}
}

int main()
{
	char folder[] = "gloo.XXXXXX", good;
	int done[2];
	must(mkdtemp(folder) != nullptr && pipe(done) == 0, "a folder or a pipe", 0, 0);
	pid_t children[ranks];
	for (int rank = 0; rank < ranks; rank++)
		if ((children[rank] = fork()) == 0) {
			close(done[0]);
			run(rank, folder);
			must(write(done[1], "", 1) == 1, "a pipe", rank, 0);
			pause();
		}
	close(done[1]);
	for (int rank = 0; rank < ranks; rank++)
		must(read(done[0], &good, 1) == 1, "a process", 0, 0);
	for (pid_t child : children) /* at once: to a process of Gloo's the end of another is an error */
		kill(child, SIGKILL);
	while (wait(nullptr) > 0)
		;
	puts("gloo: ok");
}
