"""`save_field` and `open_field`: layout and labels survive, memory is mapped, and files are replaced in one step."""

import gc
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import numbered
from childproc import run_python, started
from dlfield import files

NAMES = ("shape", "dtype", "strides", "dims", "halo", "origin", "layout", "alignment_size", "aligned_index")

FIELDS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((), {}),
    ((7,), {}),
    ((0, 3), {}),
    ((6, 5, 4), {"backend": "gtmc", "halo": (1, 1, 0), "dims": "IJK"}),
    ((6, 5, 4), {"backend": "gt:cpu_ifirst", "halo": ((1, 2), (0, 1), 0), "origin": (2, 0, 1)}),
    ((5, 7), {"alignment_size": 4096, "aligned_index": (2, 3)}),
    ((3, 1, 2, 2), {"dims": ("K", "level of soil", "ü", 0), "layout": (3, 0, 2, 1)}),
    ((4, 4), {"backend": "jax", "halo": (1, 1)}),
    ((2, 3), {"alignment_size": 32, "padding": "row"}),
]


@pytest.mark.parametrize(("shape", "keywords"), FIELDS, ids=repr)
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_field_comes_back_as_it_was(tmp_path: Path, shape: tuple[int, ...], keywords: Any, mode: Any) -> None:
    field = numbered(shape, **keywords)
    dl.save_field(tmp_path / "field.dlf", field)
    again = dl.open_field(tmp_path / "field.dlf", mode)
    for name in NAMES:
        assert getattr(again, name) == getattr(field, name), name
    assert again.readonly == (mode == "r")
    np.testing.assert_array_equal(np.asarray(again), np.asarray(field))
    aligned = again.ptr + sum(index * stride for index, stride in zip(again.aligned_index, again.strides, strict=True))
    assert again.size == 0 or aligned % again.alignment_size == 0
    # What is made like it is laid out like it.
    assert dl.empty_like(again).strides == field.strides


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "bool", "complex64", "uint64"])
def test_element_types(tmp_path: Path, name: str) -> None:
    field = numbered((3, 4), name, layout=(1, 0))
    for path in (tmp_path / "field.dlf", tmp_path / "field.npy"):
        dl.save_field(path, field)
        again = dl.open_field(path)
        assert (again.dtype, again.strides) == (field.dtype, field.strides)
        assert again.tolist() == field.tolist()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4"])
def test_element_types_of_ml_dtypes(tmp_path: Path, name: str) -> None:
    field = dl.ones((3, 4), name)
    dl.save_field(tmp_path / "field.dlf", field)
    again = dl.open_field(tmp_path / "field.dlf")
    assert again.dtype == field.dtype
    assert again.to_numpy().view("uint8").tobytes() == field.to_numpy().view("uint8").tobytes()
    with pytest.raises(dl.DTypeError, match=f"^path: .*{name}"):
        dl.save_field(tmp_path / "field.npy", field)


def test_nothing_but_elements_is_written(tmp_path: Path) -> None:
    whole = dl.full((20, 8), 7.0, alignment_size=64)
    for number, field in enumerate((whole[::2, 3:], whole[::-1], dl.full((3, 5), 7.0, alignment_size=64))):
        path = tmp_path / f"{number}.dlf"
        dl.save_field(path, field)
        again = dl.open_field(path)
        assert again.tolist() == field.tolist()
        assert path.read_bytes().count(np.float64(7.0).tobytes()) == field.size


def test_numpy_reads_npy_files(tmp_path: Path) -> None:
    path = tmp_path / "field.npy"
    for backend in ("C", "F"):
        dl.save_field(path, numbered((3, 4, 5), backend=backend))
        array = np.load(path, mmap_mode="r")
        assert array.flags.c_contiguous == (backend == "C")
        np.testing.assert_array_equal(array, np.arange(1.0, 61.0).reshape(3, 4, 5))
        with path.open("rb") as file:
            assert np.lib.format.read_magic(file) == (1, 0)
            assert np.lib.format.read_array_header_1_0(file)[1] == (backend == "F")


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_of_numpy_are_mapped(tmp_path: Path, order: Any) -> None:
    array = np.asarray(np.arange(12.0, dtype="float32").reshape(3, 4), order=order)
    np.save(tmp_path / "array.npy", array)
    field = dl.open_field(tmp_path / "array.npy", "r+")
    assert (field.strides, field.tolist()) == (array.strides, array.tolist())
    assert field.alignment() >= 64
    field[2, 3] = 100.0
    assert np.load(tmp_path / "array.npy")[2, 3] == 100.0
    with (tmp_path / "two.npy").open("wb") as file:
        np.lib.format.write_array(file, array, version=(2, 0))
    assert dl.open_field(tmp_path / "two.npy").tolist() == array.tolist()


