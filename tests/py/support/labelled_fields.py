"""Random labelled fields, and functions of two of them."""

from hypothesis import strategies as st

import dlfield as dl
from untyped import np

SIZES = {"I": 2, "J": 3, "K": 1, "x": 3, "0": 2}
BINARY = [np.add, np.subtract, np.multiply, np.maximum, np.less_equal, np.minimum]


@st.composite
def fields(draw: st.DrawFn, dtypes: tuple[str, ...] = ("f8", "f4", "i4", "u1")) -> dl.Tensor:
    """A field with some of the labels in any order and layout, padded, aligned, often a view of a larger one."""
    dims = draw(st.lists(st.sampled_from(sorted(SIZES)), unique=True, max_size=4))
    shape = [draw(st.sampled_from([1, SIZES[label]])) for label in dims]
    starts = [draw(st.integers(0, 2)) for _ in dims]
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in dims]
    whole = [start + extent * abs(step) for start, extent, step in zip(starts, shape, steps, strict=True)]
    layout = draw(st.permutations(range(len(dims))))
    made = dl.zeros(
        whole,
        draw(st.sampled_from(dtypes)),
        dims=dims,
        layout=layout,
        alignment_size=draw(st.sampled_from([1, 16, 24])),
        # Uncut fields with the same label have the same halo.
        halo=[extent // 2 for extent in whole],
    )
    made[...] = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 9, whole).astype(made.dtype)
    index = []
    for start, extent, step in zip(starts, shape, steps, strict=True):
        positions = range(start, start + extent * abs(step), abs(step))
        picked = positions if step > 0 else positions[::-1]
        stop: int | None = picked[-1] + step
        index.append(slice(picked[0], stop if stop is not None and stop >= 0 else None, step))
    return made[tuple(index)] if index else made
