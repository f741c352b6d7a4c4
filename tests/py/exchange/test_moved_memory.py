"""Memory that its producer moves after an import: owners keep it, all others check the address again."""

import importlib.util
import itertools
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import case_outputs, run_cases
from matrix import Own, view_of

# Memory of that size is returned to the system at once, so that a later read crashes.
N = 1_000_000
MALLOC = """
import ctypes
M_MMAP_THRESHOLD = -3
assert ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 16) == 1
"""

# Ways in which a PyTorch tensor loses its memory.
TORCH_MOVES = {
    "data": "x.data = torch.zeros(3)",
    "set_": "x.set_()",
    "resize_": "x.resize_(4 * N)",
    "storage resized": "x.untyped_storage().resize_(0)",
}

TORCH_PRELUDE = f"""{MALLOC}
import warnings
import numpy as np
import torch
import dlfield as dl
N = {N}
torch.set_num_threads(1)
warnings.simplefilter("ignore")
sig = dl.Signature(x=dl.FieldSpec("float32", "I"))
def refused(call, *texts):
    try:
        call()
    except dl.ExchangeError as error:
        assert all(text in str(error) for text in texts), str(error)
    else:
        raise AssertionError("taken")
"""

MOVE = """
x = torch.ones(N)
def move():
    try:
        {move}
    except RuntimeError as error:
        # PyTorch refuses to free the memory.
        assert "not resizable" in str(error), error
"""


# What a case does after `x` was made; it calls `move`.
TORCH_CASES: dict[str, str] = {
    **{
        f"an owner keeps the memory, {own}": f"owned = {own}\nmove()\nassert float(np.asarray(owned).sum()) == N"
        for own in (
            "dl.from_dlpack(x)",
            "dl.from_dlpack(dl.describe(x))",
            "dl.from_dlpack(x, stream=None, device='cpu')",
            "dl.as_numpy(x)",
        )
    },
    **{
        # PyTorch itself pins memory by NumPy arrays, which do not exist for some of these dtypes.
        f"an owner keeps {dtype}": f"""
x = torch.ones(N, dtype=torch.{dtype})
owned = dl.from_dlpack(x)
move()
assert bool(owned[N - 1] == 1)
"""
        for dtype in ("bfloat16", "float8_e5m2", "bool", "complex64")
    },
    "an owner keeps a part": "x = x[N // 2 :]\nowned = dl.from_dlpack(x)\nmove()\nassert float(owned[-1]) == 1",
    **{
        f"a description is refused, {use}": f"""
seen = dl.describe(x)
move()
refused(lambda: {use}, "moved: the memory of the described <class 'torch.Tensor'>", "[{N}]", "describe the object")
"""
        for use in (
            "dl.from_dlpack(seen)",
            "dl.describe(seen)",
            "dl.as_numpy(seen)",
            "sig.bind(x=seen)",
            "dl.zeros(N) + seen",
        )
    },
    # `on_mismatch="copy"`: the body moves the memory of a field that has a temporary.
    **{
        f"a copy is not written back, {name}": f"""
sig = dl.Signature(x=dl.FieldSpec("float64", "I", access="w"), on_mismatch="copy")
old = {old}
def body():
    with sig.bind(x=x) as fields:
        dl.as_numpy(fields.x)[...] = 7
        move()
try:
    body()
except dl.ExchangeError as error:
    assert str(error).startswith('field "x": moved'), error
    assert old is None or float(old[0]) == 1
else:
    # PyTorch has kept the memory.
    assert old is None or float(old[0]) == 7
"""
        for name, old in {"owned too": "dl.from_dlpack(x)", "not owned": "None"}.items()
    },
    "moved before the block": """
bound = sig.bind(x=x)
move()
refused(bound.__enter__, 'field "x": moved')
""",
    "moved by a hook": """
class Hooked:
    array = np.zeros(N, "f4")
    __gt_data_interface__ = {None: {**array.__array_interface__, "data": array, "acquire": move}}
spec = dl.FieldSpec("float32", "I")
bound = dl.Signature(x=spec, y=spec).bind(x=x, y=Hooked())
refused(bound.__enter__, 'field "x": moved')
""",
}