@pytest.mark.parametrize(
    ("keywords", "lost"),
    [
        ({"dims": "IKJ"}, "dims"),
        ({"halo": (1, 0, 0)}, "halo, origin"),
        ({"origin": (0, 1, 0)}, "origin"),
        ({"alignment_size": 64}, "layout or padding"),
        ({"layout": (0, 2, 1)}, "layout or padding"),
    ],
)
def test_npy_files_refuse_what_they_cannot_keep(tmp_path: Path, keywords: Any, lost: str) -> None:
    with pytest.raises(dl.LayoutError, match=f"^path: .*{lost}"):
        dl.save_field(tmp_path / "field.npy", dl.zeros((3, 5, 2), **keywords))
    assert list(tmp_path.iterdir()) == []


def test_other_arrays_are_saved_too(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(np.arange(6.0).reshape(2, 3), dims=("K", "I"))
    dl.save_field(tmp_path / "field.dlf", array)
    again = dl.open_field(tmp_path / "field.dlf")
    assert (again.dims, again.tolist()) == (("K", "I"), [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    dl.save_field(tmp_path / "field.npy", np.arange(3, dtype="int16"))
    assert np.load(tmp_path / "field.npy").tolist() == [0, 1, 2]


def test_modes(tmp_path: Path) -> None:
    path = tmp_path / "field.dlf"
    dl.save_field(path, dl.zeros((4,), halo=(1,)))
    fixed, shared, own = (dl.open_field(path, mode) for mode in ("r", "r+", "c"))
    with pytest.raises(dl.ExchangeError, match="read-only"):
        fixed[0] = 1.0
    shared[1] = 2.0
    own[2] = 3.0
    assert (fixed.tolist(), own.tolist()) == ([0.0, 2.0, 0.0, 0.0], [0.0, 2.0, 3.0, 0.0])
    del shared
    assert dl.open_field(path).tolist() == [0.0, 2.0, 0.0, 0.0]
    wrong: list[Any] = ["w+", "w", "", None, "rb", []]
    for mode in wrong:
        with pytest.raises(ValueError, match=r"^mode: "):
            dl.open_field(path, mode)
    path.chmod(0o444)
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            dl.open_field(path, "r+")
    assert dl.open_field(str(path), "c").shape == (4,)


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is mapped")
def test_the_mapping_lives_as_long_as_views(tmp_path: Path) -> None:
    dl.save_field(tmp_path / "field.dlf", numbered((1000,)))

    view = np.asarray(dl.open_field(tmp_path / "field.dlf")[10:])
    gc.collect()
    assert "field.dlf" in Path("/proc/self/maps").read_text()
    assert view[0] == 11.0
    del view
    gc.collect()
    assert "field.dlf" not in Path("/proc/self/maps").read_text()


def test_an_open_field_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "field.dlf"
    dl.save_field(path, dl.ones((50, 50)))
    path.chmod(0o640)
    old = dl.open_field(path, "r+")
    dl.save_field(path, dl.full((3,), 2.0))
    assert old.sum() == 2500.0
    old[...] = 3.0
    assert dl.open_field(path).tolist() == [2.0] * 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    # Also to the file that it is from.
    dl.save_field(path, dl.open_field(path))
    assert dl.open_field(path).tolist() == [2.0] * 3
    assert [file.name for file in tmp_path.iterdir()] == ["field.dlf"]


def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "link.dlf").symlink_to(tmp_path / "field.dlf")
    dl.save_field(tmp_path / "link.dlf", dl.ones((2,)))
    assert (tmp_path / "link.dlf").is_symlink()
    assert dl.open_field(tmp_path / "field.dlf").tolist() == [1.0, 1.0]


def test_after_an_error_the_old_file_is_there_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "field.dlf"
    dl.save_field(path, dl.ones((2,)))
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        dl.save_field(path, dl.zeros((2,)))
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == ["field.dlf"]
    assert path.read_bytes() == before
    for wrong in ("field", "field.bin", "field.npz", ".dlf"):
        with pytest.raises(dl.LayoutError, match=r"^path: "):
            dl.save_field(tmp_path / wrong, dl.zeros((2,)))
    with pytest.raises(FileNotFoundError):
        dl.save_field(tmp_path / "absent" / "field.dlf", dl.zeros((2,)))


@pytest.mark.parametrize("cut", [(), (slice(1, None, 2), slice(None, None, -1)), (slice(3, 4),), (..., 0)], ids=repr)
def test_large_fields_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: Any) -> None:
    for keywords in ({}, {"backend": "gtmc", "halo": (1, 1, 0)}, {"layout": (1, 2, 0)}):
        field = numbered((6, 70, 40), "int16", **keywords)[cut]
        monkeypatch.setattr(files, "_PIECE", 1 << 8)
        dl.save_field(tmp_path / "field.dlf", field)
        monkeypatch.undo()
        dl.save_field(tmp_path / "whole.dlf", field)
        assert (tmp_path / "field.dlf").read_bytes() == (tmp_path / "whole.dlf").read_bytes()
        assert dl.open_field(tmp_path / "field.dlf").tolist() == field.tolist()


def test_a_new_file_has_the_access_of_the_one_that_it_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others cannot read it before, either; no setuid comes back."""
    path, seen = tmp_path / "field.dlf", []
    write = files._write

    def looking(file: Any, *arguments: Any) -> None:
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        write(file, *arguments)

    monkeypatch.setattr(files, "_write", looking)
    mask = os.umask(0o027)
    try:
        dl.save_field(path, dl.ones(3))
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o4600)
    dl.save_field(path, dl.ones(3))
    assert (stat.S_IMODE(path.stat().st_mode), seen) == (0o600, [0o640, 0o600])


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.dlf")
    (tmp_path / "folder.dlf").mkdir()
    (tmp_path / "link.dlf").symlink_to(tmp_path / "pipe.dlf")
    for name in ("pipe.dlf", "folder.dlf", "link.dlf"):
        with pytest.raises(OSError, match=r"path: expected a regular file"):
            dl.save_field(tmp_path / name, dl.ones(3))
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_links_of_others_in_a_folder_of_all_are_not_followed(tmp_path: Path) -> None:
    protects = Path("/proc/sys/fs/protected_symlinks")
    if not protects.exists() or protects.read_text().strip() == "0":
        pytest.skip("this system follows them")
    tmp_path.chmod(0o1777)
    (tmp_path / "real.dlf").write_bytes(b"precious")
    for there in ("real.dlf", "absent.dlf"):
        (tmp_path / "link.dlf").symlink_to(tmp_path / there)
        os.chown(tmp_path / "link.dlf", 12345, 12345, follow_symlinks=False)
        with pytest.raises(PermissionError):
            dl.save_field(tmp_path / "link.dlf", dl.ones(3))
        (tmp_path / "link.dlf").unlink()
    assert (tmp_path / "real.dlf").read_bytes() == b"precious"
    assert [file.name for file in tmp_path.iterdir()] == ["real.dlf"]


def test_the_next_save_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "field.dlf"
    code = f"""
        import os, signal
        import dlfield as dl
        from dlfield import files
        files._write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        dl.save_field({str(path)!r}, dl.ones(3))
    """
    for _ in range(2):
        process = started(code)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        assert len(list(tmp_path.iterdir())) == 1
    # One that is written now stays.
    with files._replacing(path, None) as other:
        other.write(b"other")
        dl.save_field(path, dl.ones(3))
        assert dl.open_field(path).tolist() == [1.0] * 3
    assert (path.read_bytes(), [file.name for file in tmp_path.iterdir()]) == (b"other", ["field.dlf"])


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_an_error_and_not_a_signal(tmp_path: Path) -> None:
    run_python(f"""
        import errno, resource, signal
        import dlfield as dl
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            dl.save_field({str(tmp_path / "field.dlf")!r}, dl.ones((100, 1000)))
        except OSError as error:
            assert error.errno == errno.EFBIG
        else:
            raise SystemExit("no error")
    """)
    assert list(tmp_path.iterdir()) == []


def test_opening_copies_nothing(tmp_path: Path) -> None:
    """A file with a large hole is opened at once, and takes no memory."""
    path, size = tmp_path / "array.npy", 1 << 33
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|i1", "fortran_order": False, "shape": (size,)})
        file.truncate(file.tell() + size)
    field = dl.open_field(path)
    assert (field.size, int(field[size - 1])) == (size, 0)


def test_the_module_is_imported_when_it_is_used() -> None:
    run_python("import sys, dlfield; assert 'dlfield.files' not in sys.modules; assert 'open_field' in dir(dlfield)")
    with pytest.raises(AttributeError, match="module 'dlfield' has no attribute 'open_fields'"):
        dl.open_fields  # type: ignore[attr-defined] # noqa: B018
