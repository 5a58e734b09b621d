// Solvers on a square grid of N x N cells, whose rows are divided among the ranks: solvers PROGRAM N STEPS.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, n, rows;

static double *field(void) { return calloc((size_t)(rows + 2) * n, sizeof(double)); }

static double sum_of(const double *a, const double *b) {
    double own = 0, all;
    for (int i = n; i < (rows + 1) * n; i++)
        own += a[i] * b[i];
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

// Rows of the neighbours above and below.
static void exchange(double *x) {
    int above = rank ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(x + n, n, MPI_DOUBLE, above, 1, x + (rows + 1) * n, n, MPI_DOUBLE, below, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(x + rows * n, n, MPI_DOUBLE, below, 2, x, n, MPI_DOUBLE, above, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void laplace(const double *x, double *y) {
    for (int i = 1; i <= rows; i++)
        for (int j = 0; j < n; j++) {
            const double *at = x + i * n + j;
            y[i * n + j] = 4 * *at - at[-n] - at[n] - (j ? at[-1] : 0) - (j + 1 < n ? at[1] : 0);
        }
}

static double conjugate_gradient(int steps) {
    double *x = field(), *r = field(), *p = field(), *q = field();
    for (int i = n; i < (rows + 1) * n; i++)
        r[i] = p[i] = 1;
    double rho = sum_of(r, r);
    for (int step = 0; step < steps; step++) {
        exchange(p);
        laplace(p, q);
        double alpha = rho / sum_of(p, q);
        for (int i = n; i < (rows + 1) * n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        double next = sum_of(r, r), beta = next / rho;
        for (int i = n; i < (rows + 1) * n; i++)
            p[i] = r[i] + beta * p[i];
        rho = next;
    }
    return rho;
}

static double jacobi(int steps) {
    double *x = field(), *y = field();
    for (int step = 0; step < steps; step++) {
        exchange(x);
        laplace(x, y);
        for (int i = n; i < (rows + 1) * n; i++)
            x[i] += (1 - y[i]) / 4;
    }
    return sum_of(x, x);
}

// Sweeps from the top and back, by columns in blocks: each rank waits for the block of its neighbour.
static double wavefront(int steps) {
    enum { BLOCKS = 8 };
    double *x = field();
    int width = n / BLOCKS;
    for (int step = 0; step < steps; step++)
        for (int back = 0; back < 2; back++) {
            int before = back ? rank + 1 : rank - 1, after = back ? rank - 1 : rank + 1;
            int first = back ? rows : 1, last = back ? 1 : rows, by = back ? -1 : 1;
            for (int block = 0; block < BLOCKS; block++) {
                int left = block * width;
                if (before >= 0 && before < ranks)
                    MPI_Recv(x + (first - by) * n + left, width, MPI_DOUBLE, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                for (int i = first; i != last + by; i += by)
                    for (int j = left; j < left + width; j++)
                        x[i * n + j] = 0.5 * x[i * n + j] + 0.25 * x[(i - by) * n + j] + 0.25 * (j ? x[i * n + j - 1] : 1);
                if (after >= 0 && after < ranks)
                    MPI_Send(x + last * n + left, width, MPI_DOUBLE, after, 3, MPI_COMM_WORLD);
            }
        }
    return sum_of(x, x);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    n = atoi(words[2]);
    rows = n / ranks;
    int steps = atoi(words[3]);
    double (*program)(int) = !strcmp(words[1], "cg") ? conjugate_gradient : !strcmp(words[1], "jacobi") ? jacobi : wavefront;
    double result = program(steps);
    if (!rank)
        printf("%g\n", result);
    MPI_Finalize();
    return 0;
}
