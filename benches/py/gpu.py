"""Measure on a GPU: copies, casts, fills, exchange, stencils and allocation, compared with CuPy and PyTorch.

All results are checked bit for bit. It takes under five minutes; `sizes` makes it small for a test.
"""

import gc
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cupy
import numpy as np
import torch

import dlfield as dl
from interleaved import Time, best_measured
from report import Grid, Line, heading

# Elements of the last dimension by the bytes of one: 1 GB in all, far more than the caches of any device hold.
WIDTHS = {16: 256, 8: 512, 4: 1024, 2: 2048, 1: 4096}
OF_SIZE = {16: "complex128", 8: "float64", 4: "float32", 2: "float16", 1: "uint8"}
# Types that are cast.
TYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "bfloat16", "f4", "f8", "c8", "c16")

Cases = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    large: int = 512
    cast: int = 1 << 26
    most: int = 1 << 30
    rounds: int = 7
    seconds: float = 0.01
    calls: int = 1000


def wait() -> None:
    """Wait for the work of all streams: the legacy default stream is ordered after it."""
    dl.cuda.synchronize(0, 1)


class Measurement:
    """The comparisons and the speeds so far."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.lines: list[Line] = []
        self.speeds: list[list[str]] = []
        self.refused: list[str] = []

    def times(self, cases: Mapping[str, Callable[[], object]], *, waits: bool = True) -> dict[str, Time]:
        """Return nanoseconds per call of each case, including the work on the device unless it is not waited for."""

        def seconds(case: Callable[[], object], calls: int) -> float:
            wait()
            start = time.perf_counter()
            for _ in range(calls):
                case()
            if waits:
                wait()
            return (time.perf_counter() - start) / calls

        counts = {}
        for name, case in cases.items():
            once = min(seconds(case, 1) for _ in range(2))
            counts[name] = max(1, min(self.sizes.calls, int(self.sizes.seconds / max(once, 1e-9))))
        return best_measured(
            {name: partial(seconds, case, counts[name]) for name, case in cases.items()}, self.sizes.rounds
        )

    def usable(self, what: str, cases: Cases) -> Cases:
        """Return the cases that run; the others are listed."""
        found = {}
        for name, case in cases.items():
            try:
                case()
            except Exception as error:  # each library raises other types
                if name == "dlfield":
                    raise
                self.refused.append(f"{what}: {name}: {str(error).splitlines()[0][:80]}")
            else:
                found[name] = case
        return found

    def compare(
        self,
        what: str,
        cases: Cases,
        goals: Mapping[str, float],
        moved: int = 0,
        check: Callable[[], bool] | None = None,
    ) -> None:
        """Measure dlfield and its peers. `goals` are ratios by peer; `check` looks at what dlfield has written."""
        if check is not None:
            cases["dlfield"]()
            assert check(), what
        took = self.times(self.usable(what, cases))
        self.lines += [Line(what, took["dlfield"], who, took[who], goals.get(who)) for who in took if who != "dlfield"]
        if moved:
            speeds = (
                f"{moved / took[who]:.0f}" if who in took else ""
                for who in ("dlfield", "CuPy", "PyTorch", "in one piece")
            )
            self.speeds.append([what, *speeds])


def assign(target: Any, source: Any) -> None:
    target[...] = source


def is_same(one: dl.Tensor, other: dl.Tensor) -> bool:
    """Whether two fields of one device have the same bits."""
    if one.nbytes < 1 << 20:
        return bool(one.to_device("cpu").tobytes() == other.to_device("cpu").tobytes())
    return bool(torch.equal(bits(one), bits(other)))


def bits(field: dl.Tensor) -> torch.Tensor:
    """Return the elements as integers, as NaNs are not equal."""
    tensor = dl.as_torch(field)
    parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return parts.view(getattr(torch, f"int{8 * parts.element_size()}"))


def numbered(shape: Sequence[int], dtype: Any, **keywords: Any) -> dl.Tensor:
    """Make a field on the device with different elements: random bits, rotated by the number of the plane."""
    size = int(np.prod(shape[1:]))
    bits = np.random.default_rng(1).integers(0, 2, size * np.dtype(dtype).itemsize, "u1")
    if dtype != "bool":
        bits = np.random.default_rng(1).integers(0, 256, bits.size, "u1")
    plane = dl.from_array(bits.view(dtype).reshape(shape[1:]), device="cuda")
    field = dl.empty(shape, dtype, device="cuda", **keywords)
    for number in range(shape[0]):
        rotated = number % shape[1]
        field[number, rotated:] = plane[: shape[1] - rotated]
        field[number, :rotated] = plane[shape[1] - rotated :]
    return field


def moves(source: dl.Tensor, target: dl.Tensor) -> Cases:
    """Return the copies from one field to another by each library, and one of as many bytes in one piece."""
    flat, other = (dl.empty(source.nbytes, "uint8", device="cuda") for _ in range(2))
    cases: Cases = {"dlfield": partial(assign, target, source), "in one piece": partial(assign, flat, other)}
    arrays, tensors = ([library(field) for field in (target, source)] for library in (dl.as_cupy, dl.as_torch))
    return {**cases, "CuPy": lambda: cupy.copyto(*arrays), "PyTorch": lambda: tensors[0].copy_(tensors[1])}


def rows(into: Measurement) -> None:
    """Measure copies of rows that are contiguous on both sides."""
    for size in (8, 4, 2, 1):
        edge, dtype = into.sizes.large, OF_SIZE[size]
        shape = (edge, edge, max(1, WIDTHS[size] * edge // 512))
        base, target = numbered(shape, dtype), dl.zeros(shape, dtype, device="cuda")
        narrow = base[:, :, : -(-shape[2] * 255 // 256)]
        padded = dl.zeros(narrow.shape, dtype, device="cuda", alignment_size=256)
        layouts = {
            # Without its labels, by which the assignment would turn it back.
            "rows, (1, 0, 2) to C": (dl.from_dlpack(base.transpose(1, 0, 2), dims="IJK"), target),
            "rows, inside of a halo of 3": (base[3:-3, 3:-3, 3:-3], target[3:-3, 3:-3, 3:-3]),
            "rows, every second plane": (base[::2], target[::2]),
            "rows, to padded rows": (narrow, padded),
        }
        for name, (one, other) in layouts.items():
            goals = {"CuPy": 1.0, "PyTorch": 1.0, "in one piece": 1 / 0.85}
            check = partial(is_same, one, other)
            into.compare(f"{name}, {dtype}", moves(one, other), goals, 2 * one.nbytes, check)


def transposes(into: Measurement) -> None:
    """Measure copies into another order of the dimensions."""
    shares = {16: 0.90, 8: 0.90, 4: 0.88, 2: 0.78, 1: 0.60}
    for size, share in shares.items():
        edge, dtype = into.sizes.large, OF_SIZE[size]
        shape = (edge, edge, max(1, WIDTHS[size] * edge // 512))
        source = numbered(shape, dtype)
        orders: dict[str, dict[str, Any]] = {"C to F": {"backend": "F"}, "C to (2, 0, 1)": {"layout": (2, 0, 1)}}
        for name, keywords in orders.items():
            target = dl.zeros(shape, dtype, device="cuda", **keywords)
            goals = {"CuPy": 1.0, "PyTorch": 1.0, "in one piece": 1 / share}
            check = partial(is_same, source, target)
            into.compare(f"{name}, {dtype}", moves(source, target), goals, 2 * source.nbytes, check)


def casts(into: Measurement) -> None:
    """Measure every pair of types that is cast, in one order and into another one."""
    shape = (into.sizes.cast >> 12, 64, 64)
    targets = {name: dl.zeros(shape, dtype_of(name), device="cuda") for name in TYPES}
    turned = {name: dl.zeros(shape, dtype_of(name), device="cuda", backend="F") for name in TYPES}
    for one in TYPES:
        source = numbered(shape, dtype_of(one))
        host = source[:4].to_device("cpu")
        alike = dl.zeros(shape, dtype_of(one), device="cuda", backend="F")
        for other in TYPES:
            if one == other:
                continue
            try:
                targets[other][:1] = source[:1]
            except TypeError:
                continue
            by_host = dl.from_array(host, dtype_of(other))
            what = f"cast {one} to {other}"
            check = partial(starts_with, targets[other], by_host)
            cases: Cases = {"dlfield": partial(assign, targets[other], source)}
            if not {one, other} & {"u2", "u4", "u8"}:
                cases["PyTorch"] = partial(torch.Tensor.copy_, dl.as_torch(targets[other]), dl.as_torch(source))
            into.compare(what, cases, {"PyTorch": 1.1}, source.nbytes + targets[other].nbytes, check)
            wider = (source, alike) if source.nbytes > targets[other].nbytes else (targets[other], turned[other])
            check = partial(starts_with, turned[other], by_host)
            cases = {
                "dlfield": partial(assign, turned[other], source),
                "the same without a cast": partial(assign, *wider[::-1]),
            }
            into.compare(f"{what}, C to F", cases, {"the same without a cast": 1.3}, 0, check)


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype with a name of `TYPES`."""
    return dl.zeros(0, name).dtype


