/* Calls a collective operation once for each size, looks at what came of it,
 * and prints a line each on rank 0:
 *
 *   OPERATION BYTES right|wrong|argument|failed
 *
 * BYTES are those of the vector, or of each block; `argument` is MPI_ERR_ARG.
 *
 *   mpirun -n RANKS rules OPERATION BYTES...
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

/* What the byte at `place` of the block of `from` for `to` is. */
static unsigned char byte_of(int from, int to, long place)
{
    return (unsigned char)(31 * from + 7 * to + place % 251 + 1);
}

static void fill(unsigned char *block, int from, int to, long size)
{
    for (long place = 0; place < size; place++) block[place] = byte_of(from, to, place);
}

static int differs(const unsigned char *block, int from, int to, long size)
{
    for (long place = 0; place < size; place++)
        if (block[place] != byte_of(from, to, place)) return 1;
    return 0;
}

/* Whether the result is wrong; `*code` is what the call returned. */
static int allreduce(long size, int *code)
{
    const long count = size / 8;
    uint64_t *own = malloc(size + 1), *all = malloc(size + 1);
    int wrong = 0;
    for (long place = 0; place < count; place++) own[place] = (uint64_t)(rank + 1) * (place + 1);
    *code = MPI_Allreduce(own, all, (int)count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (long place = 0; place < count; place++)
        wrong |= all[place] != (uint64_t)ranks * (ranks + 1) / 2 * (place + 1);
    free(own);
    free(all);
    return wrong;
}

/* All others move blocks of bytes. */
static int blocks(const char *operation, long size, int *code)
{
    const int bytes = (int)size;
    unsigned char *own = calloc(ranks, size + 1), *all = calloc(ranks, size + 1);
    const MPI_Comm world = MPI_COMM_WORLD;
    int wrong = 0;
    if (!strcmp(operation, "bcast")) {
        if (rank == 0) fill(own, 0, 0, size);
        *code = MPI_Bcast(own, bytes, MPI_BYTE, 0, world);
        wrong = differs(own, 0, 0, size);
    } else if (!strcmp(operation, "allgather") || !strcmp(operation, "gather")) {
        const int everywhere = operation[0] == 'a';
        fill(own, rank, 0, size);
        *code = everywhere
            ? MPI_Allgather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, world)
            : MPI_Gather(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, world);
        for (int from = 0; from < ranks && (everywhere || rank == 0); from++)
            wrong |= differs(all + from * size, from, 0, size);
    } else if (!strcmp(operation, "alltoall")) {
        for (int to = 0; to < ranks; to++) fill(own + to * size, rank, to, size);
        *code = MPI_Alltoall(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, world);
        for (int from = 0; from < ranks; from++)
            wrong |= differs(all + from * size, from, rank, size);
    } else if (!strcmp(operation, "scatter")) {
        for (int to = 0; to < ranks && rank == 0; to++) fill(own + to * size, 0, to, size);
        *code = MPI_Scatter(own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, world);
        wrong = differs(all, 0, rank, size);
    } else if (!strcmp(operation, "barrier")) {
        *code = MPI_Barrier(world);
    } else {
        *code = MPI_ERR_OTHER;
    }
    free(own);
    free(all);
    return wrong;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int word = 2; word < count; word++) {
        const long size = atol(words[word]);
        int code = MPI_SUCCESS, class = MPI_SUCCESS;
        const int sum = !strcmp(words[1], "allreduce");
        const int wrong = sum ? allreduce(size, &code) : blocks(words[1], size, &code);
        MPI_Error_class(code, &class);
        int state = class == MPI_ERR_ARG ? 2 : class != MPI_SUCCESS ? 3 : wrong;
        /* The worst of all ranks, without a collective operation. */
        for (int other = 1; other < ranks; other++) {
            int theirs = state;
            if (rank == other) MPI_Send(&state, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
            if (rank == 0) MPI_Recv(&theirs, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (theirs > state) state = theirs;
        }
        static const char *const names[] = {"right", "wrong", "argument", "failed"};
        if (rank == 0) printf("%s %ld %s\n", words[1], size, names[state]);
    }
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
