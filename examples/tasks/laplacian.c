#include <stddef.h>

/* Reads one point on each side of the domain in I and J; strides are in elements. */
void laplacian(const double *inp, const ptrdiff_t *x, double *out, const ptrdiff_t *y, const ptrdiff_t *points)
{
    for (ptrdiff_t i = 0; i < points[0]; i++)
        for (ptrdiff_t j = 0; j < points[1]; j++)
            for (ptrdiff_t k = 0; k < points[2]; k++) {
                const double *at = inp + i * x[0] + j * x[1] + k * x[2];
                out[i * y[0] + j * y[1] + k * y[2]] = at[-x[0]] + at[x[0]] + at[-x[1]] + at[x[1]] - 4.0 * *at;
            }
}
