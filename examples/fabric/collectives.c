/* Collectives of MPI whose data is compared, for so many seconds: mpicc -O2 -o collectives collectives.c
 *
 * Each round is an allreduce, an alltoall, a broadcast and an allgather of data that says who has sent it, and in which
 * round. The first rank prints a line a second: a network that stalls shows as lines that say 0, or that are late. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { words = 4096 };

static int rank, ranks;

static void expect(const char *call, long round, int at, long got, long want)
{
	if (got == want)
		return;
	fprintf(stderr, "rank %d: %s of round %ld: word %d is %ld, not %ld\n", rank, call, round, at, got, want);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static long value(long round, int from, int at)
{
	return round * 1000003 + from * 4099L + at;
}

static void one(long round, long *mine, long *all)
{
	int root = (int)(round % ranks);

	for (int i = 0; i < words; i++)
		mine[i] = value(round, rank, i);
	MPI_Allreduce(mine, all, words, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < words; i++)
		expect("allreduce", round, i, all[i], ranks * value(round, 0, i) + ranks * (ranks - 1L) / 2 * 4099);

	for (int to = 0; to < ranks; to++)
		for (int i = 0; i < words / 16; i++)
			mine[to * (words / 16) + i] = value(round, rank, to * words + i);
	MPI_Alltoall(mine, words / 16, MPI_LONG, all, words / 16, MPI_LONG, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		for (int i = 0; i < words / 16; i++)
			expect("alltoall", round, i, all[from * (words / 16) + i], value(round, from, rank * words + i));

	for (int i = 0; i < words; i++)
		mine[i] = rank == root ? value(round, root, i) : -1;
	MPI_Bcast(mine, words, MPI_LONG, root, MPI_COMM_WORLD);
	for (int i = 0; i < words; i++)
		expect("bcast", round, i, mine[i], value(round, root, i));

	long word = value(round, rank, 0);
	MPI_Allgather(&word, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		expect("allgather", round, from, all[from], value(round, from, 0));
}

int main(int argc, char **argv)
{
	char host[MPI_MAX_PROCESSOR_NAME];
	int length, goes_on = 1;
	double seconds = argc > 1 ? atof(argv[1]) : 10, begin, next;
	long rounds = 0, before = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Get_processor_name(host, &length);
	int room = ranks > 16 ? ranks * (words / 16) : words;
	long *mine = malloc(sizeof *mine * room), *all = malloc(sizeof *all * room);
	if (!mine || !all)
		return 1;

	char *hosts = malloc((size_t)ranks * sizeof host);
	MPI_Gather(host, sizeof host, MPI_CHAR, hosts, sizeof host, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("%d ranks on", ranks);
		for (int i = 0; i < ranks; i++)
			printf(" %s", hosts + (size_t)i * sizeof host);
		printf("\n");
		fflush(stdout);
	}
	begin = MPI_Wtime();
	next = begin + 1;
	while (goes_on) {
		one(rounds++, mine, all);
		double now = MPI_Wtime();
		if (rank == 0 && now >= next) {
			printf("%5.1f s: %ld rounds\n", now - begin, rounds - before);
			fflush(stdout);
			before = rounds;
			next = now + 1;
		}
		goes_on = now - begin < seconds;
		MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("collectives: ok, %ld rounds, all data right\n", rounds);
	MPI_Finalize();
	free(mine);
	free(all);
	free(hosts);
	return 0;
}
