"""PyArrow takes fields of one dimension, on their memory where Arrow allows that."""

import numpy as np
import pytest

import dlfield as dl

pa = pytest.importorskip("pyarrow")


def test_contiguous_memory_is_shared() -> None:
    field = dl.from_array(np.arange(5.0))
    array = pa.array(field)
    assert array.buffers()[1].address == field.ptr
    assert array.to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_memory_outlives_the_field() -> None:
    array = pa.array(dl.from_array(np.arange(1000.0)))
    dl.zeros(1000)
    assert array[999].as_py() == 999.0


def test_gaps_and_other_types_are_copied() -> None:
    field = dl.from_array([[1, 2, 3], [4, 5, 6]])
    assert pa.array(field[:, 1]).to_pylist() == [2, 5]
    assert pa.array(field[0], pa.float32()).type == pa.float32()
    assert pa.array(field[0].as_readonly()).to_pylist() == [1, 2, 3]


def test_a_table_has_fields_as_columns() -> None:
    table = pa.table({"wind": dl.ones(2), "mask": dl.ones(2, bool)})
    assert table.to_pydict() == {"wind": [1.0, 1.0], "mask": [True, True]}


def test_several_dimensions_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="1-dimensional"):
        pa.array(dl.ones((2, 3)))
