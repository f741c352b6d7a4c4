"""Programs that capture graphs with other libraries, around calls of dlfield and of their own kernels."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import dlfield as dl
from capture_programs import REPLAYS, fields
from programs import SIZE, driver, use_first, values


def replay(source: Any, doubled: Any, launch: Callable[[], object]) -> None:
    """Replay a graph with other contents of `source`, which it doubles."""
    for number in range(REPLAYS):
        source[...] = number
        driver().wait_for_work()
        launch()
        driver().wait_for_work()
        assert values(doubled) == [2.0 * number] * SIZE


def by_cupy() -> None:
    cupy: Any = importlib.import_module("cupy")
    source, target, doubled = fields(3)
    stream = cupy.cuda.Stream(non_blocking=True)
    # Compiles the kernel, which a capture refuses.
    cupy.multiply(cupy.from_dlpack(target), 2, out=cupy.from_dlpack(doubled))
    driver().wait_for_work()
    with stream:
        stream.begin_capture()
        with dl.cuda.stream(stream):
            target[...] = source
            cupy.multiply(cupy.from_dlpack(target), 2, out=cupy.from_dlpack(doubled))
        graph = stream.end_capture()
    replay(source, doubled, lambda: graph.launch(stream))


def by_pytorch() -> None:
    torch: Any = importlib.import_module("torch")
    source, target, doubled = fields(3)
    torch.mul(torch.from_dlpack(target), 2, out=torch.from_dlpack(doubled))
    driver().wait_for_work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), dl.cuda.stream(torch.cuda.current_stream()):
        target[...] = source
        torch.mul(torch.from_dlpack(target), 2, out=torch.from_dlpack(doubled))
    replay(source, doubled, graph.replay)
    # A tensor of PyTorch's that belongs to the graph is read in the same way.
    with torch.cuda.graph(again := torch.cuda.CUDAGraph()), dl.cuda.stream(torch.cuda.current_stream()):
        result = torch.from_dlpack(source) * 2
        doubled[...] = dl.from_dlpack(result)
    replay(source, doubled, again.replay)


def by_cuda_core() -> None:
    core: Any = importlib.import_module("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    source, target, doubled = fields(3)
    builder = stream.create_graph_builder().begin_building()
    with dl.cuda.stream(builder.stream):
        target[...] = source
        doubled[...] = target
    graph = builder.end_building().complete()
    for number in range(REPLAYS):
        source[...] = number
        driver().wait_for_work()
        graph.launch(stream)
        stream.sync()
        assert values(doubled) == [float(number)] * SIZE


def first_used_by(library: str) -> None:
    """What a library has made is imported, copied and dropped, before dlfield has used the device."""
    if library == "cupy":
        theirs = importlib.import_module("cupy").arange(3.0)
    elif library == "torch":
        theirs = importlib.import_module("torch").arange(3.0, device="cuda")
    else:
        theirs = importlib.import_module("jax.numpy").arange(3.0)
    field = dl.from_dlpack(theirs)
    assert field.to_device("cpu").tolist() == [0.0, 1.0, 2.0]
    del field, theirs
    use_first()
