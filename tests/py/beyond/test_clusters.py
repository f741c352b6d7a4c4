"""Tensors in clusters of processes: Dask's transfers, spilling and steps of `map_overlap`, and Ray's object store."""

import pytest

import clusters

pytestmark = pytest.mark.exhaustive

# Blocks of the lower half of dimension 0 belong to one worker, those of the upper half to the other; a piece is cut
# where its block is. Dask drops such wishes when it fuses tasks.
PLACED = """
def place(key):
    position = key[1:] if len(key) == 4 else (key[2] + key[5],)
    return [first if position[0] < 2 else second]

dask.config.set({"optimization.fuse.active": False})

def received():
    logs = client.run(lambda dask_worker: [
        (e["total"], [str(key) for key in e["keys"]]) for e in dask_worker.transfer_incoming_log
    ])
    return {worker: [entry for entry in logs[worker]] for worker in (first, second)}
"""


def test_tensors_stay_what_they_are_between_workers_and_on_disk() -> None:
    clusters.run_on(
        clusters.DASK,
        """
        def attributes(field):
            names = ("shape", "dtype", "dims", "layout", "strides", "halo", "origin", "alignment_size", "aligned_index",
                     "readonly")
            aligned = field.domain_view.ptr % field.alignment_size if field.alignment_size > 1 else 0
            return type(field).__name__, [getattr(field, name) for name in names], aligned, float(field.sum())

        def elsewhere(field, worker):
            return client.submit(attributes, field, workers=[worker], pure=False).result()

        # Here no worker has imported anything of dlfield, nor does what follows name it.
        def joined(field):
            from dask.array.core import concatenate3
            return type(concatenate3([field, field])).__name__

        assert client.run(lambda: "dlfield" in __import__("sys").modules) == {first: False, second: False}
        held = client.scatter(dl.ones((4, 4)), workers=[first])
        for worker in (first, second):
            assert client.submit(joined, held, workers=[worker], pure=False).result() == "Tensor"

        # Also without a compute point, of a view, and of what may not be written to.
        whole = dl.full((65, 31, 7), 2.5, "f4", backend="gtmc", dims="KIJ", halo=(1, (1, 2), 0), alignment_size=128)
        for field in (whole, whole.as_readonly(), dl.ones((3, 0)), dl.ones(()), whole[1:-1, 2:]):
            held = client.scatter(field, workers=[first])
            expected = attributes(field.copy() if field.strides != field.copy().strides else field)
            assert elsewhere(held, first) == expected, (elsewhere(held, first), expected)
            assert elsewhere(held, second) == expected
            assert attributes(held.result()) == expected

        # 8 MiB each in memory of 16 MiB: Dask has to know their size to send any to disk.
        fields = [dl.full((1024, 1000), n, halo=(2, 2), alignment_size=64) for n in range(6)]
        held = client.scatter(fields, workers=[first])
        on_disk = client.run(lambda dask_worker: len(dask_worker.data.disk), workers=[first])[first]
        assert on_disk >= 3, on_disk
        for field, future in zip(fields, held):
            assert elsewhere(future, first) == attributes(field)
        assert client.run(lambda dask_worker: len(dask_worker.data.disk), workers=[first])[first] >= 3
        """,
    )


def test_steps_in_two_processes_are_bitwise_those_in_one_and_send_what_the_formula_says() -> None:
    clusters.run_on(
        clusters.DASK + PLACED,
        """
        halo, chunks = ((2, 1), (1, 1), (0, 0)), (8, 16, 4)
        field = dl.from_array(np.random.default_rng(0).random((32, 32, 4)), backend="gtmc", halo=halo)

        def step(block):
            assert (type(block).__name__, block.halo, block.readonly) == ("Tensor", halo, False)
            assert block.domain_view.ptr % block.alignment_size == 0
            values = block.to_numpy()
            new = (values[:-3, 1:-1] + values[2:-1, :-2] + values[3:, 2:] - values[2:-1, 1:-1]) / 2
            block.domain_view[...] = new
            return block

        with dask.annotate(workers=place):
            array = dlfield.dask.from_tensor(field, chunks).persist()
            wait(array)
            sent = []
            for _ in range(3):
                before = received()
                array = dlfield.dask.map_overlap(step, array).persist()
                wait(array)
                sent.append({w: entries[len(before[w]):] for w, entries in received().items()})
        places = client.who_has(array)
        assert all(places[key] == tuple(place(key)) for key in places), places

        # Between the halves: faces of 2 or 1 by 16 by 4, two from above and two from below, and their edges.
        item = 8
        expected = {second: (2 * 2 * 16 + 2 * 2 * 1) * 4 * item, first: (2 * 1 * 16 + 2 * 1 * 1) * 4 * item}
        for number, counted in enumerate(sent):
            for worker, entries in counted.items():
                keys = [key for _, keys in entries for key in keys]
                assert sum(total for total, _ in entries) == expected[worker], (number, worker, entries)
                assert len(keys) == 4 and all("piece-" in key for key in keys), keys
                assert 1 <= len(entries) <= 4

        whole = field.copy()
        for _ in range(3):
            whole = step(whole.copy())
        result = array.compute()
        assert (result.layout, result.halo, result.dims) == (field.layout, field.halo, field.dims)
        assert result.to_numpy().tobytes() == whole.to_numpy().tobytes()

        # A function that fails on one worker is an error here, and the cluster goes on.
        def fails(block):
            raise RuntimeError("no stencil")
        try:
            dlfield.dask.map_overlap(fails, array).compute()
        except RuntimeError as error:
            assert "no stencil" in str(error)
        else:
            raise AssertionError
        field = dlfield.dask.ones((64, 64), 16, backend="gt:cpu_ifirst", dims="KI")
        total = (field + dl.ones((64, 64), dims="KI")).rechunk(24).compute()
        assert (type(total).__name__, total.dims, total.layout) == ("Tensor", ("K", "I"), (0, 1)), total.layout
        """,
    )


