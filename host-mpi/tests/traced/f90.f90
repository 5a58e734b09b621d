program traced
  use mpi
  implicit none
  integer :: rank, peer, index, error
  integer, asynchronous :: a(100), b(100)
  logical :: done
  integer :: r(2)
  integer :: s(MPI_STATUS_SIZE)
  integer :: c
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  peer = 1 - rank
  a = rank
  call MPI_Irecv(b, 100, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, r(1), error)
  call MPI_Isend(a, 10, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, r(2), error)
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, error)
  call MPI_Sendrecv(a, 7, MPI_INTEGER, peer, 4, b, 100, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Irecv(b, 100, MPI_INTEGER, peer, 5, MPI_COMM_WORLD, r(1), error)
  call MPI_Isend(a, 5, MPI_INTEGER, peer, 5, MPI_COMM_WORLD, r(2), error)
  call MPI_Waitany(2, r, index, s, error)
  done = .false.
  do while (.not. done)
    call MPI_Testany(2, r, index, done, s, error)
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, c, error)
  call MPI_Allreduce(MPI_IN_PLACE, a, 3, MPI_INTEGER, MPI_SUM, c, error)
  call MPI_Bcast(a, 2, MPI_INTEGER, 0, c, error)
  call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, b, 4, MPI_INTEGER, 0, MPI_COMM_SELF, error)
  call MPI_Comm_free(c, error)
  call MPI_Finalize(error)
end program