def starts_with(field: dl.Tensor, expected: dl.Tensor) -> bool:
    """Whether the first planes of a field have the bits of another one."""
    return field[: expected.shape[0]].to_device("cpu").tobytes() == expected.tobytes()


def fills(into: Measurement) -> None:
    """Measure whole fields: fills, new ones, and copies to the host and back."""
    edge = into.sizes.large
    shape, goals = (edge, edge, edge), {"CuPy": 1.0, "PyTorch": 1.0}
    field, array = dl.empty(shape, device="cuda"), cupy.empty(shape)
    tensor = torch.empty(shape, dtype=torch.float64, device="cuda")
    fills: Cases = {
        "dlfield": partial(assign, field, 0.1),
        "CuPy": lambda: array.fill(0.1),
        "PyTorch": lambda: tensor.fill_(0.1),
    }
    into.compare("fill", fills, goals, field.nbytes, lambda: is_same(field, dl.full(shape, 0.1, device="cuda")))
    for name in ("zeros", "empty"):
        made: Cases = {
            "dlfield": partial(getattr(dl, name), shape, device="cuda"),
            "CuPy": partial(lambda name: getattr(cupy, name)(shape), name),
            "PyTorch": partial(getattr(torch, name), shape, dtype=torch.float64, device="cuda"),
        }
        into.compare(name, made, goals)
    pageable = np.random.default_rng(1).random(shape)
    pinned, held = dl.from_array(pageable, device="cuda_host"), torch.from_numpy(pageable.copy())
    whole = lambda: field.to_device("cpu").tobytes() == pageable.tobytes()  # noqa: E731
    there: Cases = {
        "dlfield": partial(assign, field, pageable),
        "CuPy": lambda: array.set(pageable),
        "PyTorch": lambda: tensor.copy_(held),
    }
    into.compare("pageable memory to the device", there, goals, field.nbytes, whole)
    back: Cases = {"dlfield": partial(field.to_device, "cpu"), "CuPy": lambda: array.get(), "PyTorch": tensor.cpu}
    into.compare("`to_device('cpu')`", back, goals, field.nbytes)
    field[...] = 0.0
    there = {"dlfield": partial(assign, field, pinned), "PyTorch": lambda: tensor.copy_(locked, non_blocking=True)}
    locked = held.pin_memory()
    into.compare("pinned memory to the device", there, goals, field.nbytes, whole)
    pinned[...] = 0.0
    back = {"dlfield": partial(assign, pinned, field), "PyTorch": lambda: locked.copy_(tensor, non_blocking=True)}
    is_back = lambda: pinned.tobytes() == pageable.tobytes()  # noqa: E731
    into.compare("the device to pinned memory", back, goals, field.nbytes, is_back)


