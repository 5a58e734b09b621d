! Jacobi iteration on a square of values, rows over the ranks in order; halo rows by
! blocking sends and receives with `use mpi`, and a norm of all every ten steps.
!   jacobi N STEPS
program jacobi
  use mpi
  implicit none
  integer :: n, steps, rank, ranks, up, down, rows, step, i, error
  integer :: state(MPI_STATUS_SIZE)
  double precision, allocatable :: old(:, :), new(:, :)
  double precision :: change, all
  character(len=16) :: argument

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  n = 2048
  steps = 50
  if (command_argument_count() >= 1) then
    call get_command_argument(1, argument)
    read (argument, *) n
  end if
  if (command_argument_count() >= 2) then
    call get_command_argument(2, argument)
    read (argument, *) steps
  end if
  rows = max(1, 64 / ranks)
  up = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  down = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  allocate (old(0:n + 1, 0:rows + 1), new(0:n + 1, 0:rows + 1))
  old = 0
  if (rank == 0) old(:, 0) = 1
  new = old
  do step = 1, steps
    call MPI_Sendrecv(old(1, 1), n, MPI_DOUBLE_PRECISION, up, 1, &
                      old(1, rows + 1), n, MPI_DOUBLE_PRECISION, down, 1, MPI_COMM_WORLD, state, error)
    call MPI_Sendrecv(old(1, rows), n, MPI_DOUBLE_PRECISION, down, 2, &
                      old(1, 0), n, MPI_DOUBLE_PRECISION, up, 2, MPI_COMM_WORLD, state, error)
    do i = 1, rows
      new(1:n, i) = (old(0:n - 1, i) + old(2:n + 1, i) + old(1:n, i - 1) + old(1:n, i + 1)) / 4
    end do
    change = sum(abs(new(1:n, 1:rows) - old(1:n, 1:rows)))
    old(1:n, 1:rows) = new(1:n, 1:rows)
    if (mod(step, 10) == 0) then
      call MPI_Allreduce(change, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
    end if
  end do
  if (rank == 0) print '(a, es22.15)', 'change ', all
  call MPI_Finalize(error)
end program jacobi
