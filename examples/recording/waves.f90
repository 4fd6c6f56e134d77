! Waves on a string: leapfrog in time, two arrays that change places.
!
!   cp $(ciwrap native --fortran)/* .
!   gfortran -I$(ciwrap native --include) ciwrap_record.f90 ciwrap_record_fortran.c waves.f90 \
!       -o waves -ldl
!   ciwrap record -o before -- ./waves
program waves
    use, intrinsic :: iso_fortran_env, only: real64
    use ciwrap_record, only: ciwrap_recorder
    implicit none
    integer, parameter :: nx = 400, steps = 10
    type(ciwrap_recorder) :: recorder
    real(real64) :: u(0:nx + 1, 2), energy(nx)
    integer :: n, i, old, new, errors, wrong_step
    character(16) :: argument

    wrong_step = -1
    if (command_argument_count() > 0) then
        call get_command_argument(1, argument)
        read (argument, *) wrong_step
    end if
    do i = 0, nx + 1
        u(i, :) = sin(0.03_real64 * i)
    end do

    call recorder%open("waves")
    old = 1
    do n = 1, steps
        new = 3 - old
        u(1:nx, old) = 2 * u(1:nx, new) - u(1:nx, old) &
            + 0.25_real64 * (u(0:nx - 1, new) - 2 * u(1:nx, new) + u(2:nx + 1, new))
        if (n == wrong_step) u(nx / 2, old) = u(nx / 2, old) + 1e-3_real64
        energy = (u(1:nx, old) - u(1:nx, new))**2
        call recorder%prepare(n)
        call recorder%expose("energy", energy, atol=1d-9)
        call recorder%expose("u", u(1:nx, old))
        call recorder%complete()
        old = new
    end do
    call recorder%close(errors)
    if (errors > 0) stop 1
end program
