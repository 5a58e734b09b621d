/* Every call that is traced, on 4 ranks. A message with tag T has T ints; each rank of its communicator sends one to
   the next. Prints the calls of loops. With an argument: collective operations between two groups, too. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define W MPI_COMM_WORLD
#define INT MPI_INT
#define NO MPI_STATUS_IGNORE
#define AT(r, i) (1000 * (r) + (i))
#define CHECK(what) if (!(what)) fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what), MPI_Abort(W, 9)

enum { TEST, TESTALL, TESTANY, TESTSOME, WAITSOME, STATUS, IPROBE, IMPROBE, WIN_TEST, LOOPS };
static const char *names[] = {"Test", "Testall", "Testany", "Testsome", "Waitsome", "Request_get_status", "Iprobe",
                              "Improbe", "Win_test"};
static int loops[LOOPS];
#define LOOP(name, call, done) do loops[name]++, call; while (!(done))

static int rank, left, right, opposite, flag, at, out, all, i, places[4], from[256], to[256], to2[256];
static MPI_Status s, st[8];
static MPI_Request r[8], q;
static char attached[65536];

/* A receive that is posted, a send by `call` and the end of the receive. */
#define POST(tag) MPI_Irecv(to, tag, INT, left, tag, W, &r[0]), MPI_Barrier(W)
#define TAKEN(tag) MPI_Wait(&r[0], &s); CHECK(to[(tag) - 1] == AT(left, (tag) - 1))
#define SEND(call, tag) POST(tag); MPI_##call(from, tag, INT, right, tag, W); TAKEN(tag)
#define ISEND(call, tag) POST(tag); MPI_##call(from, tag, INT, right, tag, W, &q); TAKEN(tag); MPI_Wait(&q, NO)

static void sends(void) {
  SEND(Send, 1); SEND(Bsend, 2); SEND(Ssend, 3); SEND(Rsend, 4);
  ISEND(Isend, 5); ISEND(Ibsend, 6); ISEND(Issend, 7); ISEND(Irsend, 8);
  MPI_Isend(from, 9, INT, right, 9, W, &q);
  MPI_Recv(to, 9, INT, left, MPI_ANY_TAG, W, &s);
  CHECK(s.MPI_TAG == 9 && to[8] == AT(left, 8));
  MPI_Wait(&q, NO);
  POST(10);
  MPI_Isend(from, 10, INT, right, 10, W, &q), MPI_Request_free(&q);
  TAKEN(10);
  MPI_Barrier(W);
  MPI_Sendrecv(from, 21, INT, right, 21, to, 21, INT, left, 21, W, NO);
  memcpy(to2, from, sizeof from);
  MPI_Sendrecv_replace(to2, 22, INT, right, 22, left, 22, W, NO);
  CHECK(to[20] == AT(left, 20) && to2[21] == AT(left, 21));
  MPI_Irecv(to, 23, INT, left, 23, W, &q), MPI_Cancel(&q), MPI_Wait(&q, &s);
  MPI_Test_cancelled(&s, &flag);
  CHECK(flag);
}

static void persistent(void) {
  MPI_Send_init(from, 11, INT, right, 11, W, &r[0]), MPI_Bsend_init(from, 12, INT, right, 12, W, &r[1]);
  MPI_Ssend_init(from, 13, INT, right, 13, W, &r[2]), MPI_Rsend_init(from, 14, INT, right, 14, W, &r[3]);
  for (i = 0; i < 4; i++) MPI_Recv_init(to + 20 * i, 11 + i, INT, left, 11 + i, W, &r[4 + i]);
  for (i = 4; i < 8; i++) MPI_Start(&r[i]);
  MPI_Barrier(W), MPI_Startall(4, r), MPI_Waitall(8, r, st);
  MPI_Startall(4, r + 4), MPI_Barrier(W);
  for (i = 0; i < 4; i++) MPI_Start(&r[i]);
  MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
  for (i = 0; i < 4; i++) CHECK(to[20 * i + 10 + i] == AT(left, 10 + i));
  for (i = 0; i < 8; i++) MPI_Request_free(&r[i]);
}

