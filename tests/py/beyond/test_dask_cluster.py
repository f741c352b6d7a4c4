"""Tensors in a real cluster of two processes: transfers, spilling, and what a step of `map_overlap` sends."""

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
