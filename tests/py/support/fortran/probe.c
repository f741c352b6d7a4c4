/* What probe.f90 is for C and f2py. */
#include <stdint.h>

void probe_(double *a, const int *n, const int *m, int64_t *at)
{
    *at = (int64_t)(intptr_t)a;
    for (int64_t i = 0; i < (int64_t)*n * *m; i++)
        a[i] += 1.0;
}
