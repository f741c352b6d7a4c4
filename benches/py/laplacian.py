"""The stencil of the measurements."""

import numpy as np
from gt4py.cartesian import gtscript


def laplacian(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]) -> None:
    with computation(PARALLEL), interval(...):  # type: ignore[name-defined]  # noqa: F821
        out = (  # noqa: F841
            inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0] - 4.0 * inp[0, 0, 0]
        )
