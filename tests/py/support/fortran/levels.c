/* What the module for ctypes in docs/fortran.md is for C: an array that it allocates and frees, and a sum of it. */
#include <stdlib.h>

static double *u;
static int points;

double *allocate_levels(int ni, int nj, int nk)
{
    points = ni * nj * nk;
    u = calloc((size_t)points, sizeof *u);
    return u;
}

void free_levels(void)
{
    free(u);
    u = NULL;
}

double sum_of_levels(void)
{
    double sum = 0.0;
    for (int i = 0; i < points; i++)
        sum += u[i];
    return sum;
}