def small(into: Measurement) -> None:
    """Measure copies of 32^3 elements, until they return."""
    layouts: dict[str, dict[str, Any]] = {
        "C to C": {},
        "C to F": {"backend": "F"},
        "C to padded rows": {"alignment_size": 512},
    }
    for name, keywords in layouts.items():
        source, target = numbered((32, 32, 32), "float64"), dl.zeros((32, 32, 32), device="cuda", **keywords)
        what = f"32^3 elements, {name}, launch to return"
        cases = moves(source, target)
        del cases["in one piece"]
        took = into.times(into.usable(what, cases), waits=False)
        assert is_same(source, target), what
        into.lines += [Line(what, took["dlfield"], who, took[who], 1.2) for who in took if who != "dlfield"]


def exchange(into: Measurement) -> None:
    """Measure how arrays of one library become those of another."""
    import tvm_ffi

    field, array = dl.zeros((34, 34, 20), device="cuda"), cupy.empty((34, 34, 20))
    tensor = torch.empty((34, 34, 20), device="cuda")
    pairs: list[tuple[str, Callable[[], object], str, Callable[[], object], float]] = [
        (
            "describe(torch)",
            lambda: dl.describe(tensor),
            "tvm_ffi.from_dlpack(torch)",
            lambda: tvm_ffi.from_dlpack(tensor),
            1.0,
        ),
        (
            "from_dlpack(torch)",
            lambda: dl.from_dlpack(tensor),
            "tvm_ffi.from_dlpack(torch)",
            lambda: tvm_ffi.from_dlpack(tensor),
            1.2,
        ),
        (
            "describe(cupy)",
            lambda: dl.describe(array),
            "tvm_ffi.from_dlpack(cupy)",
            lambda: tvm_ffi.from_dlpack(array),
            1.0,
        ),
        (
            "from_dlpack(cupy)",
            lambda: dl.from_dlpack(array),
            "tvm_ffi.from_dlpack(cupy)",
            lambda: tvm_ffi.from_dlpack(array),
            1.2,
        ),
        (
            "as_torch(field)",
            lambda: dl.as_torch(field),
            "torch.from_dlpack(cupy)",
            lambda: torch.from_dlpack(array),
            0.8,
        ),
        ("as_cupy(field)", lambda: dl.as_cupy(field), "cupy.asarray(torch)", lambda: cupy.asarray(tensor), 0.8),
    ]
    assert dl.as_torch(field).data_ptr() == dl.from_dlpack(dl.as_cupy(field)).ptr == field.ptr
    for name, ours, peer, theirs, goal in pairs:
        into.compare(f"`{name}`", {"dlfield": ours, f"`{peer}`": theirs}, {f"`{peer}`": goal})


