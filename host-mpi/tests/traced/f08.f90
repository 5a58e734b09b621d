program traced
  use mpi_f08
  implicit none
  integer :: rank, peer, index
  integer, asynchronous :: a(100), b(100)
  logical :: done
  type(MPI_Request) :: r(2)
  type(MPI_Status) :: s
  type(MPI_Comm) :: c
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  peer = 1 - rank
  a = rank
  call MPI_Irecv(b, 100, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, r(1))
  call MPI_Isend(a, 10, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, r(2))
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
  call MPI_Sendrecv(a, 7, MPI_INTEGER, peer, 4, b, 100, MPI_INTEGER, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Irecv(b, 100, MPI_INTEGER, peer, 5, MPI_COMM_WORLD, r(1))
  call MPI_Isend(a, 5, MPI_INTEGER, peer, 5, MPI_COMM_WORLD, r(2))
  call MPI_Waitany(2, r, index, s)
  done = .false.
  do while (.not. done)
    call MPI_Testany(2, r, index, done, s)
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, c)
  call MPI_Allreduce(MPI_IN_PLACE, a, 3, MPI_INTEGER, MPI_SUM, c)
  call MPI_Bcast(a, 2, MPI_INTEGER, 0, c)
  call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, b, 4, MPI_INTEGER, 0, MPI_COMM_SELF)
  call MPI_Comm_free(c)
  call MPI_Finalize()
end program
