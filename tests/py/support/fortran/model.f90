! Arrays of a module, which f2py shows as NumPy arrays.
module state
  implicit none
  real(8) :: table(3, 2)
  real(8), allocatable :: u(:, :, :)
contains
  subroutine allocate_u(ni, nj, nk)
    integer, intent(in) :: ni, nj, nk
    allocate (u(ni, nj, nk), source=1.0d0)
  end subroutine
  subroutine sum_of_u(total)
    real(8), intent(out) :: total
    total = sum(u)
  end subroutine
end module
