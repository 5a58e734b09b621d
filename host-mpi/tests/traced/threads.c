/* Two threads of each of two ranks send and receive 2,000 messages each, on a communicator of their own; then 1,000
 * threads, four at a time, call MPI_Sendrecv. They may take no more memory than the first of them. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

static MPI_Comm comm[2];
static int rank;

static void *work(void *number) {
  long me = (long)number;
  for (int i = 0; i < 2000; i++) {
    MPI_Request r[2];
    int mine = i, other = -1, done = 0;
    MPI_Irecv(&other, 1, MPI_INT, MPI_ANY_SOURCE, i, comm[me], &r[0]);
    MPI_Isend(&mine, 1, MPI_INT, !rank, i, comm[me], &r[1]);
    while (!done) MPI_Testall(2, r, &done, MPI_STATUSES_IGNORE);
    if (other != i) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}

static void *brief(void *number) {
  int none;
  MPI_Sendrecv(&none, 0, MPI_INT, rank, (int)(long)number, &none, 0, MPI_INT, rank, (int)(long)number, comm[0],
               MPI_STATUS_IGNORE);
  return 0;
}

/* Pages in memory. */
static long resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 4);
  fclose(file);
  return pages;
}

int main(int argc, char **argv) {
  int provided;
  pthread_t second;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
  pthread_create(&second, 0, work, (void *)1);
  work(0);
  pthread_join(second, 0);
  long before = 0;
  for (long i = 0; i < 1000; i += 4) {
    pthread_t four[4];
    for (long j = 0; j < 4; j++) pthread_create(&four[j], 0, brief, (void *)(i + j));
    for (int j = 0; j < 4; j++) pthread_join(four[j], 0);
    if (i == 100) before = resident();
  }
  if (resident() - before > 500) MPI_Abort(MPI_COMM_WORLD, 5);
  return MPI_Finalize();
}
