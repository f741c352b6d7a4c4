"""Hints in error messages: the argument as it should be written, and the nearest existing name."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import dlfield
from untyped import np

# Type checkers reject most of these calls.
dl: Any = dlfield

CASES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "halo, one number": (lambda: dl.zeros((3, 4, 5), halo=1), TypeError, r"each dimension, .*: halo=\(1, 1, 1\)$"),
    "halo, one number, one dimension": (lambda: dl.zeros(3, halo=1), TypeError, r"halo=\(1,\)$"),
    "number of a gpu": (lambda: dl.zeros(3, device="gpu:1"), dl.DeviceError, "did you mean 'cuda:1'.$"),
    "number after a dash": (lambda: dl.zeros(3, device="cuda-2"), dl.DeviceError, "did you mean 'cuda:2'.$"),
    "axes of a scalar": (lambda: dl.zeros(()).transpose(0), dl.DimsError, "allowed is no axis$"),
    "axis of a scalar": (
        lambda: dl.zeros(()).sum(axis=1),
        dl.DimsError,
        "allowed is 0 or -1, as there are no dimensions$",
    ),
    "index of no element": (lambda: dl.zeros(0)[0], IndexError, "allowed is none: there are no elements$"),
    "halo, before a sub-array": (lambda: dl.zeros((3, 4), ("f4", (2,)), halo=1), TypeError, r"halo=\(1, 1\)$"),
    "halo, NumPy's number": (lambda: dl.zeros((3, 4), halo=np.int64(2)), TypeError, r"halo=\(2, 2\)$"),
    "too many numbers of like": (lambda: dl.zeros_like(3, 4, 5), TypeError, "they are data, dtype"),
    "halo, of no kind": (lambda: dl.zeros((3, 4), halo=1.5), TypeError, r"1\.5 is not a sequence; .*\)$"),
    "halo, set": (lambda: setattr(dl.zeros((3, 4)), "halo", 2), TypeError, r"halo=\(2, 2\)$"),
    "sizes, two": (lambda: dl.zeros(3, 4), dl.DTypeError, r"dtype: 4 .*a tuple: zeros\(\(3, 4\)\)$"),
    "sizes, three": (lambda: dl.empty(3, 4, 5), TypeError, r"2 positional .* 3 were given.*: empty\(\(3, 4, 5\)\)$"),
    "sizes, numpy's": (lambda: dl.ones(np.int64(3), 4), dl.DTypeError, r"ones\(\(3, 4\)\)$"),
    "labels as text": (lambda: dl.zeros((3, 4)).sum("IJ"), dl.DimsError, r"a tuple of these: axis=\('I', 'J'\)$"),
    "labels as a list": (lambda: dl.zeros((3, 4)).mean(["J", "I"]), dl.DimsError, r": axis=\('J', 'I'\)$"),
    "labels with a quote": (
        lambda: dl.zeros((3, 4), dims=("it's", "x")).sum(["it's", "x"]),
        dl.DimsError,
        r""": axis=\("it's", 'x'\)$""",
    ),
    "no labels": (lambda: dl.zeros((3, 4)).sum("Ix"), dl.DimsError, "a tuple of these$"),
    "labels twice": (lambda: dl.zeros((3, 4)).sum("II"), dl.DimsError, "a tuple of these$"),
    "labels and a number": (lambda: dl.zeros((3, 4)).sum(["I", "J", 7]), dl.DimsError, "a tuple of these$"),
    "labels without end": (lambda: dl.zeros((3, 4)).sum("I" * 10**6), dl.DimsError, "a tuple of these$"),
    "integers only": (
        lambda: dl.from_array([1.5], "i4"),
        dl.DTypeError,
        "^data: its dtype cannot be cast by the rule 'same_kind'; cast it first",
    ),
    "domain, set": (
        lambda: setattr(dl.ones((5,), halo=(1,)), "domain_view", 3),
        AttributeError,
        r"field\.domain_view\[\.\.\.\] = value writes to it$",
    ),
    "transpose, set": (lambda: setattr(dl.ones((2, 3)), "T", np.ones((3, 2))), AttributeError, r"field\.T\[\.\.\.\]"),
    "too many arguments": (
        lambda: dl.full((3,), 4, "f8", "C"),
        TypeError,
        "3 .* 4 .*they are shape, fill_value, dtype",
    ),
    "too many of like": (lambda: dl.zeros_like(np.zeros(3), "f8", 1), TypeError, "they are data, dtype"),
    "dtype is no size": (
        lambda: dl.zeros((3,), 4.5),
        dl.DTypeError,
        r"4\.5 is not an element type; allowed is a name such as 'float64', .* \(.*\)$",
    ),
    "dims, comma": (lambda: dl.zeros((3, 4), dims="lat,lon"), dl.DimsError, r'dims=\("lat", "lon"\)'),
    "dims, space": (lambda: dl.zeros((3, 4), dims="lat lon"), dl.DimsError, r'dims=\("lat", "lon"\)'),
    "dims, one word": (lambda: dl.zeros((3,), dims="lat"), dl.DimsError, r'3 labels for 1 .*dims=\("lat",\)'),
    "dims, a letter twice": (
        lambda: dl.zeros((3,), dims="level"),
        dl.DimsError,
        r'"e" is repeated, at 1.*dims=\("level",\)',
    ),
    "dims, imported": (lambda: dl.from_dlpack(np.zeros((3, 4)), dims="x, y"), dl.DimsError, r'dims=\("x", "y"\)'),
    "dims, sequence": (
        lambda: dl.zeros((3,), dims=("x", "y")),
        dl.DimsError,
        "2 labels for 1 dimensions; .*dimension$",
    ),
    "dims, too long": (lambda: dl.zeros((3,), dims="ab" * 99), dl.DimsError, "more than 64 letters"),
    "keyword alignment": (lambda: dl.zeros(3, alignment=64), TypeError, "'alignment'; write alignment_size, in bytes"),
    "keyword order": (lambda: dl.zeros(3, order="F"), TypeError, "'order'; write backend='C' or backend='F', .*layout"),
    "keyword layout_map": (lambda: dl.ones(3, layout_map=(0,)), TypeError, "'layout_map'; write layout"),
    "keyword shape": (lambda: dl.zeros_like(np.ones(3), shape=4), TypeError, "'shape'; the shape is that of the data"),
    "keyword shape of a copy": (
        lambda: dl.from_array([1], shape=4),
        TypeError,
        "'shape'; the shape is that of the data",
    ),
    "keyword misspelt": (lambda: dl.full(3, 1, halos=(1,)), TypeError, r"full\(\) .*'halos'; did you mean 'halo'\?"),
    "keyword, first argument": (lambda: dl.zeros(shap=3), TypeError, "shap"),
    "keyword like none": (
        lambda: dl.zeros(3, nonsense=3),
        TypeError,
        "'nonsense'; allowed are shape, dtype, backend, ",
    ),
    "keyword of from_dlpack": (
        lambda: dl.from_dlpack(np.zeros(3), dim="I"),
        TypeError,
        r"'dim'; did you mean 'dims'\?",
    ),
    "keyword of describe": (lambda: dl.describe(np.zeros(3), writeable=True), TypeError, "did you mean 'writable'"),
    "dtype": (lambda: dl.zeros(3, "flaot64"), dl.DTypeError, r"'flaot64' .*; did you mean 'float64'\?"),
    "dtype of ml_dtypes": (lambda: dl.zeros(3, "bfloat_16"), dl.DTypeError, r"did you mean 'bfloat16'\?"),
    "dtype, letters of another case": (lambda: dl.zeros(3, "FLOAT32"), dl.DTypeError, r"did you mean 'float32'\?"),
    "dtype like none": (lambda: dl.zeros(3, "zzz"), dl.DTypeError, r"'zzz' is not an element type; allowed is a name"),
    "dtype of a FieldSpec": (lambda: dl.FieldSpec("flaot64", "I"), dl.DTypeError, r"did you mean 'float64'\?"),
    "dtype, too long": (
        lambda: dl.zeros(3, "float64" * 9999),
        dl.DTypeError,
        r"… is not an element type; allowed is a name",
    ),
    "backend": (lambda: dl.zeros(3, backend="gt:cpu_ifrst"), dl.LayoutError, r"did you mean 'gt:cpu_ifirst'\?"),
    "backend, letters of another case": (lambda: dl.zeros(3, backend="NumPy"), dl.LayoutError, "did you mean 'numpy'"),
    "backend of from_array": (lambda: dl.from_array([1], backend="gtx68"), dl.LayoutError, "did you mean 'gtx86'"),
    "backend like none": (lambda: dl.zeros(3, backend="?!"), dl.LayoutError, "register_preset$"),
    "describe a list": (lambda: dl.describe([1.0, 2.0]), dl.NotAnArrayError, r"'list'.*dl\.from_array\(\.\.\.\)"),
    "describe a tuple": (lambda: dl.describe((1.0, 2.0)), dl.NotAnArrayError, r"'tuple'.*dl\.from_array\(\.\.\.\)"),
    "own a number": (lambda: dl.from_dlpack(1.0), dl.NotAnArrayError, r"'float'.*dl\.from_array\(\.\.\.\)"),
    "own a class": (lambda: dl.from_dlpack(np.ndarray), dl.NotAnArrayError, "has no protocol of an array"),
    "aligned_index far outside": (
        lambda: dl.zeros(3, aligned_index=(100,)),
        dl.LayoutError,
        "100 .* allowed is 0 to 3",
    ),
    "aligned_index of no points": (
        lambda: dl.zeros((2, 0), aligned_index=(0, 1)),
        dl.LayoutError,
        "axis 1 of extent 0",
    ),
    "aligned_index of like": (
        lambda: dl.zeros_like(np.zeros(3), aligned_index=(4,)),
        dl.LayoutError,
        "aligned_index: 4 at axis 0 of extent 3",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_message_says_what_to_write(name: str) -> None:
    call, error, pattern = CASES[name]
    with pytest.raises(error) as caught:
        call()
    assert re.search(pattern, str(caught.value)), str(caught.value)


def test_hints_know_registered_presets(scratch_preset: str) -> None:
    dl.register_preset(scratch_preset)
    with pytest.raises(dl.LayoutError, match=re.escape(f"did you mean '{scratch_preset}'?")):
        dl.zeros(3, backend=scratch_preset.replace("test:", "tset:"))


def test_the_index_of_a_lower_halo_is_an_aligned_index() -> None:
    """The default may also be passed if the halo leaves no point inside."""
    default = dl.zeros((4, 0), alignment_size=64, halo=((4, 0), (0, 0)))
    stated = dl.zeros((4, 0), alignment_size=64, aligned_index=(4, 0))
    assert default.aligned_index == stated.aligned_index == (4, 0)


def test_views_align_an_index_of_theirs() -> None:
    field = dl.zeros((8, 9), alignment_size=64, aligned_index=(3, 5))
    inside, outside = field[2:, 1:], field[:2, 6:]
    assert (inside.aligned_index, inside.alignment_size) == ((1, 4), 64)
    assert outside.aligned_index == (0, 0)
    assert outside.ptr % outside.alignment_size == 0
    for view in (inside, outside):
        copy: Any = view.copy()
        assert copy.aligned_index == dl.zeros_like(view).aligned_index == view.aligned_index


def test_hints_do_not_hide_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflib.get_close_matches", None)
    with pytest.raises(dl.DTypeError, match="'flaot64' is not an element type"):
        dl.zeros(3, "flaot64")
