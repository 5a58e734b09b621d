/* Calls of all kinds on 4 ranks, pairs of ranks 2i and 2i + 1. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

static char a[4096], b[4096];
static MPI_Status s, st[4];
static MPI_Request r[4], q;
static int rank, peer, flag, at, out, places[4];

static void blocking(void) {
  for (int i = 0; i < 5; i++) {
    if (rank & 1) {
      MPI_Recv(a, 4096, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Ssend(a, 25, MPI_INT, peer, 2, MPI_COMM_WORLD);
    } else {
      MPI_Send(a, 10 * i, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
      MPI_Recv(a, 4096, MPI_CHAR, peer, 2, MPI_COMM_WORLD, &s);
    }
  }
  MPI_Sendrecv(a, 11, MPI_CHAR, peer, 9, b, 4096, MPI_CHAR, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(a, 12, MPI_CHAR, peer, 9, peer, 9, MPI_COMM_WORLD, &s);
}

static void immediate(void) {
  MPI_Irecv(a, 4096, MPI_CHAR, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &r[0]);
  MPI_Irecv(b, 4096, MPI_CHAR, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &r[1]);
  MPI_Isend(a, 77, MPI_CHAR, peer, 5, MPI_COMM_WORLD, &r[2]);
  MPI_Isend(b, 78, MPI_CHAR, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &r[3]);
  MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
  MPI_Send_init(a, 5, MPI_CHAR, peer, 8, MPI_COMM_WORLD, &r[0]);
  MPI_Recv_init(b, 5, MPI_CHAR, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &r[1]);
  for (int i = 0; i < 2; i++) {
    MPI_Startall(2, r);
    MPI_Waitany(2, r, &at, &s);
    MPI_Waitsome(2, r, &out, places, st);
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
  MPI_Irecv(a, 4096, MPI_CHAR, peer, 99, MPI_COMM_WORLD, &r[0]);
  MPI_Cancel(&r[0]);
  MPI_Wait(&r[0], &s);
}

static void probed(void) {
  MPI_Message m;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank & 1) {
    usleep(300000);
    MPI_Send(a, 21, MPI_CHAR, peer, 10, MPI_COMM_WORLD);
    MPI_Send(a, 22, MPI_CHAR, peer, 11, MPI_COMM_WORLD);
    MPI_Send(a, 23, MPI_CHAR, peer, 12, MPI_COMM_WORLD);
    return;
  }
  MPI_Irecv(b, 4096, MPI_CHAR, peer, 12, MPI_COMM_WORLD, &q);
  do MPI_Iprobe(MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, &flag, &s);
  while (!flag);
  MPI_Recv(a, 4096, MPI_CHAR, peer, 10, MPI_COMM_WORLD, &s);
  MPI_Mprobe(MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
  MPI_Mrecv(a, 4096, MPI_CHAR, &m, MPI_STATUS_IGNORE);
  do MPI_Testall(1, &q, &flag, MPI_STATUSES_IGNORE);
  while (!flag);
}

static void together(void) {
  MPI_Comm half, dup, cart;
  int extents[2] = {2, 2}, rings[2] = {1, 0}, size, counts[4], places[4];
  double x = 1, y = 2;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank & 1, -rank, &half);
  MPI_Comm_dup(half, &dup);
  MPI_Cart_create(MPI_COMM_WORLD, 2, extents, rings, 0, &cart);
  MPI_Bcast(a, 100, MPI_CHAR, 0, dup);
  MPI_Allreduce(MPI_IN_PLACE, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Iallreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, half, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  for (int i = 0; i < 4; i++) counts[i] = i / 2, places[i] = 8 * i;
  MPI_Gatherv(a, rank / 2, MPI_INT, b, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
  for (int i = 0; i < 4; i++) counts[i] = 3;
  MPI_Neighbor_alltoallv(a, counts, places, MPI_CHAR, b, counts, places, MPI_CHAR, cart);
  MPI_Send(a, 1, MPI_CHAR, MPI_PROC_NULL, 0, dup);
  MPI_Sendrecv(a, 2, MPI_CHAR, 0, 7, b, 2, MPI_CHAR, 0, 7, MPI_COMM_SELF, &s);
  if (rank < 2) MPI_Send(a, 3, MPI_CHAR, 0, 6, dup);
  else MPI_Recv(a, 3, MPI_CHAR, 1, 6, dup, &s);
  MPI_Comm_free(&half);
  MPI_Comm_free(&dup);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = rank ^ 1;
  blocking();
  immediate();
  probed();
  together();
  MPI_Pcontrol(0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(a, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
  MPI_Pcontrol(1);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