/* Two messages, of which `complete` reports the receives. */
#define TWO(t, complete) \
  MPI_Irecv(to, t, INT, left, t, W, &r[0]), MPI_Irecv(to2, t + 1, INT, MPI_ANY_SOURCE, t + 1, W, &r[1]); \
  MPI_Send(from, t, INT, right, t, W), MPI_Send(from, t + 1, INT, right, t + 1, W); \
  all = 0; complete; CHECK(to[t - 1] == AT(left, t - 1) && to2[t] == AT(left, t))

static void completions(void) {
  TWO(31, (MPI_Wait(&r[0], NO), MPI_Wait(&r[1], NO)));
  TWO(33, MPI_Waitall(2, r, st));
  TWO(35, (MPI_Waitany(2, r, &at, &s), MPI_Waitany(2, r, &at, NO)));
  TWO(37, LOOP(WAITSOME, MPI_Waitsome(2, r, &out, places, st), (all += out) == 2));
  TWO(39, LOOP(TEST, MPI_Test(&r[0], &flag, &s), flag); LOOP(TEST, MPI_Test(&r[1], &flag, &s), flag));
  TWO(41, LOOP(TESTALL, MPI_Testall(2, r, &flag, st), flag));
  TWO(43, LOOP(TESTANY, MPI_Testany(2, r, &at, &flag, &s), (all += flag) == 2));
  TWO(45, LOOP(TESTSOME, MPI_Testsome(2, r, &out, places, st), (all += out) == 2));
  TWO(47, LOOP(STATUS, MPI_Request_get_status(r[0], &flag, &s), flag); MPI_Waitall(2, r, st));
}

static void probes(void) {
  MPI_Message m;
  for (i = 0; i < 4; i++) MPI_Isend(from, 51 + i, INT, right, 51 + i, W, &r[i]);
  MPI_Probe(left, 51, W, &s), MPI_Recv(to, 51, INT, left, 51, W, NO);
  LOOP(IPROBE, MPI_Iprobe(MPI_ANY_SOURCE, 52, W, &flag, &s), flag);
  MPI_Recv(to, 52, INT, left, 52, W, NO);
  MPI_Mprobe(left, 53, W, &m, &s), MPI_Mrecv(to, 53, INT, &m, &s);
  LOOP(IMPROBE, MPI_Improbe(left, 54, W, &flag, &m, &s), flag);
  MPI_Imrecv(to2, 54, INT, &m, &q), MPI_Wait(&q, &s);
  MPI_Waitall(4, r, st);
  CHECK(to[52] == AT(left, 52) && to2[53] == AT(left, 53));
}

static void datatypes(void) {
  MPI_Datatype pairs;
  int end = 0, start = 0;
  /* 31 times 2 of 3 ints: bytes are those of the ints, not of the extent. */
  MPI_Type_vector(31, 2, 3, INT, &pairs), MPI_Type_commit(&pairs);
  POST(62);
  MPI_Send(from, 1, pairs, right, 62, W), MPI_Wait(&r[0], NO), MPI_Type_free(&pairs);
  CHECK(to[61] == AT(left, 91));
  MPI_Pack(from, 63, INT, to2, sizeof to2, &end, W);
  MPI_Sendrecv_replace(to2, end, MPI_PACKED, right, 63, left, 63, W, NO);
  MPI_Unpack(to2, end, &start, to, 63, INT, W);
  CHECK(to[62] == AT(left, 62));
}

