! Recording the arrays of a running Fortran program. Copy this file, ciwrap_record_fortran.c and
! ciwrap/record.h into your program; it needs no ciwrap to build, to link or to run.
! Fortran 2018 (arrays of any type, kind and rank; any slice without a copy).
module ciwrap_record
    use, intrinsic :: iso_c_binding, only: c_ptr, c_null_ptr, c_char, c_int, c_int64_t, c_double, &
        c_null_char, c_associated
    implicit none
    private
    public :: ciwrap_recorder

    ! This process's part of a recorded run, where CIWRAP_RECORD names a folder; else nothing.
    type :: ciwrap_recorder
        private
        type(c_ptr) :: run = c_null_ptr
    contains
        procedure :: open => open_run
        procedure :: is_on
        procedure :: add
        procedure :: point
        procedure :: checkpoint
        procedure :: should_stop
        procedure :: close => close_run
    end type

    interface
        function c_open(name, rank, ranks) bind(C, name="ciwrap_fortran_open") result(run)
            import :: c_ptr, c_char, c_int
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: rank, ranks
            type(c_ptr) :: run
        end function
        subroutine c_add(run, name, array, atol, rtol) bind(C, name="ciwrap_fortran_add")
            import :: c_ptr, c_char, c_double
            type(c_ptr), value :: run
            character(kind=c_char), intent(in) :: name(*)
            type(*), dimension(..), intent(in), target :: array
            real(c_double), value :: atol, rtol
        end subroutine
        subroutine c_checkpoint(run, iteration, point) bind(C, name="ciwrap_fortran_checkpoint")
            import :: c_ptr, c_char, c_int64_t
            type(c_ptr), value :: run
            integer(c_int64_t), value :: iteration
            character(kind=c_char), intent(in) :: point(*)
        end subroutine
        function c_should_stop(run) bind(C, name="ciwrap_fortran_should_stop") result(answer)
            import :: c_ptr, c_int
            type(c_ptr), value :: run
            integer(c_int) :: answer
        end function
        function c_close(run) bind(C, name="ciwrap_fortran_close") result(errors)
            import :: c_ptr, c_int64_t
            type(c_ptr), value :: run
            integer(c_int64_t) :: errors
        end function
    end interface

contains

    ! Begins this process's journal. rank: from 0, of `ranks` processes.
    subroutine open_run(self, name, rank, ranks)
        class(ciwrap_recorder), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in), optional :: rank, ranks
        integer(c_int) :: own_rank, own_ranks
        own_rank = 0
        own_ranks = 1
        if (present(rank)) own_rank = int(rank, c_int)
        if (present(ranks)) own_ranks = int(ranks, c_int)
        self%run = c_open(trim(name) // c_null_char, own_rank, own_ranks)
    end subroutine

    ! Whether anything is recorded.
    logical function is_on(self)
        class(ciwrap_recorder), intent(in) :: self
        is_on = c_associated(self%run)
    end function

    ! An array, or any slice of one, to record from now on; give it the attribute `target`. Of one
    ! name the last call counts. Comparisons show the indices in reverse, as files show them.
    subroutine add(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        type(*), dimension(..), intent(in), target :: array
        real(c_double), intent(in), optional :: atol, rtol
        real(c_double) :: own_atol, own_rtol
        if (.not. c_associated(self%run)) return
        own_atol = -1
        own_rtol = -1
        if (present(atol)) own_atol = atol
        if (present(rtol)) own_rtol = rtol
        call c_add(self%run, trim(name) // c_null_char, array, own_atol, own_rtol)
    end subroutine

    ! Records all arrays as they are now.
    subroutine checkpoint(self, iteration)
        class(ciwrap_recorder), intent(in) :: self
        integer, intent(in) :: iteration
        if (.not. c_associated(self%run)) return
        call c_checkpoint(self%run, int(iteration, c_int64_t), c_null_char)
    end subroutine

    ! The same at a named point of an iteration.
    subroutine point(self, iteration, name)
        class(ciwrap_recorder), intent(in) :: self
        integer, intent(in) :: iteration
        character(*), intent(in) :: name
        if (.not. c_associated(self%run)) return
        call c_checkpoint(self%run, int(iteration, c_int64_t), trim(name) // c_null_char)
    end subroutine

    ! Whether this process is to end, since it does not match what it is held against. With MPI,
    ! take the logical or of all processes (MPI_Allreduce with MPI_LOR).
    logical function should_stop(self)
        class(ciwrap_recorder), intent(in) :: self
        should_stop = .false.
        if (c_associated(self%run)) should_stop = c_should_stop(self%run) /= 0
    end function

    ! Ends the journal; errors: how many things could not be recorded.
    subroutine close_run(self, errors)
        class(ciwrap_recorder), intent(inout) :: self
        integer, intent(out), optional :: errors
        integer(c_int64_t) :: count
        count = 0
        if (c_associated(self%run)) count = c_close(self%run)
        self%run = c_null_ptr
        if (present(errors)) errors = int(count)
    end subroutine
end module