@pytest.fixture(scope="module")
def torch_outputs() -> dict[str, str]:
    """What each case wrote with each way to move the memory, and how it ended if not well."""
    # Not imported here, which takes as long as all cases.
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    cases = {
        f"{how}, {name}": MOVE.replace("{move}", move) + code
        for how, move in TORCH_MOVES.items()
        for name, code in TORCH_CASES.items()
    }
    return case_outputs(TORCH_PRELUDE, cases)


@pytest.mark.parametrize("how", TORCH_MOVES)
@pytest.mark.parametrize("name", TORCH_CASES)
def test_memory_that_pytorch_moves_is_kept_or_refused(torch_outputs: dict[str, str], name: str, how: str) -> None:
    output = torch_outputs[f"{how}, {name}"]
    assert output == "", output


NUMPY_PRELUDE = f"""{MALLOC}
import numpy as np
import dlfield as dl
N = {N}
a = np.ones(N)
t = dl.zeros((2, N), dims="JI")
sig = dl.Signature(x=dl.FieldSpec("float64", "I"), y=dl.FieldSpec("float64", "I"))
def resize():
    for array in (a, labelled):
        try:
            array.resize(4 * N, refcheck=False)
        except ValueError as error:
            # NumPy refuses while the array has a weak reference.
            assert "cannot resize" in str(error), error
class Key:
    def __index__(self):
        resize()
        return 0
class Entries:
    def __init__(self, entry):
        self.entry = entry
    def __iter__(self):
        resize()
        return iter([self.entry])
class Late:
    def __init__(self, letter="d"):
        self.array = np.ones(N, letter)
    @property
    def __array_interface__(self):
        resize()
        return self.array.__array_interface__
class Mask:
    def __init__(self):
        self.array = np.ones(N, "?")
    @property
    def __array_interface__(self):
        return self.array.__array_interface__
class Freeing(Late):
    def __init__(self, mask, letter="d"):
        self.mask, self.array = mask, np.ones(N if letter == "d" else 2, letter)
        self.array[1:2] = letter == "d"
    @property
    def __array_interface__(self):
        self.mask.array.resize(1, refcheck=False)
        return self.array.__array_interface__
class Labelled(np.ndarray):
    @property
    def __gt_dims__(self):
        resize()
        return ("I",)
labelled = np.ndarray.__new__(Labelled, N)
labelled[...] = 1
def total(found):
    # A description is read at once, everything else may be read later.
    return float(np.asarray(dl.as_numpy(found)).ravel()[:N].sum())
"""

ADDRESS_THEN_CODE = {
    "key": "t[Key()] = a\n    assert float(t[0, 0]) == 1",
    "mask": "mask = Mask(); u = dl.zeros(N); u[mask] = Freeing(mask); assert float(u.sum()) == N",
    "earlier key": "mask = Mask(); assert t.T[mask, Freeing(mask, '?')].shape == (N,)",
    "labels": "assert total(dl.from_dlpack(a, dims=Entries('I'))) == N",
    "labels of a copy": "assert total(dl.from_dlpack(a, copy=True, dims=Entries('I'))) == N",
    "labels of an array": "assert total(dl.from_array(a, dims=Entries('I'))) == N",
    "labels of a description": "assert total(dl.describe(a, dims=Entries('I'))) == N",
    "origin": "assert total(dl.from_dlpack(a, origin=Entries(0))) == N",
    "halo": "assert total(dl.from_array(a, halo=Entries((0, 0)))) == N",
    "operand": "assert total(a + dl.ones(N) + Late()) == 3 * N",
    "ufunc": "assert total(np.hypot(np.ones(N), a, out=dl.zeros(N), where=Late('?'))) > N",
    "later operand": "assert total(np.add(a, Late(), out=dl.zeros(N))) == 2 * N",
    "description as operand": "assert total(np.add(dl.describe(a), Late(), out=dl.zeros(N))) == 2 * N",
    "its own labels": "assert total(dl.from_dlpack(labelled)) == N",
    "its own labels, described": "assert total(dl.describe(labelled)) == N",
    "value with labels": "t[0] = labelled",
    "argument": "assert total(sig.bind(x=a, y=Late()).x) == N",
    "argument with labels": "assert total(sig.bind(x=labelled, y=np.ones(N)).x) == N",
}


