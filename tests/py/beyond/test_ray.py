"""Tensors in Ray's object store: one copy on the way in, none on the way out."""

import pytest

import clusters

# Ray has no wheels for some Pythons, on which pyproject.toml does not ask for it.
pytest.importorskip("ray")
pytestmark = pytest.mark.exhaustive


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
