/* Messages of a rank to itself, and an end without MPI_Finalize: "exit", "abort", "kill" after two
   seconds; or with it, after a child ended ("fork"), or not. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int value = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  double end = MPI_Wtime() + (strcmp(argv[1], "kill") ? 0.01 : 2);
  for (int i = 0; i < 20000 || MPI_Wtime() < end; i++) {
    MPI_Sendrecv(&i, 1, MPI_INT, 0, 3, &value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  }
  MPI_Irecv(&value, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &request);
  if (!strcmp(argv[1], "exit")) exit(0);
  if (!strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 3);
  if (!strcmp(argv[1], "fork")) {
    if (fork() == 0) exit(0);
    wait(NULL);
  }
  if (!strcmp(argv[1], "kill")) raise(SIGKILL);
  return MPI_Finalize();
}