EXCHANGED_USES: dict[str, Callable[[Any], object]] = {
    "sum": lambda field: field.sum(),
    "element": lambda field: field[0],
    "view": lambda field: field[10:].max(),
    "copy": lambda field: field.copy(),
    "from_array": dl.from_array,
    "share": lambda field: field.share(),
    "addition": lambda field: dl.ones(N, "f4") + field,
    "assignment": lambda field: field.__setitem__(..., 1.0),
    "assignment of an array": lambda field: field.__setitem__(..., np.ones(N, "f4")),
    "assignment from it": lambda field: dl.ones(N, "f4").__setitem__(..., field),
    "fill": lambda field: field.fill(1.0),
    "pickle": pickle.dumps,
    "describe": dl.describe,
    "bind": lambda field: dl.Signature(x=dl.FieldSpec("float32", "I")).bind(x=field),
    "to_numpy": lambda field: field.to_numpy(),
    "numpy": np.asarray,
    "memoryview": memoryview,
    "dlpack": lambda field: field.__dlpack__(max_version=(1, 0)),
    "interface": lambda field: field.__array_interface__,
    "torch": dl.as_torch,
    "jax": dl.as_jax,
}


@pytest.mark.parametrize("use", EXCHANGED_USES.values(), ids=EXCHANGED_USES)
@pytest.mark.parametrize(
    "make", [dl.from_dlpack, lambda x: dl.from_dlpack(dl.describe(x)), lambda x: dl.from_dlpack(x)[:]]
)
def test_memory_that_pytorch_exchanges_in_its_storage_is_refused(
    torch: Any, jax: Any, make: Callable[[Any], Any], use: Callable[[Any], object]
) -> None:
    """`share_memory_` frees the memory: its reader would crash, or get the numbers of others."""
    assert jax
    tensor = torch.ones(N)
    field = make(tensor)
    use(field)
    tensor.share_memory_()
    with pytest.raises(dl.ExchangeError, match=r"since the field was imported, .*share_memory_\(\)"):
        use(field)
    assert float(dl.from_dlpack(tensor).sum()) == N


def test_the_storage_of_exchanged_memory_owns_nothing_at_its_old_place() -> None:
    """Memory that PyTorch makes there later is another storage's."""
    code = """
for _ in range(50):
    first = torch.ones(100)
    field, old = dl.from_dlpack(first), first.data_ptr()
    first.share_memory_()
    others = [torch.full((100,), 7.0) for _ in range(50)]
    again = [dl.from_dlpack(other) for other in others if other.data_ptr() == old]
    del others, first, field
    more = [torch.full((100,), 8.0) for _ in range(50)]
    assert all(float(field.sum()) == 700.0 for field in again)
"""
    run_cases(TORCH_PRELUDE, {"reused": code})


def test_code_run_within_a_call_frees_no_memory_in_use() -> None:
    """The call keeps the array in place, reads it after that code, or reports the move as an error."""
    guarded = """
try:
    {statement}
except ValueError as error:
    # Larger by then, or moved.
    assert any(text in str(error) for text in ("points", "broadcast", "moved", "shape")), error
"""
    run_cases(
        NUMPY_PRELUDE,
        {name: guarded.replace("{statement}", statement) for name, statement in ADDRESS_THEN_CODE.items()},
    )


def test_an_owned_numpy_array_stays_where_it_is() -> None:
    array = np.ones(1000)
    owned = dl.from_dlpack(array)
    part = dl.from_dlpack(array[10:20])
    for keeper in (owned, part):
        with pytest.raises(ValueError, match="cannot resize"):
            array.resize(100_000, refcheck=False)
        assert float(keeper[0]) == 1
        del keeper
    del owned
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize(100_000, refcheck=False)
    del part
    array.resize(100_000, refcheck=False)
    assert array.shape == (100_000,)


class Showing:
    """Shows an array in the entry "data" of a dictionary."""

    def __init__(self, array: Any) -> None:
        self.interface = {"version": 3, "shape": array.shape, "typestr": "<f8", "data": array}


class ByNumpysInterface(Showing):
    @property
    def __array_interface__(self) -> Any:
        return self.interface


class ByGtInterface(Showing):
    @property
    def __gt_data_interface__(self) -> Any:
        return {None: self.interface}


