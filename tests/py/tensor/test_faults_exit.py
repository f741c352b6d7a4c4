"""The interpreter ends with objects alive and threads inside dlfield, and a process forks while they are.

Each case runs many times, in forks of a process that has imported everything and has one thread.
"""

import importlib.util
import sys

import pytest

from childproc import run_python

PRELUDE = """
import os, sys, threading, time, random, signal, warnings
import numpy as np
import dlfield as dl
from dlpack_structs import release, take
from fakes import ProducerWithoutKeywords
from fakes_interfaces import Hooked

warnings.simplefilter("ignore")
# 8 MB: some milliseconds without the GIL, in several threads.
LARGE = np.arange(2.0**20).reshape(64, 128, 128)
SMALL = np.ones((3, 4))

def hooked():
    return Hooked(SMALL, [], called=True)

def copy_large():
    field = dl.zeros(LARGE.shape, backend="F")
    field[...] = LARGE
    field.copy()

def fill_large():
    dl.full(LARGE.shape, 2.5)

def export():
    field = dl.ones((30, 40))
    np.from_dlpack(field[1:])
    release(take(field.__dlpack__(max_version=(1, 3))))
    memoryview(field).tobytes()

def import_and_drop():
    dl.from_dlpack(SMALL)
    dl.describe(SMALL)
    dl.from_array(SMALL)

def call_python():
    dl.from_dlpack(ProducerWithoutKeywords(SMALL))
    dl.from_dlpack(hooked())
    dl.describe(hooked())

PLAIN = dl.Signature(a=dl.FieldSpec("float64", "IJ"), b=dl.FieldSpec("float64", "IJ", access="w"))

def bind():
    with PLAIN.bind(a=hooked(), b=np.zeros((3, 4))) as fields:
        fields.a.ptr

def share():
    dl.from_array(SMALL).share()

def report():
    dl.memory_report()

def convert():
    field = dl.ones((30, 40))
    field.astype("float32").fill(2)

USES = [copy_large, fill_large, export, import_and_drop, call_python, bind, convert, share, report]
# A child of `fork` waits for ever for a module that another thread of its parent was importing: here, by its first use.
for use in USES:
    use()

# Use dlfield in a thread until the returned function is called.
def start(use):
    stop = threading.Event()
    def work():
        while not stop.is_set():
            use()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return lambda: (stop.set(), thread.join())

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
# What runs no code of Python inside of a call, and what does.
PLAIN_USES = ["copy_large", "fill_large", "export", "import_and_drop", "report"]
CALLING_PYTHON = ["call_python", "bind", "convert", "share"]

# How the main thread ends: at once, while it is in dlfield itself, and with objects that are dropped last.
ENDINGS = """
kept = []

def at_once():
    pass

def after_a_copy():
    copy_large()

def with_objects():
    kept.extend([dl.ones(9), dl.ones(9).__dlpack__(), dl.from_dlpack(hooked()), np.asarray(dl.ones(9))])
    kept.append(kept)

ENDINGS = [at_once, after_a_copy, with_objects]
"""


# Before 3.14 Python ends such a thread by unwinding its stack, also where Rust has called Python code. Rust cannot let
# that through, and the process aborts: https://github.com/python/cpython/issues/87135
USED_AT_THE_END = PLAIN_USES + (CALLING_PYTHON if sys.version_info >= (3, 14) else [])


# Where a thread is when its process ends or forks is random.
turns_of_each = pytest.mark.parametrize("turns", [3, pytest.param(15, marks=pytest.mark.exhaustive)])


@turns_of_each
def test_the_interpreter_ends_while_threads_are_in_dlfield(turns: int) -> None:
    """Daemon threads are stopped where they take the GIL again, which may be at the end of a copy."""
    output = run_python(
        PRELUDE
        + ENDINGS
        + f"""
random.seed(1)
for running in {", ".join(USED_AT_THE_END)}:
    print(running.__name__, flush=True)
    for turn in range({turns}):
        child = os.fork()
        if not child:
            signal.alarm(120)
            for _ in range(3):
                start(running)
            time.sleep(random.random() * 0.01)
            ENDINGS[turn % 3]()
            sys.exit(0)
        status = ended(child)
        if status:
            print(f"turn {{turn}}: exit status {{status}}")
"""
    )
    assert output.split() == USED_AT_THE_END, output


@turns_of_each
def test_a_fork_while_another_thread_is_in_dlfield(turns: int) -> None:
    """The child has none of the other threads, whose locks stay locked in it. It copies and ends all the same."""
    output = run_python(
        PRELUDE
        + f"""
