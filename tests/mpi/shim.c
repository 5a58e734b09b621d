/* A layer between loggap-mpi and the MPI library, by MPI's profiling interface:
 * counts calls and spoils a result. Built as a shared library with the MPI's
 * own compiler and preloaded into ranks:
 *
 *   mpicc -shared -fPIC -o shim.so tests/mpi/shim.c
 *
 * LOGGAP_SHIM=PATH           at MPI_Finalize, PATH.RANK gets a line "NAME BYTES
 *                            ROOT CALLS ALIGNMENT" for each combination; ROOT is
 *                            -1 where there is none; ALIGNMENT is that of all
 *                            buffers, up to 4096, 0 where they are not looked at
 * LOGGAP_SHIM_FLIP="RANK NAME BYTES CALL AT"
 *                            after call number CALL (from 1 on) of NAME with so
 *                            many bytes, byte AT of the result is another one
 *                            on that rank
 *
 * MPI_Test and MPI_Wait are counted with the bytes of the MPI_Ibcast that they
 * are about, and not at all where they are about none.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct count {
  const char *name;
  long bytes;
  int root;
  long calls;
  uintptr_t addresses; /* all of them, by or */
};

struct open {
  MPI_Request request;
  long bytes;
};

static struct count counts[256];
static size_t used;
static struct open pending[64];

static long count(const char *name, long bytes, int root, uintptr_t addresses) {
  for (size_t i = 0; i < used; i++)
    if (counts[i].bytes == bytes && counts[i].root == root && !strcmp(counts[i].name, name)) {
      counts[i].addresses |= addresses;
      return ++counts[i].calls;
    }
  if (used == sizeof counts / sizeof *counts) {
    fprintf(stderr, "shim: more kinds of calls than there is room for\n");
    exit(70);
  }
  counts[used] = (struct count){name, bytes, root, 1, addresses};
  return counts[used++].calls;
}

static long bytes_of(int elements, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return (long)size * elements;
}

static int own_rank(void) {
  int rank = -1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

static void spoil(const char *name, long bytes, long call, void *result) {
  const char *text = getenv("LOGGAP_SHIM_FLIP");
  char wanted[64];
  int rank;
  long size, number, at;
  if (!text || sscanf(text, "%d %63s %ld %ld %ld", &rank, wanted, &size, &number, &at) != 5)
    return;
  if (rank == own_rank() && !strcmp(wanted, name) && size == bytes && number == call && at < bytes)
    ((unsigned char *)result)[at] ^= 1;
}

/* The place of a request that is not over, or a free one for MPI_REQUEST_NULL. */
static struct open *find(MPI_Request request) {
  for (size_t i = 0; i < sizeof pending / sizeof *pending; i++) {
    int is_free = pending[i].bytes == 0;
    if (request == MPI_REQUEST_NULL ? is_free : !is_free && pending[i].request == request)
      return &pending[i];
  }
  return NULL;
}

int MPI_Bcast(void *data, int elements, MPI_Datatype type, int root, MPI_Comm ranks) {
  long bytes = bytes_of(elements, type);
  long call = count("MPI_Bcast", bytes, root, (uintptr_t)data);
  int code = PMPI_Bcast(data, elements, type, root, ranks);
  spoil("MPI_Bcast", bytes, call, data);
  return code;
}

int MPI_Ibcast(void *data, int elements, MPI_Datatype type, int root, MPI_Comm ranks,
               MPI_Request *request) {
  long bytes = bytes_of(elements, type);
  count("MPI_Ibcast", bytes, root, (uintptr_t)data);
  int code = PMPI_Ibcast(data, elements, type, root, ranks, request);
  struct open *place = find(MPI_REQUEST_NULL);
  if (place && bytes > 0)
    *place = (struct open){*request, bytes};
  return code;
}

int MPI_Allreduce(const void *give, void *get, int elements, MPI_Datatype type, MPI_Op op,
                  MPI_Comm ranks) {
  long bytes = bytes_of(elements, type);
  long call = count("MPI_Allreduce", bytes, -1, (uintptr_t)give | (uintptr_t)get);
  int code = PMPI_Allreduce(give, get, elements, type, op, ranks);
  spoil("MPI_Allreduce", bytes, call, get);
  return code;
}

int MPI_Test(MPI_Request *request, int *is_over, MPI_Status *status) {
  struct open *place = *request == MPI_REQUEST_NULL ? NULL : find(*request);
  if (place)
    count("MPI_Test", place->bytes, -1, 0);
  int code = PMPI_Test(request, is_over, status);
  if (place && *is_over)
    place->bytes = 0;
  return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  struct open *place = *request == MPI_REQUEST_NULL ? NULL : find(*request);
  if (place) {
    count("MPI_Wait", place->bytes, -1, 0);
    place->bytes = 0;
  }
  return PMPI_Wait(request, status);
}

int MPI_Finalize(void) {
  const char *path = getenv("LOGGAP_SHIM");
  if (path) {
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", path, own_rank());
    FILE *file = fopen(name, "w");
    if (!file) {
      perror(name);
      exit(70);
    }
    for (size_t i = 0; i < used; i++) {
      uintptr_t all = counts[i].addresses, lowest = all & -all;
      fprintf(file, "%s %ld %d %ld %lu\n", counts[i].name, counts[i].bytes, counts[i].root,
              counts[i].calls, (unsigned long)(lowest > 4096 ? 4096 : lowest));
    }
    fclose(file);
  }
  return PMPI_Finalize();
}