AS_BUFFERS: list[Callable[[Any], Any]] = [
    view_of,
    pickle.PickleBuffer,
    lambda array: view_of(array[:]),
    lambda array: np.asarray(view_of(array)),
    lambda array: view_of(np.asarray(view_of(array))),
]
AS_OBJECTS: list[Callable[[Any], Any]] = [
    ByNumpysInterface,
    ByGtInterface,
    lambda array: ByGtInterface(view_of(array)),
    lambda array: array.view(Own),
    view_of,
]
PICKLED = pickle.dumps(dl.ones(1000), 5, buffer_callback=lambda _: None)
OF_BUFFERS: list[Callable[[Any], Any]] = [
    dl.from_dlpack,
    lambda shown: dl.frombuffer(shown, (1000,), "float64"),
    lambda shown: dl.empty(1000, buffer=shown),
    lambda shown: pickle.loads(PICKLED, buffers=[shown]),
]


@pytest.mark.parametrize(
    ("show", "take"),
    [
        *itertools.product(AS_BUFFERS, OF_BUFFERS),
        *itertools.product(AS_OBJECTS, [dl.from_dlpack, dl.describe, dl.as_numpy]),
    ],
)
def test_memory_of_a_numpy_array_stays_where_it_is_whatever_shows_it(
    show: Callable[[Any], Any], take: Callable[[Any], Any]
) -> None:
    array = np.ones(1000)
    taken = take(show(array))
    with pytest.raises(ValueError, match="cannot resize"):
        array.resize(100_000, refcheck=False)
    assert dl.as_numpy(taken).ctypes.data == array.ctypes.data
    assert float(dl.as_numpy(taken).sum()) == 1000
    del taken
    array.resize(100_000, refcheck=False)


@pytest.mark.parametrize("part", [slice(None), slice(500, None), slice(None, None, -1), slice(900, 100, -3)])
@pytest.mark.parametrize("view", [lambda array, part: view_of(array)[part], lambda array, part: view_of(array[part])])
def test_a_view_of_before_an_array_was_resized_is_refused(view: Callable[[Any, slice], Any], part: slice) -> None:
    array = np.arange(1000.0)
    shown = view(array, part)
    assert (dl.as_numpy(shown) == array[part]).all()
    # This may leave the other elements where they were.
    array.resize(400, refcheck=False)
    for take in (dl.from_dlpack, dl.describe, dl.as_numpy):
        with pytest.raises(dl.ExchangeError, match="resized after the buffer was made; take a"):
            take(shown)


def test_a_description_leaves_an_array_free_to_move() -> None:
    array = np.ones(1000)
    seen = dl.describe(array)
    array.resize(100_000, refcheck=False)
    with pytest.raises(
        dl.ExchangeError, match=r"^moved: the memory of the described <class 'numpy.ndarray'> was .*\[1000\].*now"
    ):
        dl.from_dlpack(seen)
    assert dl.from_dlpack(dl.describe(array)).shape == (100_000,)


def test_memory_moved_before_the_with_block_is_refused() -> None:
    array = np.ones(1000)
    bound = dl.Signature(x=dl.FieldSpec("float64", "I", access="w")).bind(x=array)
    array.resize(100_000, refcheck=False)
    with pytest.raises(dl.ExchangeError, match=r'^field "x": moved: .*\[1000\].*now'):
        bound.__enter__()


def test_a_description_of_unmoved_memory_stays_valid() -> None:
    array = np.arange(12.0).reshape(3, 4)
    seen = dl.describe(array)
    array[1, 1] = 50
    assert dl.from_dlpack(seen).ptr == array.ctypes.data
    assert float(dl.as_numpy(seen)[1, 1]) == 50
    array.flags.writeable = False
    with pytest.raises(dl.ExchangeError, match="now it is read-only float64"):
        dl.from_dlpack(seen)


def test_a_frozen_description_of_a_writable_array_stays_valid() -> None:
    array = np.ones(3)
    array.flags.writeable = False
    seen = dl.describe(array)
    array.flags.writeable = True
    assert dl.from_dlpack(seen).readonly


def test_owners_are_released_on_any_thread_and_leave_no_reference() -> None:
    array = np.ones(1000)
    before = sys.getrefcount(array)
    mine = weakref.ref(array)
    kept = [dl.from_dlpack(array) for _ in range(8)]
    threads = [threading.Thread(target=kept.pop) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrefcount(array) == before
    assert weakref.getweakrefcount(array) == 1
    assert mine() is array