/* A collective operation, and the immediate one; what it gives is in `to`. */
#define CALL(done, ...) memset(to, 0, sizeof to), __VA_ARGS__; CHECK(done)
#define BOTH(done, Name, name, ...) \
  CALL(done, MPI_##Name(__VA_ARGS__)); CALL(done, MPI_I##name(__VA_ARGS__, &q), MPI_Wait(&q, NO))

static int own[] = {1, 2, 3, 4}, place[] = {0, 8, 16, 24}, bytes[] = {0, 32, 64, 96}, sums[4];
static MPI_Datatype types[4];

static void collectives(void) {
  for (i = 0; i < 4; i++) sums[i] = rank + i, types[i] = (rank + i) % 2 ? MPI_2INT : INT;
  BOTH(1, Barrier, barrier, W);
  BOTH(rank == 1 || to[2] == AT(1, 2), Bcast, bcast, rank == 1 ? from : to, 3, INT, 1, W);
  BOTH(rank != 2 || to[15] == AT(3, 3), Gather, gather, from, 4, INT, to, 4, INT, 2, W);
  BOTH(rank != 2 || to[27] == AT(3, 3), Gatherv, gatherv, from, rank + 1, INT, to, own, place, INT, 2, W);
  BOTH(to[4] == AT(2, 5 * rank + 4), Scatter, scatter, from, 5, INT, to, 5, INT, 2, W);
  BOTH(to[rank] == AT(2, 9 * rank), Scatterv, scatterv, from, own, place, INT, to, rank + 1, INT, 2, W);
  BOTH(to[23] == AT(3, 5), Allgather, allgather, from, 6, INT, to, 6, INT, W);
  BOTH(to[27] == AT(3, 3), Allgatherv, allgatherv, from, rank + 1, INT, to, own, place, INT, W);
  BOTH(to[27] == AT(3, 7 * rank + 6), Alltoall, alltoall, from, 7, INT, to, 7, INT, W);
  BOTH(to[26] == AT(3, 8 * rank + 2), Alltoallv, alltoallv, from, sums, place, INT, to, sums, place, INT, W);
  BOTH(to[26] == AT(3, 8 * rank + 2), Alltoallw, alltoallw, from, sums, bytes, types, to, sums, bytes, types, W);
  BOTH(rank != 2 || to[7] == 6028, Reduce, reduce, from, to, 8, INT, MPI_SUM, 2, W);
  BOTH(to[8] == 6032, Allreduce, allreduce, from, to, 9, INT, MPI_SUM, W);
  BOTH(to[9] == 500 * rank * (rank + 1) + 9 * (rank + 1), Scan, scan, from, to, 10, INT, MPI_SUM, W);
  BOTH(!rank || to[10] == 500 * rank * (rank - 1) + 10 * rank, Exscan, exscan, from, to, 11, INT, MPI_SUM, W);
  BOTH(to[0] == 6000 + 2 * rank * (rank + 1), Reduce_scatter, reduce_scatter, from, to, own, INT, MPI_SUM, W);
  BOTH(to[0] == 6000 + 48 * rank, Reduce_scatter_block, reduce_scatter_block, from, to, 12, INT, MPI_SUM, W);
}

/* From the rank before and that opposite to the next and that opposite. `ring` is made of `near`: on communicators with
   many immediate operations before, Open MPI's Dist_graph_create may hang (its issue 13918). */
static void neighbours(void) {
  int sources[] = {left, opposite}, targets[] = {right, opposite}, counts[] = {left + 1, opposite + 1}, one = 1;
  int ends[] = {2, 4, 6, 8}, edges[] = {1, 3, 0, 2, 1, 3, 0, 2};
  MPI_Aint far[] = {0, 32};
  MPI_Datatype kinds[] = {INT, MPI_2INT};
  MPI_Comm near, ring, graph;
  MPI_Dist_graph_create_adjacent(W, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &near);
  MPI_Dist_graph_create(near, 1, &rank, &one, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
  MPI_Graph_create(W, 4, ends, edges, 0, &graph);
#define NEAR(k, value, name, ...) \
  BOTH(to[k] == AT(opposite, value), Neighbor_##name, neighbor_##name, from, __VA_ARGS__, near)
  NEAR(25, 12, allgather, 13, INT, to, 13, INT);
  NEAR(8, 0, allgatherv, rank + 1, INT, to, counts, place, INT);
  NEAR(27, 27, alltoall, 14, INT, to, 14, INT);
  NEAR(9, 9, alltoallv, own, place, INT, to, own, place, INT);
  NEAR(11, 11, alltoallw, own, far, kinds, to, own, far, kinds);
  CALL(to[14] == AT(left, 14), MPI_Neighbor_alltoall(from, 15, INT, to, 15, INT, ring));
  CALL(to[31] == AT(rank % 2 ? 2 : 3, 15), MPI_Neighbor_allgather(from, 16, INT, to, 16, INT, graph));
  MPI_Comm_free(&near), MPI_Comm_free(&ring), MPI_Comm_free(&graph);
}

/* A message to the next rank of a communicator, which is freed. */
static void around(MPI_Comm comm, int tag) {
  int me, size, is_inter;
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_rank(comm, &me), MPI_Comm_size(comm, &size), MPI_Comm_test_inter(comm, &is_inter);
  int next = is_inter ? me : (me + 1) % size, last = is_inter ? me : (me + size - 1) % size;
  MPI_Sendrecv(from, tag, INT, next, tag, to, tag, INT, last, tag, comm, NO);
  MPI_Comm_free(&comm);
}

/* Between the groups 2, 0 and 3, 1. What Ibcast gives is not checked: nothing, with MPICH 4.0. */
static void between(MPI_Comm two, int is_even) {
  int root = !is_even ? 1 : rank ? MPI_PROC_NULL : MPI_ROOT, two_each[] = {2, 2};
  BOTH(1, Barrier, barrier, two);
  CALL(is_even || to[2] == 2, MPI_Bcast(is_even ? from : to, 3, INT, root, two));
  CALL(1, MPI_Ibcast(is_even ? from : to, 3, INT, root, two, &q), MPI_Wait(&q, NO));
  BOTH(to[0] == (is_even ? 4000 : 2000), Allreduce, allreduce, from, to, 1, INT, MPI_SUM, two);
  BOTH(to[1] == (is_even ? 1000 : 0), Allgather, allgather, from, 1, INT, to, 1, INT, two);
  BOTH(to[9] == AT(is_even, place[rank < 2] + 1), Alltoallv, alltoallv, from, two_each, place, INT, to, two_each, place,
       INT, two);
}

static void communicators(int is_between) {
  int extents[] = {2, 2}, rings[] = {1, 0}, rows[] = {0, 1}, first[] = {0, 1, 2}, backwards[] = {3, 1};
  MPI_Group world, three, odd;
  MPI_Comm new, half, two;
  MPI_Comm_group(W, &world), MPI_Group_incl(world, 3, first, &three), MPI_Group_incl(world, 2, backwards, &odd);
  MPI_Comm_dup(W, &new), around(new, 71);
  MPI_Comm_dup_with_info(W, MPI_INFO_NULL, &new), around(new, 72);
  MPI_Comm_idup(W, &new, &q), MPI_Wait(&q, NO), around(new, 73);
  MPI_Comm_split_type(W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &new), around(new, 74);
  MPI_Cart_create(W, 2, extents, rings, 0, &half), MPI_Cart_sub(half, rows, &new), around(new, 75), around(half, 76);
  MPI_Comm_create(W, three, &new), around(new, 77);
  if (rank % 2) MPI_Comm_create_group(W, odd, 5, &new), around(new, 78);
  MPI_Group_free(&world), MPI_Group_free(&three), MPI_Group_free(&odd);
  MPI_Comm_split(W, rank % 2, -rank, &half);
  MPI_Intercomm_create(half, 0, W, rank % 2 ? 2 : 3, 6, &two);
  MPI_Intercomm_merge(two, rank % 2, &new), around(new, 79);
  if (is_between) between(two, rank % 2 == 0);
  around(two, 80), MPI_Comm_disconnect(&half);
}

static void one_sided(void) {
  int *memory, one = 1, kept[16];
  MPI_Win win;
  MPI_Group world, group, group2;
  MPI_Comm_group(W, &world), MPI_Group_incl(world, 1, &left, &group), MPI_Group_incl(world, 1, &right, &group2);
  MPI_Win_create_dynamic(MPI_INFO_NULL, W, &win), MPI_Win_attach(win, kept, 64), MPI_Win_detach(win, kept);
  MPI_Win_free(&win);
  MPI_Win_create(kept, 64, 4, MPI_INFO_NULL, W, &win), MPI_Win_free(&win);
  MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, W, &memory, &win), MPI_Win_free(&win);
  MPI_Win_allocate(64, 4, MPI_INFO_NULL, W, &memory, &win);
  MPI_Win_fence(0, win), MPI_Put(from, 1, INT, right, 0, 1, INT, win), MPI_Win_fence(0, win);
  CHECK(memory[0] == AT(left, 0));
  MPI_Win_post(group, 0, win), MPI_Win_start(group2, 0, win), MPI_Win_complete(win), MPI_Win_wait(win);
  MPI_Win_post(group, 0, win), MPI_Win_start(group2, 0, win), MPI_Win_complete(win);
  LOOP(WIN_TEST, MPI_Win_test(win, &flag), flag);
  MPI_Group_free(&group), MPI_Group_free(&group2), MPI_Group_free(&world);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win), MPI_Get(to, 1, INT, right, 0, 1, INT, win);
  MPI_Win_flush(right, win), MPI_Win_flush_local(right, win), MPI_Win_unlock(right, win);
  CHECK(to[0] == AT(rank, 0));
  MPI_Win_lock_all(0, win), MPI_Accumulate(&one, 1, INT, right, 1, 1, INT, MPI_SUM, win);
  MPI_Get_accumulate(&one, 1, INT, to, 1, INT, right, 2, 1, INT, MPI_SUM, win);
  MPI_Fetch_and_op(&one, to + 1, INT, right, 3, MPI_SUM, win);
  MPI_Compare_and_swap(&one, from, to + 2, INT, right, 4, win);
  MPI_Rput(from, 1, INT, right, 5, 1, INT, win, &r[0]), MPI_Rget(to + 3, 1, INT, right, 0, 1, INT, win, &r[1]);
  MPI_Raccumulate(&one, 1, INT, right, 6, 1, INT, MPI_SUM, win, &r[2]);
  MPI_Rget_accumulate(&one, 1, INT, to + 4, 1, INT, right, 7, 1, INT, MPI_SUM, win, &r[3]);
  MPI_Waitall(4, r, st);
  CHECK(to[3] == AT(rank, 0));
  MPI_Win_flush_all(win), MPI_Win_flush_local_all(win), MPI_Win_sync(win), MPI_Win_unlock_all(win), MPI_Win_free(&win);
}

/* Written and read: at once, begun and waited for, in two parts. */
#define FILES(kind, ...) MPI_File_write##kind(file, __VA_ARGS__, &s), MPI_File_read##kind(file, __VA_ARGS__, &s)
#define IFILES(kind, ...) \
  MPI_File_iwrite##kind(file, __VA_ARGS__, &q), MPI_Wait(&q, NO); \
  MPI_File_iread##kind(file, __VA_ARGS__, &q), MPI_Wait(&q, NO)
#define PARTS(kind, ...) \
  MPI_File_write##kind##_begin(file, __VA_ARGS__), MPI_File_write##kind##_end(file, to, &s); \
  MPI_File_read##kind##_begin(file, __VA_ARGS__), MPI_File_read##kind##_end(file, to, &s)

static void files(const char *name) {
  MPI_File file;
  MPI_Offset size;
  MPI_File_open(W, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_size(file, 4096), MPI_File_preallocate(file, 4096), MPI_File_get_size(file, &size);
  CHECK(size >= 4096);
  MPI_File_set_view(file, 64 * rank, INT, INT, "native", MPI_INFO_NULL);
  MPI_File_write_at(file, 0, from, 2, INT, &s), MPI_File_read_at(file, 0, to, 2, INT, &s);
  CHECK(to[1] == from[1]);
  FILES(, to, 1, INT); FILES(_all, to, 1, INT); FILES(_at_all, 0, to, 1, INT);
  IFILES(, to, 1, INT); IFILES(_all, to, 1, INT); IFILES(_at, 0, to, 1, INT); IFILES(_at_all, 0, to, 1, INT);
  PARTS(_all, to, 1, INT); PARTS(_ordered, to, 1, INT); PARTS(_at_all, 0, to, 1, INT);
  MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  FILES(_shared, to, 1, INT); FILES(_ordered, to, 1, INT); IFILES(_shared, to, 1, INT);
  MPI_File_sync(file), MPI_File_close(&file), MPI_Barrier(W);
  if (rank == 0) MPI_File_delete(name, MPI_INFO_NULL);
}

int main(int argc, char **argv) {
  char name[4096];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &i);
  MPI_Comm_rank(W, &rank);
  left = (rank + 3) % 4, right = (rank + 1) % 4, opposite = (rank + 2) % 4;
  for (i = 0; i < 256; i++) from[i] = AT(rank, i);
  MPI_Buffer_attach(attached, sizeof attached);
  sends(), persistent(), completions(), probes(), datatypes();
  collectives(), neighbours(), communicators(argc > 1), one_sided();
  snprintf(name, sizeof name, "%s.data", argv[0]), files(name);
  for (i = 0; i < LOOPS; i++) printf("%s %d\n", names[i], loops[i]);
  return MPI_Finalize();
}
