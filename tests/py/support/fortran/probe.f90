subroutine probe(a, n, m, at)
  use iso_c_binding
  integer, intent(in) :: n, m
  real(c_double), intent(inout), target :: a(n, m)
  integer(c_int64_t), intent(out) :: at
  at = transfer(c_loc(a), at)
  a = a + 1.0_c_double
end subroutine
