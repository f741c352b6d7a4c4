"""Programs as users write them, for type checkers: mypy and pyright, both strict, in `make lint`. Nothing runs this.

A line with two comments at its end is a mistake that both have to find: they report a comment that is not needed.
"""

from typing import Annotated, Any, Literal, assert_type

import numpy as np
import numpy.typing as npt
import torch

import dlfield as dl


def allocate() -> dl.Tensor:
    """Every form of a halo, a shape, labels and a device."""
    field = dl.zeros((6, 6, 4), "float32", backend="gt:cpu_ifirst", dims="IJK", halo=[[1, 1], [1, 1], [0, 0]])
    dl.empty(5, halo=[1], dims=("lat",))
    dl.ones([3, np.int64(4)], np.float64, halo=((1, 2), 0), device=("cpu", 0)[0], padding="row")
    dl.full_like(field, 3.0, halo=[(1, 1), [0, 0], 2])
    field.halo = [[0, 0], [1, 1], [0, 0]]
    dl.zeros((4, 4), halo=np.array([[1, 1], [0, 0]]), layout=np.array([1, 0]), origin=np.array([2, 0]))
    dl.zeros(3, halo="no")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    dl.zeros(3, padding="column")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    dl.zeros(3, halos=1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    dl.zeross(3)  # type: ignore[attr-defined] # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    assert_type(dl.from_array(np.ones(3)), dl.Tensor)
    assert_type(field.halo, tuple[tuple[int, int], ...])
    assert_type(field.device == "cpu", bool)
    return field


def views(field: dl.Tensor, i: int, chosen: npt.NDArray[np.int64]) -> None:
    """Take views with ranges; an element or an array has the type that the caller says."""
    assert_type(field[1:-1], dl.Tensor)
    assert_type(field[...], dl.Tensor)
    assert_type(field[1:-1, 0], dl.Tensor)
    assert_type(field[i, 1:-1], dl.Tensor)
    assert_type(field[i, :, 0], dl.Tensor)
    assert_type(field[0, i, ::2], dl.Tensor)
    assert_type(field[..., np.int64(0)], dl.Tensor)
    assert_type(field[1:-1, 1:-1].domain_view.T, dl.Tensor)
    assert_type(field[i], Any)
    assert_type(field[0, 0, 0], Any)
    assert_type(field[:, chosen], Any)
    assert_type(field[field > 0], Any)
    assert_type(field[:, None], Any)
    element: float = field[0, 0, 0]
    field[1:-1, 0] = element
    field[field < 0] = 0.0
    print(field[1:-1].shap)  # type: ignore[attr-defined] # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportAttributeAccessIssue]


def arithmetic(field: dl.Tensor) -> dl.Tensor:
    """Operators and methods give tensors; of functions NumPy's stubs say that they give its own arrays."""
    total = field + 2.0 * field - np.ones(4)
    total *= 3
    assert_type(total, dl.Tensor)
    assert_type(-field, dl.Tensor)
    assert_type(np.float64(2) * field, dl.Tensor)
    assert_type(field > 0, dl.Tensor)
    assert_type(divmod(field, 2), tuple[dl.Tensor, dl.Tensor])
    assert_type(field.sum("I").dims, tuple[str, ...] | Any)
    field.mean(("I", "K"), keepdims=True).to_numpy()
    float(field.max())
    field.sum(axis=1.5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert_type(field.astype("int32").reshape(-1, dims="I"), dl.Tensor)
    assert_type(field.reshape((2, 3)).squeeze("I").swapaxes("J", 0), dl.Tensor)
    root: Any = np.sqrt(field)
    np.add(field, 1.0, out=root)
    np.testing.assert_allclose(field, np.asarray(field))
    plain: npt.ArrayLike = field
    np.concatenate([field, field], axis=0)
    return field if plain is root else abs(total)


def frameworks(field: dl.Tensor) -> npt.NDArray[Any]:
    """Share the memory."""
    tensor = dl.as_torch(field)
    assert_type(tensor, torch.Tensor)
    tensor.mul_(2.0)
    with memoryview(field) as memory:
        memory.tobytes()
    assert_type(dl.preflight(field, "jax").verdict, Literal["zero-copy", "copy", "impossible"])
    dl.preflight(field, "tensorflow")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert_type(dl.from_dlpack(tensor, dims="IJK"), dl.Tensor)
    assert_type(dl.describe(tensor).dims, tuple[str, ...] | None)
    assert_type(field.to_numpy(), npt.NDArray[Any])
    dl.gt4py.zeros((2, 3), backend="numpy").fill(dl.storage.zeros((2, 3)).ndim)
    return dl.as_numpy(tensor, copy=False)


def call(field: dl.Tensor) -> tuple[int, ...]:
    """Use the fields of a call, which are descriptors; one that is optional may be None."""
    signature = dl.Signature(x=dl.FieldSpec("float64", "IJ", access="rw"), y=dl.FieldSpec("f4", optional=True))
    with signature.bind(x=field) as bound:
        assert_type(bound.x.ptr, int | Any)
        assert_type(bound["x"].strides, tuple[int, ...] | Any)
        address: int = bound.x.ptr if bound.y is None else bound.y.ptr
        assert_type(bound.x.origin, tuple[int, ...] | Any)
        print(bound.x.adress)  # type: ignore[union-attr] # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportAttributeAccessIssue]
    assert_type(dl.Signature(**signature.fields), dl.Signature)
    assert_type(dl.Signature(on_mismatch="copy", **signature.fields), dl.Signature)
    assert_type(dl.Signature(device="cpu", allow_overlap=True, **signature.fields), dl.Signature)
    assert_type(dl.Signature(device="cpu", on_mismatch="copy", allow_overlap=True, **signature.fields), dl.Signature)
    dl.FieldSpec("f4", access="x")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    return bound.domain if address else ()


@dl.kernel
def smooth(
    inp: Annotated[dl.Descriptor | Any, dl.FieldSpec("float64", "IJK")],
    out: Annotated[dl.Descriptor | Any, dl.FieldSpec("float64", "IJK", access="w")],
    scale: float = 1.0,
) -> tuple[int, ...]:
    """Use the fields, which are descriptors; callers pass any array, and are checked for the rest."""
    print(inp.adress, scale)  # type: ignore[union-attr] # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportAttributeAccessIssue]
    assert_type(out.shape, tuple[int, ...] | Any)
    shape: tuple[int, ...] = inp.shape
    return shape


@dl.kernel
def size(field: Annotated[dl.Descriptor, dl.FieldSpec("float64")]) -> int:
    """Use the field of a kernel that checked code calls with descriptors."""
    assert_type(field.shape, tuple[int, ...])
    return field.nbytes


def call_kernels(field: dl.Tensor, array: npt.NDArray[np.float64]) -> int:
    """Pass fields and arrays."""
    assert_type(smooth(field, array, 2), tuple[int, ...])
    smooth(field, array, "no")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    smooth(field)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    return size(dl.describe(field))
