/* What the routines for f2py in docs/fortran.md are for C. */
#include <stddef.h>

void smooth_(const double *u, double *mean, const int *ni, const int *nj, const int *nk)
{
    const ptrdiff_t row = *ni, plane = row * *nj;
    for (ptrdiff_t k = 0; k < *nk; k++)
        for (ptrdiff_t j = 1; j < *nj - 1; j++)
            for (ptrdiff_t i = 1; i < *ni - 1; i++) {
                const ptrdiff_t at = i + row * j + plane * k;
                mean[at] = 0.25 * (u[at - 1] + u[at + 1] + u[at - row] + u[at + row]);
            }
}

void scale_(double *u, const double *factor, const int *n, const int *lda, const int *nj, const int *nk)
{
    for (ptrdiff_t row = 0; row < (ptrdiff_t)*nj * *nk; row++)
        for (ptrdiff_t i = 0; i < *n; i++)
            u[row * *lda + i] *= *factor;
}
