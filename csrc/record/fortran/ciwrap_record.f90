! Recording the arrays of a running Fortran program. Copy this file, ciwrap_record_fortran.c and
! ciwrap/record.h into your program; it needs no ciwrap to build, to link or to run.
! Fortran 2018 (arrays of any kind and rank; any slice without a copy).
module ciwrap_record
    use, intrinsic :: iso_c_binding, only: c_ptr, c_null_ptr, c_char, c_int, c_int64_t, c_double, &
        c_size_t, c_null_char, c_associated, c_funptr, c_funloc
    use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64, real128
    implicit none
    private
    public :: ciwrap_recorder, ciwrap_divergence

    ! Where this process does not match the run that it is compared with. point, variable: C strings.
    type, bind(C) :: ciwrap_divergence
        integer(c_size_t) :: size
        integer(c_int64_t) :: iteration
        type(c_ptr) :: point, variable
        integer(c_int64_t) :: suspect_chunks, chunks
    end type

    ! This process's part of a recorded run, where CIWRAP_RECORD names a folder; else nothing.
    ! rank: from 0, of `ranks` processes.
    type :: ciwrap_recorder
        private
        type(c_ptr) :: run = c_null_ptr
    contains
        procedure :: open => open_run
        ! The same by an MPI communicator, the handle that is an integer (of mpi_f08: comm%mpi_val).
        ! Compile ciwrap_record_fortran.c with MPI's compiler and -DCIWRAP_RECORD_MPI for it.
        procedure :: open_mpi
        procedure :: is_on
        ! A checkpoint: prepare, expose its arrays, complete. iteration: of 32 or 64 bits.
        generic :: prepare => prepare_int32, prepare_int64
        procedure :: expose
        procedure :: complete
        ! An array to record at every checkpoint from now on: a pointer, or what has the attribute
        ! `target`, and slices of these. Its elements have to stay where they are. Of one name the
        ! last call counts. A vector subscript makes a copy, which gfortran does not refuse: expose it.
        generic :: add => add_real32, add_real64, add_complex32, add_complex64, &
            add_int8, add_int16, add_int32, add_int64, &
            add_logical1, add_logical2, add_logical4, add_logical8
        procedure :: remove
        ! Records all arrays that were added, as they are now.
        generic :: checkpoint => checkpoint_int32, checkpoint_int64
        ! The same at a named point of an iteration.
        generic :: point => point_int32, point_int64
        procedure :: should_stop
        ! The same for all processes of a communicator, each of which has to call it.
        procedure :: agree
        procedure :: on_divergence
        procedure :: errors
        procedure :: last_error
        procedure :: close => close_run
        procedure, private :: prepare_int32, prepare_int64, checkpoint_int32, checkpoint_int64, &
            point_int32, point_int64, add_real32, add_real64, add_complex32, add_complex64, &
            add_int8, add_int16, add_int32, add_int64, &
            add_logical1, add_logical2, add_logical4, add_logical8
    end type

    abstract interface
        subroutine divergence_callback(data, divergence) bind(C)
            import :: c_ptr, ciwrap_divergence
            type(c_ptr), value :: data
            type(ciwrap_divergence), intent(in) :: divergence
        end subroutine
    end interface

    interface
        function c_open(name, rank, ranks) bind(C, name="ciwrap_fortran_open") result(run)
            import :: c_ptr, c_char, c_int
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: rank, ranks
            type(c_ptr) :: run
        end function
        function c_open_mpi(name, comm) bind(C, name="ciwrap_fortran_open_mpi") result(run)
            import :: c_ptr, c_char, c_int
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: comm
            type(c_ptr) :: run
        end function
        function c_agree(run, comm) bind(C, name="ciwrap_fortran_agree") result(answer)
            import :: c_ptr, c_int
            type(c_ptr), value :: run
            integer(c_int), value :: comm
            integer(c_int) :: answer
        end function
        subroutine c_put(run, name, array, is_exposed, atol, rtol) bind(C, name="ciwrap_fortran_put")
            import :: c_ptr, c_char, c_int, c_double
            type(c_ptr), value :: run
            character(kind=c_char), intent(in) :: name(*)
            type(*), dimension(..), intent(in), target :: array
            integer(c_int), value :: is_exposed
            real(c_double), value :: atol, rtol
        end subroutine
        subroutine c_remove(run, name) bind(C, name="ciwrap_fortran_remove")
            import :: c_ptr, c_char
            type(c_ptr), value :: run
            character(kind=c_char), intent(in) :: name(*)
        end subroutine
        subroutine c_prepare(run, iteration, point) bind(C, name="ciwrap_fortran_prepare")
            import :: c_ptr, c_char, c_int64_t
            type(c_ptr), value :: run
            integer(c_int64_t), value :: iteration
            character(kind=c_char), intent(in) :: point(*)
        end subroutine
        subroutine c_complete(run) bind(C, name="ciwrap_fortran_complete")
            import :: c_ptr
            type(c_ptr), value :: run
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
        subroutine c_on_divergence(run, callback) bind(C, name="ciwrap_fortran_on_divergence")
            import :: c_ptr, c_funptr
            type(c_ptr), value :: run
            type(c_funptr), value :: callback
        end subroutine
        function c_errors(run) bind(C, name="ciwrap_fortran_errors") result(count)
            import :: c_ptr, c_int64_t
            type(c_ptr), value :: run
            integer(c_int64_t) :: count
        end function
        function c_last_error(run, text, bytes) bind(C, name="ciwrap_fortran_last_error") result(code)
            import :: c_ptr, c_char, c_int, c_size_t
            type(c_ptr), value :: run
            character(kind=c_char), intent(out) :: text(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: code
        end function
        function c_close(run) bind(C, name="ciwrap_fortran_close") result(errors)
            import :: c_ptr, c_int64_t
            type(c_ptr), value :: run
            integer(c_int64_t) :: errors
        end function
    end interface

contains

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

    subroutine open_mpi(self, name, comm)
        class(ciwrap_recorder), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: comm
        self%run = c_open_mpi(trim(name) // c_null_char, int(comm, c_int))
    end subroutine

    ! Whether anything is recorded.
    logical function is_on(self)
        class(ciwrap_recorder), intent(in) :: self
        is_on = c_associated(self%run)
    end function

    ! Between prepare and complete: an array, any slice of one, or any expression. It is read now, and
    ! never later.
    subroutine expose(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        type(*), dimension(..), intent(in), target :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 1_c_int, atol, rtol)
    end subroutine

    subroutine complete(self)
        class(ciwrap_recorder), intent(in) :: self
        if (c_associated(self%run)) call c_complete(self%run)
    end subroutine

    ! Before an array that was added ceases to exist.
    subroutine remove(self, name)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        if (c_associated(self%run)) call c_remove(self%run, trim(name) // c_null_char)
    end subroutine

    ! Whether this process is to end, since it does not match the run that it is compared with. With
    ! MPI, take the logical or of all processes (MPI_Allreduce with MPI_LOR).
    logical function should_stop(self)
        class(ciwrap_recorder), intent(in) :: self
        should_stop = .false.
        if (c_associated(self%run)) should_stop = c_should_stop(self%run) /= 0
    end function

    logical function agree(self, comm)
        class(ciwrap_recorder), intent(in) :: self
        integer, intent(in) :: comm
        agree = c_agree(self%run, int(comm, c_int)) /= 0
    end function

    ! What is called at every checkpoint that does not match, under `--on-divergence callback`.
    subroutine on_divergence(self, callback)
        class(ciwrap_recorder), intent(in) :: self
        procedure(divergence_callback) :: callback
        if (c_associated(self%run)) call c_on_divergence(self%run, c_funloc(callback))
    end subroutine

    ! How many things could not be recorded so far.
    integer(int64) function errors(self)
        class(ciwrap_recorder), intent(in) :: self
        errors = 0
        if (c_associated(self%run)) errors = c_errors(self%run)
    end function

    ! What could not be recorded last, and why; blank for nothing. code: one of ciwrap/record.h.
    subroutine last_error(self, text, code)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(out) :: text
        integer, intent(out), optional :: code
        character(kind=c_char) :: words(512)
        integer :: found, i
        found = 0
        words(1) = c_null_char
        if (c_associated(self%run)) found = c_last_error(self%run, words, size(words, kind=c_size_t))
        text = ""
        do i = 1, min(len(text), size(words))
            if (words(i) == c_null_char) exit
            text(i:i) = words(i)
        end do
        if (present(code)) code = found
    end subroutine

    ! Ends the journal; errors: how many things could not be recorded. What is recorded after it is
    ! lost, and said.
    subroutine close_run(self, errors)
        class(ciwrap_recorder), intent(inout) :: self
        integer, intent(out), optional :: errors
        integer(c_int64_t) :: count
        count = 0
        if (c_associated(self%run)) count = c_close(self%run)
        if (present(errors)) errors = int(count)
    end subroutine

    subroutine put(self, name, array, is_exposed, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        type(*), dimension(..), intent(in), target :: array
        integer(c_int), intent(in) :: is_exposed
        class(*), intent(in), optional :: atol, rtol
        call c_put(self%run, trim(name) // c_null_char, array, is_exposed, bound_of(atol), &
            bound_of(rtol))
    end subroutine

    ! A bound of any kind of number; -1, which says nothing, if it is not given.
    real(c_double) function bound_of(given)
        class(*), intent(in), optional :: given
        bound_of = -1
        if (.not. present(given)) return
        select type (given)
        type is (real(real32))
            bound_of = real(given, c_double)
        type is (real(real64))
            bound_of = real(given, c_double)
        type is (real(real128))
            bound_of = real(given, c_double)
        type is (integer)
            bound_of = real(given, c_double)
        class default
            bound_of = ieee_value(bound_of, ieee_quiet_nan)  ! which the library refuses, and counts
        end select
    end function

    subroutine prepare_int32(self, iteration, point)
        class(ciwrap_recorder), intent(in) :: self
        integer(int32), intent(in) :: iteration
        character(*), intent(in), optional :: point
        if (.not. c_associated(self%run)) return
        if (present(point)) then
            call c_prepare(self%run, int(iteration, c_int64_t), trim(point) // c_null_char)
        else
            call c_prepare(self%run, int(iteration, c_int64_t), c_null_char)
        end if
    end subroutine

    subroutine prepare_int64(self, iteration, point)
        class(ciwrap_recorder), intent(in) :: self
        integer(int64), intent(in) :: iteration
        character(*), intent(in), optional :: point
        if (.not. c_associated(self%run)) return
        if (present(point)) then
            call c_prepare(self%run, int(iteration, c_int64_t), trim(point) // c_null_char)
        else
            call c_prepare(self%run, int(iteration, c_int64_t), c_null_char)
        end if
    end subroutine

    subroutine checkpoint_int32(self, iteration)
        class(ciwrap_recorder), intent(in) :: self
        integer(int32), intent(in) :: iteration
        if (c_associated(self%run)) &
            call c_checkpoint(self%run, int(iteration, c_int64_t), c_null_char)
    end subroutine

    subroutine checkpoint_int64(self, iteration)
        class(ciwrap_recorder), intent(in) :: self
        integer(int64), intent(in) :: iteration
        if (c_associated(self%run)) &
            call c_checkpoint(self%run, int(iteration, c_int64_t), c_null_char)
    end subroutine

    subroutine point_int32(self, iteration, name)
        class(ciwrap_recorder), intent(in) :: self
        integer(int32), intent(in) :: iteration
        character(*), intent(in) :: name
        if (c_associated(self%run)) &
            call c_checkpoint(self%run, int(iteration, c_int64_t), trim(name) // c_null_char)
    end subroutine

    subroutine point_int64(self, iteration, name)
        class(ciwrap_recorder), intent(in) :: self
        integer(int64), intent(in) :: iteration
        character(*), intent(in) :: name
        if (c_associated(self%run)) &
            call c_checkpoint(self%run, int(iteration, c_int64_t), trim(name) // c_null_char)
    end subroutine

    subroutine add_real32(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        real(real32), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_real64(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        real(real64), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_complex32(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        complex(real32), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_complex64(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        complex(real64), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_int8(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        integer(int8), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_int16(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        integer(int16), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_int32(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        integer(int32), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_int64(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        integer(int64), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_logical1(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        logical(1), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_logical2(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        logical(2), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_logical4(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        logical(4), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine

    subroutine add_logical8(self, name, array, atol, rtol)
        class(ciwrap_recorder), intent(in) :: self
        character(*), intent(in) :: name
        logical(8), dimension(..), pointer, intent(in) :: array
        class(*), intent(in), optional :: atol, rtol
        if (c_associated(self%run)) call put(self, name, array, 0_c_int, atol, rtol)
    end subroutine
end module