def stencils(into: Measurement) -> None:
    """Measure a small GT4Py stencil on arrays of each library, wrapped and plain."""
    from gt4py.cartesian import gtscript

    import dlfield.gt4py
    from laplacian import laplacian

    dlfield.gt4py.prepare_build()
    plain = gtscript.stencil(backend="gt:gpu")(laplacian)
    wrapped = dlfield.gt4py.wrap(plain)
    shape, domain = (34, 34, 20), (32, 32, 20)
    host = np.random.default_rng(1).random(shape)
    fields = dl.from_array(host, backend="gt:gpu"), dl.zeros(shape, backend="gt:gpu")
    arguments: dict[str, tuple[Any, Any]] = {
        "Tensor": fields,
        "CuPy": (cupy.asarray(host), cupy.zeros(shape)),
        "PyTorch": (torch.from_numpy(host).cuda(), torch.zeros(shape, dtype=torch.float64, device="cuda")),
    }

    def called(stencil: Any, inp: Any, out: Any) -> None:
        stencil(inp, out, origin=(1, 1, 0), domain=domain)

    peer = "the plain stencil, CuPy"
    for name, stencil, who, goal in (
        *(("`wrap`", wrapped, who, 1.0) for who in arguments),
        ("plain", plain, "Tensor", 1.4),
    ):
        cases: Cases = {
            "dlfield": partial(called, stencil, *arguments[who]),
            peer: partial(called, plain, *arguments["CuPy"]),
        }
        into.compare(f"stencil gt:gpu {shape}, {name}, {who}", cases, {peer: goal})
    results = [dl.from_dlpack(out).to_device("cpu").tobytes() for _, out in arguments.values()]
    assert results[1:] == results[:-1]


def allocation(into: Measurement) -> None:
    """Measure memory that is allocated and released again, with a warm pool."""
    for bytes_ in (1 << power for power in range(10, 31, 4) if 1 << power <= into.sizes.most):
        cases: Cases = {
            "dlfield": partial(dl.empty, bytes_, "uint8", device="cuda"),
            "CuPy": partial(cupy.empty, bytes_, "u1"),
        }
        cases["PyTorch"] = partial(torch.empty, bytes_, dtype=torch.uint8, device="cuda")
        into.compare(f"allocation and release of {bytes_} bytes", cases, {"CuPy": 1.2})


SECTIONS = (rows, transposes, casts, fills, small, exchange, stencils, allocation)


def measure(sizes: Sizes = Sizes()) -> tuple[list[Line], list[Grid], str]:
    """Measure everything.

    Return the comparisons, missed goals first; the tables, of which the page shows the first; and the heading.
    """
    into = Measurement(sizes)
    # The objects of the frameworks take a tenth of a second to search, before each comparison.
    gc.freeze()
    for section in SECTIONS:
        begun = time.perf_counter()
        try:
            section(into)
        except ImportError as error:
            into.refused.append(f"{section.__name__}: {error}")
        # What a section has allocated goes before the next one.
        gc.collect()
        print(f"{section.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)
    if into.refused:
        print("Not compared:", *into.refused, sep="\n")
    properties = torch.cuda.get_device_properties(0)
    versions = {
        properties.name: "",
        "driver": driver(),
        "dlfield": dl.__version__,
        "cupy": getattr(cupy, "__version__", "of tests"),
        "torch": torch.__version__,
    }
    header = ["copy", "dlfield", "CuPy", "PyTorch", "in one piece"]
    is_cast = [speed[0].startswith("cast") for speed in into.speeds]
    grids = [
        Grid(
            "cuda", name, header, [speed for speed, cast in zip(into.speeds, is_cast, strict=True) if cast == of_casts]
        )
        for name, of_casts in (("copies, GB/s", False), ("casts, GB/s", True))
    ]
    return sorted(into.lines, key=lambda line: (not line.loses, -line.ratio)), grids, heading(versions)


def driver() -> str:
    """Return the version of the driver."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError):
        return "of an unknown version"
