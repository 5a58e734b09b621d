/* Calls with MPI_Count, of MPI 4. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank;
  double out[12] = {0}, in[12];
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Send_c(out, 12, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
  else MPI_Recv_c(in, 12, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Isend_c(out, 1, MPI_DOUBLE, 1 - rank, 4, MPI_COMM_WORLD, &request);
  MPI_Recv_c(in, 1, MPI_DOUBLE, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  /* Of rank r, the peer p has 1 + r + p elements. */
  MPI_Count counts[2] = {1 + rank, 2 + rank};
  MPI_Aint places[2] = {0, 6};
  MPI_Alltoallv_c(out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
