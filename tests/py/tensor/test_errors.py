"""Bad input: the error of SPEC 9, and a message that names the argument and what was found."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import dlfield as dl


class Case(NamedTuple):
    """`call` raises `error`, and its message matches each of `parts`."""

    call: Callable[[], object]
    error: type[Exception]
    parts: tuple[str, ...]


def zeros(*parts: str, error: type[Exception], shape: Any = (3, 4), dtype: Any = "f8", **keywords: Any) -> Case:
    """The case of a `zeros` call with one wrong argument."""
    return Case(lambda: dl.zeros(shape, dtype, **keywords), error, parts)


big_endian_subarray = np.dtype((">f4", (2,)))

CASES: dict[str, Case] = {
    "dtype big-endian": zeros("dtype", r">f8|big.endian", error=dl.DTypeError, dtype=">f8"),
    "dtype big-endian subarray": zeros("dtype", r">f4|big.endian", error=dl.DTypeError, dtype=big_endian_subarray),
    "dtype structured": zeros("dtype", "structured|fields", error=dl.DTypeError, dtype=[("a", "f8")]),
    "dtype object": zeros("dtype", "object", error=dl.DTypeError, dtype=object),
    "dtype text": zeros("dtype", "str|U", error=dl.DTypeError, dtype="U4"),
    "dtype bytes": zeros("dtype", "bytes|S", error=dl.DTypeError, dtype="S3"),
    "dtype void": zeros("dtype", "void|V", error=dl.DTypeError, dtype="V8"),
    "dtype datetime": zeros("dtype", "M8|datetime", error=dl.DTypeError, dtype="M8[s]"),
    "dtype timedelta": zeros("dtype", "m8|timedelta", error=dl.DTypeError, dtype="m8[s]"),
    "dtype long double": zeros("dtype", "float128|longdouble", error=dl.DTypeError, dtype=np.longdouble),
    "dtype long complex": zeros("dtype", "complex256|clongdouble", error=dl.DTypeError, dtype=np.clongdouble),
    "dtype unknown": zeros("dtype", "nonsense", error=dl.DTypeError, dtype="nonsense"),
    "dtype of like": Case(lambda: dl.zeros_like(np.zeros(2), ">f8"), dl.DTypeError, ("dtype", r">f8|big.endian")),
    "dtype of from_array": Case(lambda: dl.from_array(np.zeros(2), "O"), dl.DTypeError, ("dtype", "object")),
    "shape negative": zeros("shape", "-4", error=dl.LayoutError, shape=(3, -4)),
    "shape text": zeros("shape", error=TypeError, shape="34"),
    "shape fraction": zeros("shape", error=TypeError, shape=(3, 4.5)),
    "shape too large for 64 bits": zeros("shape", error=dl.LayoutError, shape=(1 << 70,)),
    "size overflows": zeros("shape|size", error=dl.LayoutError, shape=(1 << 31, 1 << 31, 2)),
    "size of one row overflows": zeros("shape|size", error=dl.LayoutError, shape=(1 << 62,)),
    "padding overflows": zeros(
        "shape|size|alignment_size", error=dl.LayoutError, shape=(1 << 30, 1), alignment_size=1 << 40
    ),
    "memory that cannot be had": zeros(error=MemoryError, shape=(1 << 45,)),
    "layout twice the same": zeros("layout", "0, 0", error=dl.LayoutError, layout=(0, 0)),
    "layout too short": zeros("layout", error=dl.LayoutError, layout=(0,)),
    "layout too long": zeros("layout", "3", error=dl.LayoutError, layout=(0, 1, 2)),
    "layout rank too large": zeros("layout", "0, 2", error=dl.LayoutError, layout=(0, 2)),
    "layout negative": zeros("layout", "-1", error=dl.LayoutError, layout=(-1, 0)),
    "layout fraction": zeros("layout", error=TypeError, layout=(0, 1.0)),
    "alignment_size zero": zeros("alignment_size", "0", error=dl.LayoutError, alignment_size=0),
    "alignment_size negative": zeros("alignment_size", "-8", error=dl.LayoutError, alignment_size=-8),
    "alignment_size huge": zeros("alignment_size", error=dl.LayoutError, alignment_size=1 << 70),
    "alignment_size text": zeros("alignment_size", error=TypeError, alignment_size="64"),
    "aligned_index too short": zeros("aligned_index", error=dl.LayoutError, aligned_index=(1,)),
    "aligned_index negative": zeros("aligned_index", "-1", error=dl.LayoutError, aligned_index=(0, -1)),
    "padding unknown": zeros("padding", "col", error=dl.LayoutError, padding="col"),
    "backend unknown": zeros("backend", "gt:nothing", "gt:cpu_kfirst", error=dl.LayoutError, backend="gt:nothing"),
    "backend not text": zeros("backend", error=TypeError, backend=3),
    "dims twice the same": zeros("dims", "I", error=dl.DimsError, dims="II"),
    "dims too few": zeros("dims", error=dl.DimsError, dims="I"),
    "dims too many": zeros("dims", error=dl.DimsError, dims="IJK"),
    "dims empty label": zeros("dims", error=dl.DimsError, dims=("I", "")),
    "halo too short": zeros("halo", error=dl.LayoutError, halo=(1,)),
    "halo negative": zeros("halo", "-1", error=dl.LayoutError, halo=(1, -1)),
    "halo wider than the shape": zeros("halo", error=dl.LayoutError, halo=(2, 1)),
    "halo pair wider than the shape": zeros("halo", error=dl.LayoutError, halo=((0, 4), 1)),
    "halo triple": zeros("halo", error=(dl.LayoutError, TypeError), halo=((1, 1, 1), 1)),  # type: ignore[arg-type]
    "origin too long": zeros("origin", error=dl.LayoutError, origin=(0, 0, 0)),
    "origin negative": zeros("origin", "-1", error=dl.LayoutError, origin=(0, -1)),
    "origin beyond the shape": zeros("origin", "5", error=dl.LayoutError, origin=(0, 5)),
    "device gpu": zeros("device|cuda", "cuda", error=dl.DeviceError, device="gpu"),
    "device pair": zeros("device|cuda", error=dl.DeviceError, device=(2, 0)),
    "device pinned": zeros("cuda_host", error=dl.DeviceError, device="cuda_host"),
    "device unknown": zeros("device", "tpu", error=dl.DeviceError, device="tpu"),
    "device index": zeros("device", "cuda:x", error=dl.DeviceError, device="cuda:x"),
    "stream on the host": zeros("stream", "5", error=dl.Error, stream=5),
    "preset exists": Case(lambda: dl.register_preset("numpy"), dl.LayoutError, ("numpy",)),
    "preset layout": Case(lambda: dl.register_preset("bad1", layout=(0, 0, 1)), dl.LayoutError, ("layout", "0, 0, 1")),
    "preset alignment": Case(lambda: dl.register_preset("bad2", alignment=0), dl.LayoutError, ("alignment", "0")),
    "preset device": Case(lambda: dl.register_preset("bad4", device="tpu"), dl.DeviceError, ("device", "tpu")),
    "index out of bounds": Case(lambda: dl.zeros((3, 4))[3, 0], IndexError, ("3",)),
    "index below bounds": Case(lambda: dl.zeros((3, 4))[:, -5], IndexError, ("-5",)),
    "index too long": Case(lambda: dl.zeros((3, 4))[0, 0, 0], IndexError, ("3|too many",)),
    "index ellipsis twice": Case(lambda: dl.zeros((3, 4))[..., ...], IndexError, ("llipsis|'...'",)),
    "index text": Case(lambda: dl.zeros((3, 4))["I"], IndexError, ()),
    "index of a scalar": Case(lambda: dl.zeros(())[0], IndexError, ()),
    "length of a scalar": Case(lambda: len(dl.zeros(())), TypeError, ()),
    "transpose twice the same": Case(lambda: dl.zeros((3, 4)).transpose(0, 0), ValueError, ("axes|axis|dims",)),
    "transpose too few": Case(lambda: dl.zeros((3, 4)).transpose(0), ValueError, ("axes|axis|dims",)),
    "transpose unknown label": Case(lambda: dl.zeros((3, 4)).transpose("J", "K"), dl.DimsError, ("K",)),
    "contiguous order": Case(lambda: dl.zeros(3).is_contiguous("Z"), ValueError, ("order", "Z")),  # type: ignore[arg-type]
    "to a missing device": Case(lambda: dl.zeros(3).to_device("cuda:0"), dl.DeviceError, ("cuda",)),
    "to CuPy from the host": Case(lambda: dl.zeros(3).to_cupy(), dl.NoSuchBufferError, ("cpu|host",)),
    "Device unknown": Case(lambda: dl.Device("tpu:0"), dl.DeviceError, ("tpu",)),
    "Device code unknown": Case(lambda: dl.Device((99, 0)), dl.DeviceError, ("99",)),
    "truth of many": Case(lambda: bool(dl.zeros((3, 4))), ValueError, ()),
    "number of many": Case(lambda: float(dl.zeros((3, 4))), TypeError, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named(name: str) -> None:
    case = CASES[name]
    with pytest.raises(case.error) as caught:
        case.call()
    for part in case.parts:
        assert re.search(part, str(caught.value)), f"{part!r} is not in {str(caught.value)!r}"


def test_a_failed_registration_leaves_no_preset() -> None:
    with pytest.raises(dl.LayoutError):
        dl.register_preset("bad5", layout=(1, 1, 1))
    assert "bad5" not in dl.presets()


@pytest.mark.parametrize("make", [dl.empty, dl.zeros, dl.ones, lambda shape, **kw: dl.full(shape, 1, **kw)])
def test_every_allocation_function_checks(make: Any) -> None:
    for keywords in ({"layout": (1, 1)}, {"padding": "x"}, {"backend": "x"}, {"origin": (9, 9)}):
        with pytest.raises(dl.LayoutError, match=next(iter(keywords))):
            make((2, 3), **keywords)
    with pytest.raises(TypeError, match="unknown"):
        make((2, 3), unknown=1)


@pytest.mark.parametrize(
    ("error", "builtins"),
    [
        (dl.LayoutError, (ValueError,)),
        (dl.DTypeError, (TypeError,)),
        (dl.DimsError, (ValueError,)),
        (dl.DeviceError, (RuntimeError,)),
        (dl.ExchangeError, (BufferError, ValueError)),
        (dl.NoSuchBufferError, (LookupError,)),
        (dl.NotAnArrayError, (TypeError,)),
    ],
)
def test_each_error_is_the_builtin_a_user_would_catch(error: type[Exception], builtins: tuple[type, ...]) -> None:
    assert all(issubclass(error, builtin) for builtin in (dl.Error, *builtins))


def test_cuda_error_names_the_missing_library() -> None:
    with pytest.raises(dl.DeviceError, match=r"(?i)cuda"):
        dl.zeros(3, device="cuda:1")


def test_memory_error_leaves_the_process_well() -> None:
    for _ in range(100):
        with pytest.raises(MemoryError):
            dl.empty((1 << 45,))
    assert dl.ones(3).to_numpy().tolist() == [1.0, 1.0, 1.0]


def endless() -> Iterator[int]:
    while True:
        yield 1


@pytest.mark.parametrize("keyword", ["shape", "layout", "aligned_index", "halo", "origin"])
def test_sequences_without_end_are_refused(keyword: str) -> None:
    arguments: dict[str, Any] = {"shape": (2, 2), keyword: endless()}
    with pytest.raises(dl.LayoutError, match=f"{keyword}: more than 64"):
        dl.zeros(**arguments)


@pytest.mark.parametrize("wrong", [True, False, np.True_])
@pytest.mark.parametrize("keyword", ["shape", "halo", "origin", "layout", "alignment_size", "aligned_index"])
def test_bools_are_no_integers(keyword: str, wrong: Any) -> None:
    """As in NumPy, where `zeros((a == b,))` is a TypeError too."""
    value = wrong if keyword == "alignment_size" else (wrong,)
    with pytest.raises(TypeError, match=rf"{keyword}: .*{wrong}"):
        dl.zeros(**dict[str, Any]({"shape": (3,), keyword: value}))


def test_labels_without_end_are_refused() -> None:
    for dims in (map(str, endless()), "I" * 100_000):
        with pytest.raises(dl.DimsError, match="dims"):
            dl.zeros((2, 2), dims=dims)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "error"), [(300, OverflowError), ("abc", (ValueError, TypeError)), ([1, 2, 3], ValueError)]
)
def test_values_that_do_not_fit_are_named(value: Any, error: Any) -> None:
    with pytest.raises(error, match="fill_value"):
        dl.full((2, 2), value, "int8")
    with pytest.raises(error, match="value"):
        dl.zeros((2, 2), "int8")[...] = value
