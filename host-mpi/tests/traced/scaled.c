// Programs that do the same on any number of ranks: scaled PROGRAM PX PY STEPS.
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, px, py;
static char out[4][4096], in[4][4096];

// Rank at these coordinates, or that of nobody.
static int at(int x, int y, int rings) {
    if (rings) {
        x = (x + px) % px;
        y = (y + py) % py;
    }
    return x < 0 || y < 0 || x >= px || y >= py ? MPI_PROC_NULL : x * py + y;
}

static void stencil(int rings) {
    int x = rank / py, y = rank % py;
    int peers[4] = {at(x - 1, y, rings), at(x + 1, y, rings), at(x, y - 1, rings), at(x, y + 1, rings)};
    MPI_Request all[8];
    for (int side = 0; side < 4; side++)
        MPI_Irecv(in[side], 800, MPI_CHAR, peers[side], side ^ 1, MPI_COMM_WORLD, &all[side]);
    for (int side = 0; side < 4; side++)
        MPI_Isend(out[side], 800, MPI_CHAR, peers[side], side, MPI_COMM_WORLD, &all[4 + side]);
    MPI_Waitall(8, all, MPI_STATUSES_IGNORE);
}

// Sweeps from the corners of a cube, eight in a step, each in blocks.
static void wavefront(int blocks) {
    int x = rank / py, y = rank % py;
    for (int octant = 0; octant < 8; octant++) {
        int dx = octant & 1 ? 1 : -1, dy = octant & 2 ? 1 : -1;
        for (int block = 0; block < blocks; block++) {
            MPI_Recv(in[0], 1200, MPI_CHAR, at(x - dx, y, 0), octant, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(in[1], 1600, MPI_CHAR, at(x, y - dy, 0), octant, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out[0], 1200, MPI_CHAR, at(x + dx, y, 0), octant, MPI_COMM_WORLD);
            MPI_Send(out[1], 1600, MPI_CHAR, at(x, y + dy, 0), octant, MPI_COMM_WORLD);
        }
    }
}

static void ring(void) {
    MPI_Sendrecv(out[0], 64, MPI_CHAR, (rank + 1) % ranks, 1, in[0], 64, MPI_CHAR,
                 (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// A sum at rank 0 along a binomial tree, and back.
static void tree(void) {
    int bit = 1;
    for (; bit < ranks && !(rank & bit); bit *= 2)
        if (rank + bit < ranks)
            MPI_Recv(in[0], 64, MPI_CHAR, rank + bit, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank) {
        MPI_Send(out[0], 64, MPI_CHAR, rank - bit, 2, MPI_COMM_WORLD);
        MPI_Recv(in[0], 64, MPI_CHAR, rank - bit, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (bit /= 2; bit; bit /= 2)
        if (rank + bit < ranks)
            MPI_Send(out[0], 64, MPI_CHAR, rank + bit, 3, MPI_COMM_WORLD);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    px = atoi(words[2]);
    py = atoi(words[3]);
    int steps = atoi(words[4]), blocks = count > 5 ? atoi(words[5]) : 3;
    MPI_Comm row;
    MPI_Comm_split(MPI_COMM_WORLD, rank / py, rank, &row);
    double own = rank, sum;
    for (int step = 0; step < steps; step++) {
        if (!strcmp(words[1], "stencil"))
            stencil(0);
        if (!strcmp(words[1], "torus"))
            stencil(1);
        if (!strcmp(words[1], "wavefront"))
            wavefront(blocks);
        if (!strcmp(words[1], "ring"))
            ring();
        if (!strcmp(words[1], "tree"))
            tree();
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(out[2], 100, MPI_CHAR, 0, row);
    }
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, ranks - 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
