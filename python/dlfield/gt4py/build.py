"""Compiling stencils with GT4Py's C++ backends on Python 3.14."""

import sys
from importlib.util import find_spec

__all__ = ["prepare_build"]


def prepare_build() -> None:
    """Fill the build variables of distutils, so that GT4Py can compile stencils on Python 3.14.

    GT4Py up to 1.2.3 reads them from a private name, which is None there until they were asked for once: without this
    call `gtscript.stencil` with a C++ backend ends in an AttributeError. `wrap` and the demo call it. Elsewhere, and
    without GT4Py, it has no effect.

    Example
    -------
    >>> from dlfield.gt4py import prepare_build
    >>> prepare_build()
    """
    if sys.hexversion < 0x030E0000 or find_spec("gt4py") is None:
        return
    # The import replaces distutils by that of setuptools, whose variables are meant.
    from gt4py.cartesian.backend import pyext_builder

    distutils = getattr(pyext_builder, "distutils", None)
    if distutils is not None:
        distutils.sysconfig.get_config_vars()
