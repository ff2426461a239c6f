/* Two or more ranks hand a block round and compare it: MPI over whatever is below it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned char octet(int length, int i) { return (unsigned char)(length * 31 + i * 7); }

int main(int argc, char **argv)
{
	int rank, ranks, length, i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (length = 1; length <= 1 << 20; length *= 4) {
		unsigned char *block = malloc(length);

		for (i = 0; i < length; i++)
			block[i] = rank ? 0 : octet(length, i);
		if (rank == 0)
			MPI_Send(block, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(block, length, MPI_BYTE, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (i = 0; i < length; i++)
			if (block[i] != octet(length, i)) {
				fprintf(stderr, "ring: rank %d: octet %d of %d is wrong\n", rank, i, length);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
		if (rank != 0)
			MPI_Send(block, length, MPI_BYTE, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
		free(block);
	}
	if (rank == 0)
		printf("ring: ok\n");
	MPI_Finalize();
	return 0;
}