random.seed(2)
kept = dl.from_array(LARGE)
for running in USES:
    print(running.__name__, flush=True)
    stop = start(running)
    for turn in range({turns}):
        time.sleep(random.random() * 0.01)
        child = os.fork()
        if not child:
            signal.alarm(120)
            for use in USES:
                use()
            assert (dl.from_array(LARGE, backend="F").to_numpy() == LARGE).all()
            assert (kept.to_numpy() == LARGE).all()
            # The other way out does not end the interpreter.
            os._exit(0) if turn % 2 else sys.exit(0)
        status = ended(child)
        if status:
            print(f"turn {{turn}}: exit status {{status}}")
    stop()
"""
    )
    assert sorted(output.split()) == sorted(PLAIN_USES + CALLING_PYTHON), output


# What a process has at its end, by name.
ALIVE = {
    "tensors": "kept = [dl.ones((1000,)) for _ in range(10)]",
    "capsules": "kept = [dl.ones(9).__dlpack__(), dl.ones(9).__dlpack__(max_version=(1, 3))]",
    "exports of imports": "kept = [dl.from_dlpack(np.ones(9)).__dlpack__(max_version=(1, 3))]",
    "arrays on our memory": "kept = [np.from_dlpack(dl.ones(9)), np.asarray(dl.ones(9)), memoryview(dl.ones(9))]",
    "a cycle": "kept = [dl.ones(9)]; kept.append(kept)",
    "a tensor in sys": "sys.kept = dl.ones(9), dl.ones(9).__dlpack__()",
    "a tensor in atexit": "import atexit; atexit.register(lambda field: field[...], dl.ones(9))",
    "a thread at work": "start(lambda: np.from_dlpack(dl.ones(9)))",
    # A C consumer may keep a tensor after Python has ended: here, until an exit handler of the C library.
    "a tensor for C": "delete_at_exit(dl.ones((1000,)))",
    "an array for C": "delete_at_exit(dl.from_dlpack(np.ones(1000)))",
    "objects that make others": """
class Last:
    def __init__(self):
        self.array, self.describe, self.own = np.ones(3), dl.describe, dl.from_dlpack
    def __del__(self, write=os.write):
        write(1, f"{self.describe(self.array).shape} {self.own(self.array).shape}\\n".encode())
builtins.kept = [Last(), dl.from_dlpack(np.ones(5))]
here = Last()
here.itself = here
described = dl.describe(np.ones(4))
""",
}
# PyTorch frees its memory without the GIL, here in a callback of a call that PyO3 has attached for. The owners have to
# be released by Python: a pinned array, a buffer, a reference, and a `release` hook.
IN_A_CALLBACK = """
released = []
class Releasing:
    def __init__(self):
        entry = np.ones(3).__array_interface__
        self.__gt_data_interface__ = {{None: {{**entry, "data": np.ones(3), "release": self.release}}}}
    def release(self):
        released.append(sum(range(100)))
class Labels:
    def __iter__(self):
        found = torch.from_dlpack(dl.from_dlpack(made()))
        del found
        return iter("I")
labels = Labels()
for made in (lambda: np.ones(3), lambda: bytearray(24), lambda: torch.ones(3), Releasing):
    for _ in range(20):
        {call}
assert released == [4950] * 20, released
"""
ON_OUR_MEMORY = "kept = [{name}.from_dlpack(dl.ones(9, 'f4')), dl.from_dlpack({name}.ones(9))]"
CALLS = ["dl.zeros(3, dims=labels)", "dl.from_array(np.ones(3), dims=labels)"]


@pytest.mark.parametrize("framework", ["torch", pytest.param("jax.numpy", marks=pytest.mark.exhaustive)])
def test_the_interpreter_ends_well_with_objects_alive(framework: str) -> None:
    code = """
import builtins, ctypes

def delete_at_exit(field):
    managed = take(field.__dlpack__(max_version=(1, 3)))
    at_exit = ctypes.CDLL(None).__cxa_atexit
    at_exit.argtypes = [ctypes.c_void_p] * 3
    assert at_exit(managed.deleter, ctypes.addressof(managed), None) == 0

def end_with(name, code):
    print(name, flush=True)
    child = os.fork()
    if not child:
        signal.alarm(120)
        exec(code, globals())
        print("end")
        sys.exit(0)
    assert ended(child) == 0
"""
    cases = dict(ALIVE)
    if importlib.util.find_spec(framework.partition(".")[0]):
        cases[framework] = ON_OUR_MEMORY.format(name=framework)
        if framework == "torch":
            cases |= {f"what PyTorch frees in {call}": IN_A_CALLBACK.format(call=call) for call in CALLS}
    # The end of a process takes long after the import of a framework.
    runs = [f"end_with({name!r}, {alive!r})" for name, alive in cases.items()]
    if len(cases) > len(ALIVE):
        runs.insert(len(ALIVE), f"import {framework}")
    expected = "".join(f"{name}\nend\n" + "(3,) (3,)\n" * 2 * ("Last" in alive) for name, alive in cases.items())
    assert run_python("\n".join([PRELUDE, code, *runs])) == expected