# Ray's object store: one copy on the way in, none on the way out.


@pytest.fixture
def _ray() -> None:
    """Ray has no wheels for some Pythons, on which pyproject.toml does not ask for it."""
    pytest.importorskip("ray")


@pytest.mark.usefixtures("_ray")
def test_fields_are_shared_readonly() -> None:
    clusters.run_on(
        clusters.RAY,
        """
        import os

        @ray.remote
        def look(field):
            try:
                field[...] = 0
            except ValueError as error:
                assert "read-only" in str(error), error
            else:
                raise AssertionError("written")
            return os.getpid(), field.readonly, field.dims, field.layout, field.halo, float(field.sum())

        halo = ((1, 1), (1, 1), (0, 0))
        # As many bytes as go through the store; smaller objects stay in the memory of their owner.
        compact = dl.full((128, 128, 20), 2.0, dims="KIJ", halo=halo)
        padded = dl.full((65, 63, 61), 2.0, "f4", backend="gtmc", dims="KIJ", halo=halo, alignment_size=64)
        for field in (compact, padded):
            stored = ray.put(field)
            got, again = ray.get(stored), ray.get(stored)
            assert got.readonly and not field.readonly
            assert got.ptr == again.ptr != field.ptr, "the memory of the store"
            for name in ("shape", "dtype", "dims", "layout", "strides", "halo", "alignment_size", "aligned_index"):
                assert getattr(got, name) == getattr(field, name), name
            assert got.domain_view.ptr % got.alignment_size == 0
            assert (got.to_numpy() == 2.0).all() and not got.to_numpy().flags.writeable
            process, *seen = ray.get(look.remote(stored))
            assert process != os.getpid()
            assert seen == [True, field.dims, field.layout, field.halo, field.sum()], seen
            assert not got.copy().readonly

        # The block, 1-D and contiguous: every reader of arrays can use it.
        stored = ray.put(padded.block)
        block = ray.get(stored)
        assert (block.readonly, block.shape, block.strides) == (True, padded.block.shape, (4,))
        assert block.ptr == ray.get(stored).ptr
        assert ray.get(ray.put(np.asarray(padded.block))).tobytes() == block.tobytes()

        # The memory stays as long as a field that was taken from it.
        del stored, block
        last = ray.get(ray.put(dl.full((128, 128, 20), 3.0)))
        for _ in range(3):
            ray.put(dl.full((128, 128, 20), 4.0))
        assert float(last.min()) == float(last.max()) == 3.0
        """,
    )


@pytest.mark.usefixtures("_ray")
def test_memory_is_flat_over_many_gets() -> None:
    """500 gets of a field of 10 MB, and 40 puts into a store of 100 MB, which is full after 10 that are kept."""
    clusters.run_on(
        clusters.RAY,
        """
        import gc, pathlib, time

        def resident():
            # Without the pages of the store, which are shared.
            fields = dict(line.split(":") for line in open("/proc/self/status").read().splitlines())
            return int(fields["RssAnon"].split()[0]) * 1024

        field = dl.full((1250, 1000), 1.5, alignment_size=64)
        stored = ray.put(field)
        for _ in range(20):
            ray.get(stored)
        gc.collect()
        before = resident()
        for _ in range(500):
            got = ray.get(stored)
            assert got[7, 7] == 1.5
        del got
        gc.collect()
        grown = resident() - before
        assert grown < 10 * field.nbytes, grown

        # Where the store is full, Ray writes to disk, so that is where objects that are kept would show.
        for number in range(40):
            got = ray.get(ray.put(dl.full((1250, 1000), float(number))))
            assert got[3, 3] == number
        del got
        def on_disk():
            return [*pathlib.Path(FOLDER).rglob("ray_spilled_objects*/*")]

        # Ray drops objects a while after the last reference to them.
        for _ in range(1000):
            if not on_disk():
                break
            time.sleep(0.1)
        assert on_disk() == []
        kept = [ray.put(field) for _ in range(12)]
        assert on_disk() != [], "the count sees what is kept"
        """,
    )
