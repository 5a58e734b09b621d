/* Rounds of computing, an exchange of bytes with a neighbour, and a sum over all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double compute(int turns) {
  double x = 1;
  for (int i = 0; i < turns; ++i) x = x * 1.0000001 + 1e-9;
  return x;
}

int main(int argc, char **argv) {
  int rank, ranks, rounds = argc > 1 ? atoi(argv[1]) : 100, turns = argc > 2 ? atoi(argv[2]) : 0;
  int bytes = argc > 3 ? atoi(argv[3]) : 8;
  char *out = calloc(bytes, 1), *in = calloc(bytes, 1);
  double x = 0, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < rounds; ++i) {
    x += compute(turns);
    MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % ranks, 1, in, bytes, MPI_BYTE, (rank + ranks - 1) % ranks, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("%g\n", sum);
  MPI_Finalize();
  return 0;
}
