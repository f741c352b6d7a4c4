"""`Signature.bind`: what arguments become, and every check with the message that a user reads."""

import gc
import itertools
import re
import sys
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from fakes import FakeTensor, OldProducer, Producer, RaisingProducer
from fakes_interfaces import NOWHERE, Exposing, Hooked, Raising, cuda, device_interface, host, interface_of
from oracle import values

Array = npt.NDArray[Any]

F8 = dl.FieldSpec("float64", "IJK")
W8 = dl.FieldSpec("float64", "IJK", access="w")


def signature(fields: dict[str, Any]) -> dl.Signature:
    return dl.Signature(**fields)


def cube(*shape: int, dtype: str = "float64") -> Array:
    """Numbers counted up, all different."""
    return np.arange(float(np.prod(shape or (2, 3, 4)))).reshape(shape or (2, 3, 4)).astype(dtype)


def torch_of(array: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


def jax_of(array: Array) -> Any:
    return pytest.importorskip("jax").dlpack.from_dlpack(dl.from_array(array, backend="jax"))


def dataarray(array: Array, dims: Any = "IJK") -> Any:
    return pytest.importorskip("xarray").DataArray(array, dims=tuple(dims))


def next_field(array: Array, dims: Any = "IJK") -> Any:
    gtx = pytest.importorskip("gt4py.next")
    kinds = {"K": gtx.DimensionKind.VERTICAL}
    labels = [gtx.Dimension(dim, kind=kinds.get(dim, gtx.DimensionKind.HORIZONTAL)) for dim in dims]
    return gtx.as_field(labels, array)


MAKERS: dict[str, tuple[Callable[[Array], Any], str]] = {
    "numpy": (lambda array: array, "numpy"),
    "torch": (torch_of, "dlpack-c"),
    "jax": (jax_of, "jax"),
    "tensor": (dl.from_dlpack, "dlfield"),
    "descriptor": (dl.describe, "dlfield"),
    "DLPack only": (lambda array: Producer(FakeTensor(array)), "dlpack"),
    "old DLPack": (lambda array: OldProducer(FakeTensor(array, version=None)), "dlpack"),
    "capsule": (lambda array: FakeTensor(array).capsule(), "dlpack"),
    "array interface": (host, "array-interface"),
    "data interface": (lambda array: Hooked(array, []), "gt"),
    "buffer": (lambda array: array.data, "buffer"),
    "DataArray": (dataarray, "numpy"),
    "field of gt4py.next": (next_field, "numpy"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_kind_of_array_is_bound_where_it_is(name: str) -> None:
    make, protocol = MAKERS[name]
    argument = make(cube())
    # JAX has no float64 unless it is asked to.
    bound = dl.Signature(x=dl.FieldSpec("float32" if name == "jax" else "float64", "IJK")).bind(x=argument)
    found = bound.x
    assert isinstance(found, dl.Descriptor)
    assert bound["x"] is found
    assert (found.shape, found.dims, found.origin, found.protocol) == ((2, 3, 4), ("I", "J", "K"), (0, 0, 0), protocol)
    assert values(found) == cube().tolist()
    assert bound.domain == (2, 3, 4)
    if name != "capsule":
        assert found.ptr == dl.describe(argument).ptr


@pytest.mark.parametrize("name", ["numpy", "torch", "tensor", "DLPack only", "data interface", "buffer", "DataArray"])
def test_what_is_written_is_the_callers_memory(name: str) -> None:
    array = cube()
    with dl.Signature(out=W8).bind(out=MAKERS[name][0](array)) as fields:
        assert fields.out.ptr == array.ctypes.data
        assert not fields.out.readonly


def test_plain_use_without_with() -> None:
    array = cube()
    bound = dl.Signature(x=F8, out=W8).bind(x=array, out=cube())
    assert (bound.x.ptr, bound.x.strides) == (array.ctypes.data, array.strides)
    assert repr(bound) == f"Bound(x={bound.x!r}, out={bound.out!r})"


# Everything that states labels; each gives an object whose dims are `dims`.
LABELLED: dict[str, Callable[[Array, tuple[str, ...]], Any]] = {
    "tensor": lambda array, dims: dl.from_dlpack(array, dims=dims),
    "descriptor": lambda array, dims: dl.describe(array, dims=dims),
    "DataArray": dataarray,
    "__gt_dims__": lambda array, dims: Exposing(__array_interface__=interface_of(array), __gt_dims__=dims, kept=array),
    "__gt_dims__ method": lambda array, dims: Exposing(
        __array_interface__=interface_of(array), __gt_dims__=lambda: list(dims), kept=array
    ),
    "dims": lambda array, dims: Exposing(__array_interface__=interface_of(array), dims=dims, kept=array),
    "data interface": lambda array, dims: Hooked(array, [], dims=dims),
    "older data interface": lambda array, dims: Hooked(
        array, [], attribute="__gt_interface__", dims=dims, device="cpu"
    ),
    "DLPack with labels": lambda array, dims: labelled_producer(array, dims),
}


def labelled_producer(array: Array, dims: tuple[str, ...]) -> Producer:
    producer = Producer(FakeTensor(array))
    vars(producer)["__gt_dims__"] = dims
    return producer


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_permuted_whoever_states_them(name: str) -> None:
    array = cube()
    sig = dl.Signature(x=F8)
    for dims in itertools.permutations("IJK"):
        turned = array.transpose(["IJK".index(dim) for dim in dims])
        found = sig.bind(x=LABELLED[name](turned, dims)).x
        assert (found.dims, found.shape, found.strides) == (("I", "J", "K"), array.shape, array.strides)
        assert (found.ptr, values(found)) == (array.ctypes.data, array.tolist())


LABELS = ["I", "J", "K", "0", "1", "cell"]


@given(st.data(), st.integers(0, 6).flatmap(lambda ndim: st.permutations(LABELS).map(lambda labels: labels[:ndim])))
def test_any_order_gives_the_same_elements(data: st.DataObject, dims: list[str]) -> None:
    ndim = len(dims)
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * ndim))
    lower = tuple(data.draw(st.integers(0, extent)) for extent in shape)
    halo = tuple((low, data.draw(st.integers(0, extent - low))) for low, extent in zip(lower, shape, strict=True))
    origin = tuple(data.draw(st.integers(0, extent)) for extent in shape)
    layout = data.draw(st.permutations(range(ndim)))
    field = dl.zeros(shape, dims=dims, layout=layout, halo=halo, origin=origin)
    field[...] = cube(*shape) if shape else 5.0
    wanted = data.draw(st.permutations(dims))
    axes = [dims.index(dim) for dim in wanted]
    found = dl.Signature(x=dl.FieldSpec("float64", wanted)).bind(x=field).x
    assert values(found) == field.to_numpy().transpose(axes).tolist()
    assert found.origin == tuple(origin[axis] for axis in axes)
    assert found.halo == tuple(halo[axis] for axis in axes)
    assert found.dims == tuple(wanted)
    assert found.ptr == field.ptr


def test_arrays_without_labels_are_in_the_order_of_the_spec() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "KJI"))
    found = sig.bind(x=cube()).x
    assert (found.dims, found.shape) == (("K", "J", "I"), (2, 3, 4))
    # A tensor of ours has labels, I, J, K unless stated.
    turned = sig.bind(x=dl.from_array(cube())).x
    assert (turned.dims, turned.shape) == (("K", "J", "I"), (4, 3, 2))


def test_the_origin_is_stated_or_behind_the_halo_or_0() -> None:
    sig = dl.Signature(x=F8)
    array = cube(6, 6, 6)
    halo = ((1, 2), (0, 1), (3, 0))
    cases: list[tuple[Any, tuple[int, ...], Any]] = [
        (array, (0, 0, 0), None),
        (Hooked(array, [], halo=halo), (1, 0, 3), halo),
        (Exposing(__array_interface__=interface_of(array), __gt_origin__=(4, 5, 6)), (4, 5, 6), None),
        (Exposing(__array_interface__=interface_of(array), default_origin=(4, 5, 6)), (4, 5, 6), None),
        (dl.zeros((6, 6, 6), halo=halo), (1, 0, 3), halo),
        (dl.zeros((6, 6, 6), halo=halo, origin=(2, 2, 2)), (2, 2, 2), halo),
        (dl.zeros((6, 6, 6)), (0, 0, 0), ((0, 0),) * 3),
    ]
    for argument, origin, ghosts in cases:
        found = sig.bind(x=argument).x
        assert (found.origin, found.halo) == (origin, ghosts)
    both = Hooked(array, [], halo=halo)
    vars(both)["__gt_origin__"] = (2, 2, 2)
    assert sig.bind(x=both).x.origin == (2, 2, 2)


class Ghosts(NamedTuple):
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    halo: tuple[tuple[int, int], ...]


@st.composite
def ghosts(draw: st.DrawFn) -> Ghosts:
    dims = draw(st.lists(st.sampled_from(["I", "J", "K", "0", "1"]), unique=True))
    shape = tuple(draw(st.integers(0, 9)) for _ in dims)
    lower = [draw(st.integers(0, extent)) for extent in shape]
    halo = tuple((low, draw(st.integers(0, extent - low))) for low, extent in zip(lower, shape, strict=True))
    origin = tuple(draw(st.integers(0, extent)) for extent in shape)
    return Ghosts(tuple(dims), shape, draw(st.sampled_from([origin, tuple(lower)])), halo)


def counted_domain(fields: list[Ghosts]) -> tuple[int, ...]:
    """Points counted one by one: those from the origin on that every field which has the dimension has one for."""
    domain = []
    for dim in "IJK":
        points = [
            len(
                [
                    at
                    for at in range(field.shape[axis])
                    if field.origin[axis] <= at < field.shape[axis] - field.halo[axis][1]
                ]
            )
            for field in fields
            for axis, label in enumerate(field.dims)
            if label == dim
        ]
        domain += [min(points)] if points else []
    return tuple(domain)


@given(st.lists(ghosts(), max_size=4))
def test_the_domain_is_what_all_fields_have_points_for(fields: list[Ghosts]) -> None:
    sig = signature({f"f{n}": dl.FieldSpec("float64", sorted(field.dims)) for n, field in enumerate(fields)})
    arrays = {
        f"f{n}": dl.zeros(field.shape, dims=field.dims, halo=field.halo, origin=field.origin)
        for n, field in enumerate(fields)
    }
    assert sig.bind(**arrays).domain == counted_domain(fields)


@given(st.lists(ghosts(), min_size=1, max_size=4))
def test_the_domain_is_gt4pys(fields: list[Ghosts]) -> None:
    gt4py = pytest.importorskip("gt4py.cartesian.definitions")
    stencil_object = pytest.importorskip("gt4py.cartesian.stencil_object")
    infos, arguments, origins = {}, {}, {}
    bound = signature({f"f{n}": dl.FieldSpec("float64", sorted(f.dims)) for n, f in enumerate(fields)}).bind(
        **{f"f{n}": dl.zeros(f.shape, dims=f.dims, halo=f.halo, origin=f.origin) for n, f in enumerate(fields)}
    )
    for n, field in enumerate(fields):
        name = f"f{n}"
        grid = [dim for dim in "IJK" if dim in field.dims]
        pick: Callable[[Any], tuple[Any, ...]] = lambda all_, field=field, grid=grid: tuple(  # type: ignore[misc]  # noqa: E731
            all_[field.dims.index(dim)] for dim in grid
        )
        upper = {dim: field.halo[field.dims.index(dim)][1] for dim in grid}
        mask = tuple(dim in grid for dim in "IJK")
        boundary = gt4py.Boundary(tuple((0, upper.get(dim, 0)) for dim in "IJK"))
        infos[name] = SimpleNamespace(
            access=gt4py.AccessKind.READ, domain_mask=mask, domain_ndim=len(grid), boundary=boundary
        )
        arguments[name] = SimpleNamespace(array=np.empty(pick(field.shape)))
        origins[name] = pick(field.origin)
        if any(
            size - at - ghost < 0
            for size, at, ghost in zip(pick(field.shape), pick(field.origin), upper.values(), strict=True)
        ):
            return  # GT4Py has no answer where nothing is left
    found = stencil_object.StencilObject._get_max_domain(
        arguments, SimpleNamespace(ndim=3), infos, origins, squeeze=False
    )
    assert bound.domain == tuple(extent for extent in found if extent != sys.maxsize)


def test_the_domain_has_users_labels_last_and_no_data_dimensions() -> None:
    sig = dl.Signature(a=dl.FieldSpec("float64", ("cell", "0", "K")), b=dl.FieldSpec("float64", ("edge", "J", "cell")))
    bound = sig.bind(a=cube(5, 3, 4), b=cube(7, 2, 6))
    assert bound.domain == (2, 4, 5, 7)
    assert dl.Signature().bind().domain == ()
    assert dl.Signature(x=dl.FieldSpec("float64", "0")).bind(x=np.zeros(3)).domain == ()


def test_optional_fields_may_be_absent() -> None:
    sig = dl.Signature(x=F8, mask=dl.FieldSpec("bool", "IJ", optional=True, access="rw"))
    for bound in (sig.bind(x=cube()), sig.bind(x=cube(), mask=None)):
        assert bound.mask is None
        assert bound["mask"] is None
        assert bound.domain == (2, 3, 4)
        assert repr(bound).endswith("mask=None)")
        with bound as fields:
            assert fields.mask is None
    assert sig.bind(mask=np.ones((2, 3), bool), x=cube()).mask.dims == ("I", "J")


class Case(NamedTuple):
    spec: dl.FieldSpec
    argument: Callable[[], Any]
    error: type[BaseException]
    message: str


def case(spec: dl.FieldSpec, argument: Any, error: type[BaseException], message: str) -> Case:
    return Case(spec, lambda: argument, error, message)


def spec(dims: Any = "IJ", dtype: Any = "float64", **keywords: Any) -> dl.FieldSpec:
    return dl.FieldSpec(dtype, dims, **keywords)


def readonly(array: Array) -> Array:
    array.flags.writeable = False
    return array


def misaligned() -> Array:
    """Starts 8 bytes behind a multiple of 64."""
    block = np.zeros(40)
    return block[(72 - block.ctypes.data) % 64 // 8 :][:12].reshape(3, 4)


SHARED = np.lib.stride_tricks.as_strided(np.zeros(9), (3, 4), (16, 8), writeable=True)
CHECKS = {
    "no array": case(F8, 5, dl.NotAnArrayError, r'^field "x": .*int'),
    "dtype": case(F8, cube(dtype="float32"), dl.DTypeError, r'^field "x": dtype: float32; wanted is float64$'),
    "dtype never": case(F8, cube().astype("M8[s]"), dl.DTypeError, r'^field "x": dtype: .*date or time span'),
    "other byte order": case(F8, cube().astype(">f8"), dl.DTypeError, r'^field "x": .*>f8'),
    "too few": case(
        F8, np.zeros((3, 4)), dl.DimsError, r'^field "x": dims: 2 dimensions without labels; wanted are \(I, J, K\)'
    ),
    "too many": case(spec(), cube(), dl.DimsError, r"3 dimensions without labels; wanted are \(I, J\)"),
    "a scalar": case(spec(), np.float64(3), dl.DimsError, r"0 dimensions without labels; wanted are \(I, J\)"),
    "other labels": case(
        spec(), dl.zeros((3, 4), dims="JK"), dl.DimsError, r'^field "x": dims: \(J, K\); wanted are \(I, J\)'
    ),
    "more labels": case(spec(), dl.zeros((3, 4, 5)), dl.DimsError, r"dims: \(I, J, K\); wanted are \(I, J\)"),
    "fewer labels": case(F8, dl.zeros((3, 4)), dl.DimsError, r"dims: \(I, J\); wanted are \(I, J, K\)"),
    "one data dimension too many": case(
        spec("IJ0"), dl.zeros((2, 2, 2, 2), dims="IJ01"), dl.DimsError, r"dims: \(I, J, 0, 1\); wanted are \(I, J, 0\)"
    ),
    "sources that disagree": case(
        spec(),
        Exposing(__array_interface__=interface_of(np.zeros((3, 4))), __gt_dims__="IJ", dims=("J", "I")),
        dl.DimsError,
        r'^field "x": dims says \(J, I\), but __gt_dims__ says \(I, J\)',
    ),
    "extent": case(
        spec(shape=(None, 5)),
        np.zeros((3, 4)),
        dl.LayoutError,
        r'^field "x": shape: 4 points in dimension "J"; wanted are 5',
    ),
    "device": case(F8, cuda(shape=(2, 2, 2), typestr="<f8"), dl.DeviceError, r'^field "x": .*cuda:0.*wanted.*cpu'),
    "alignment": case(
        spec(alignment_size=64), misaligned(), dl.LayoutError, r'^field "x": .*0x[0-9a-f]+8.*multiple of 64'
    ),
    "read-only": case(
        spec(access="w"),
        readonly(np.zeros((3, 4))),
        dl.ExchangeError,
        r'^field "x": access: the memory is read-only; it is written, so pass an array that may be written',
    ),
    "read-only tensor": case(
        spec(access="rw"), dl.zeros((3, 4)).as_readonly(), dl.ExchangeError, r'"x": access: .*read-only'
    ),
    "legacy capsule": case(
        spec(access="w"), OldProducer(FakeTensor(np.zeros((3, 4)), version=None)), dl.ExchangeError, r"read-only"
    ),
    "bytes": case(spec("I", "uint8", access="w"), b"abc", dl.ExchangeError, r"read-only"),
    "broadcast": case(
        spec(access="rw"),
        np.lib.stride_tricks.as_strided(np.zeros(4), (3, 4), (0, 8), writeable=True),
        dl.LayoutError,
        r'^field "x": strides: \[0, 1\] elements for shape \[3, 4\] put several elements into the same memory',
    ),
    "rows that overlap": case(
        spec(access="w"), SHARED, dl.LayoutError, r'^field "x": strides: \[2, 1\] elements for shape \[3, 4\]'
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_bad_arguments_are_named(name: str) -> None:
    wrong = CHECKS[name]
    sig = dl.Signature(x=wrong.spec)
    for _ in range(2):
        with pytest.raises(wrong.error) as caught:
            sig.bind(x=wrong.argument())
        assert re.search(wrong.message, str(caught.value)), str(caught.value)


def test_what_is_read_may_share_and_be_read_only() -> None:
    sig = dl.Signature(x=spec(), y=spec(), out=spec(access="w"))
    array = readonly(np.zeros((3, 4)))
    wide = np.broadcast_to(np.zeros(4), (3, 4))
    assert sig.bind(x=array, y=array, out=np.zeros((3, 4))).x.readonly
    assert sig.bind(x=SHARED, y=wide, out=np.zeros((3, 4))).y.strides == (0, 8)


def test_jax_is_read_only(jnp: Any) -> None:
    with pytest.raises(dl.ExchangeError, match=r'"out": access: the memory is read-only'):
        dl.Signature(out=W8).bind(out=jnp.zeros((2, 3, 4), "float32"))


def test_names_are_checked() -> None:
    sig = dl.Signature(x=F8, out=W8)
    bind: Any = sig.bind
    for call, message in (
        (lambda: bind(x=cube()), r'^field "out": missing; a field may be left out if its FieldSpec says optional'),
        (lambda: bind(x=cube(), out=None), r'^field "out": missing'),
        (lambda: bind(x=cube(), out=cube(), inp=cube()), r'^field "inp": unexpected; allowed are x, out$'),
        (lambda: bind(cube(), cube()), r"bind\(\) takes keyword arguments only, 2 were given"),
        (lambda: dl.Signature().bind(x=5), r'"x": unexpected; allowed are none'),
        (lambda: dl.Signature.bind(5), r"'bind' for 'dlfield.Signature' objects doesn't apply to a 'int' object"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=message):
            call()


class Odd(str):
    """Equal texts of this kind are different keys, so one name can be given twice."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def test_a_name_that_stands_twice_is_refused() -> None:
    sig = dl.Signature(a=spec(), b=spec())
    array = np.zeros((2, 2))
    mappings: Any = [{Odd("a"): array, Odd("a"): array}, {"b": array, Odd("a"): array, Odd("a"): array}]
    for twice in mappings:
        with pytest.raises(TypeError, match=r'field "a": named twice'):
            sig.bind(**twice)
    assert sig.bind(**{Odd("a"): array, "b": array}).a.ptr == array.ctypes.data


def test_names_of_every_kind() -> None:
    names = ["a b", "", "ä", "self", "fields", "domain", "__enter__", "name", "py", "0", "a" * 1000]
    sig = signature({name: spec("I") for name in names})
    arrays = {name: np.zeros(n + 1) for n, name in enumerate(names)}
    bound = sig.bind(**arrays)
    assert {name: bound[name].ptr for name in names} == {name: array.ctypes.data for name, array in arrays.items()}
    assert bound.domain == (1,)
    assert getattr(bound, "a b").shape == (1,)
    assert bound.self.shape == (4,)
    with bound as fields:
        assert fields is bound
    with pytest.raises(dl.DTypeError, match=r'field "a b": dtype'):
        sig.bind(**{**arrays, "a b": np.zeros(3, "f4")})
    with pytest.raises((TypeError, UnicodeEncodeError)):
        sig.bind(**{"\ud800": np.zeros(3)})
    with pytest.raises((TypeError, UnicodeEncodeError)):
        signature({"\ud800": spec()})


def test_names_that_are_not_there() -> None:
    bound = dl.Signature(x=F8, out=W8).bind(x=cube(), out=cube())
    with pytest.raises(AttributeError, match=r"no field 'y'; there are x, out"):
        bound.y  # noqa: B018
    assert not hasattr(bound, "y")
    wrong: list[Any] = ["y", 0, None, ("x",), b"x", "\ud800"]
    for key in wrong:
        with pytest.raises(KeyError, match=r"there are x, out"):
            bound[key]


def test_names_need_not_be_interned() -> None:
    sig = signature({"".join(["na", "me"]): F8, "other": F8})
    array = cube()
    for order in (["name", "other"], ["other", "name"]):
        assert sig.bind(**{"".join(list(name)): array for name in order}).name.ptr == array.ctypes.data


def test_a_thousand_fields() -> None:
    names = [f"field{n}" for n in range(1000)]
    sig = signature({name: spec("I", access="rw" if n % 10 == 0 else "r") for n, name in enumerate(names)})
    block = np.zeros((1000, 4))
    arrays = {name: block[n] for n, name in enumerate(names)}
    bound = sig.bind(**dict(reversed(arrays.items())))
    assert [bound[name].ptr for name in names] == [array.ctypes.data for array in arrays.values()]
    with pytest.raises(dl.LayoutError, match=r'field "field10": .* with field "field999"'):
        sig.bind(**{**arrays, "field999": block[10]})


def pair(first: str = "r", second: str = "w") -> dl.Signature:
    return dl.Signature(a=spec("I", access=first), b=spec("I", access=second))


def test_written_fields_share_memory_with_no_other() -> None:
    array = np.zeros(10)
    message = r'^field "b": it is written, and shares memory with field "a"; allowed are fields that do not touch'
    with pytest.raises(dl.LayoutError, match=message):
        pair().bind(a=array, b=array)
    with pytest.raises(dl.LayoutError, match=r'^field "a": .* with field "b"'):
        pair("rw", "r").bind(a=array, b=array[5:])
    with pytest.raises(dl.LayoutError, match=r'^field "a": .* with field "b"'):
        pair("rw", "rw").bind(a=array, b=array)
    for make, _ in (MAKERS["torch"], MAKERS["tensor"], MAKERS["DLPack only"], MAKERS["data interface"]):
        with pytest.raises(dl.LayoutError, match="shares memory"):
            pair().bind(a=array, b=make(array[3:4]))
    # What is read may be read twice.
    assert pair("r", "r").bind(a=array, b=array).a.ptr == array.ctypes.data


@pytest.mark.parametrize(
    ("a", "b", "shares"),
    [
        (np.s_[:5], np.s_[5:], False),
        (np.s_[:6], np.s_[5:], True),
        (np.s_[::2], np.s_[1::2], False),
        (np.s_[::2], np.s_[::-2], False),
        (np.s_[::-3], np.s_[::2], True),
        (np.s_[1:1], np.s_[:], False),
    ],
)
def test_interleaved_views_do_not_share(a: Any, b: Any, shares: bool) -> None:
    array = np.zeros(10)
    if shares:
        with pytest.raises(dl.LayoutError, match="shares memory"):
            pair().bind(a=array[a], b=array[b])
    else:
        assert pair().bind(a=array[a], b=array[b]).b.ptr == array[b].ctypes.data


def test_columns_parts_and_halos_do_not_share() -> None:
    block = np.zeros((6, 6, 6))
    both = dl.Signature(inner=F8, out=W8)
    assert both.bind(inner=block[1:-1, 1:-1, 1:-1], out=block[:1]).domain == (1, 4, 4)
    assert both.bind(inner=block[:, ::2], out=block[:, 1::2]).domain == (6, 3, 6)
    with pytest.raises(dl.LayoutError, match="shares memory"):
        both.bind(inner=block[1:-1], out=block[:, :, 5:])
    numbers = np.zeros((3, 3, 3), "complex128")
    assert both.bind(inner=numbers.real, out=numbers.imag).domain == (3, 3, 3)


@given(st.data())
def test_sharing_is_numpys_exact_answer(data: st.DataObject) -> None:
    block = np.zeros((5, 6))
    step = st.integers(-3, 3).filter(bool)
    cut = st.builds(slice, st.none() | st.integers(0, 6), st.none() | st.integers(0, 6), step)
    one, other = (block[data.draw(cut), data.draw(cut)] for _ in range(2))
    sig = dl.Signature(a=spec(), b=spec(access="w"))
    if np.shares_memory(one, other):
        with pytest.raises(dl.LayoutError, match="shares memory"):
            sig.bind(a=one, b=other)
    else:
        sig.bind(a=one, b=other)


def test_the_first_compute_point_is_what_is_aligned() -> None:
    sig = dl.Signature(x=spec(alignment_size=64))
    field = dl.zeros((6, 8), dims="IJ", halo=((0, 0), (1, 1)), alignment_size=64)
    assert field.ptr % 64 != 0
    assert sig.bind(x=field).x.ptr == field.ptr
    based = dl.zeros((6, 8), dims="IJ", alignment_size=64)
    assert sig.bind(x=based).x.ptr % 64 == 0
    with pytest.raises(dl.LayoutError, match=r'field "x": .*multiple of 64'):
        sig.bind(x=dl.zeros((6, 8), dims="IJ", origin=(0, 1), alignment_size=64))
    # Where there is nothing, nothing is badly aligned.
    assert sig.bind(x=misaligned()[:0]).x.size == 0
    # Any number will do.
    assert dl.Signature(x=spec(alignment_size=24)).bind(x=dl.zeros((3, 3), alignment_size=24)).x.ptr % 24 == 0


def test_another_layout_is_a_warning_at_the_callers_line() -> None:
    sig = dl.Signature(x=spec(layout=(1, 0)), y=spec(layout=(0, 1)))
    array = np.zeros((3, 4))
    for _ in range(2):
        with pytest.warns(dl.LayoutWarning) as caught:
            bound = sig.bind(x=array, y=array)
        (told,) = caught
        assert str(told.message) == 'field "x": layout: [0, 1] for dims (I, J); wanted is [1, 0]; this is slow'
        assert told.filename == __file__
        assert bound.x.ptr == array.ctypes.data


def test_layouts_that_mean_the_same_are_not_slow() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK", layout=(2, 1, 0)))
    quick = [
        np.zeros((3, 4, 5), order="F"),
        np.zeros((3, 1, 1)),
        np.zeros((1, 1, 5)),
        np.zeros((3, 0, 5)),
        np.zeros((3, 4, 5), order="F")[::-1, ::2, ::-1],
        dl.zeros((5, 4, 3), dims="KJI"),
        # Nothing has to be fetched for a dimension along which all elements are one.
        np.broadcast_to(np.zeros(5), (3, 4, 5)),
        np.broadcast_to(np.zeros((3, 1, 1)), (3, 4, 5)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for array in quick:
            sig.bind(x=array)


@given(st.data())
def test_a_layout_is_slow_where_its_strides_are_out_of_order(data: st.DataObject) -> None:
    layout = tuple(data.draw(st.permutations(range(3))))
    shape = data.draw(st.tuples(*[st.integers(0, 3)] * 3))
    array = np.zeros(shape).transpose(data.draw(st.permutations(range(3))))
    by_rank = [axis for _, axis in sorted(zip(layout, range(3), strict=True))]
    steps = [array.strides[axis] for axis in by_rank if array.shape[axis] != 1]
    slow = array.size > 0 and steps != sorted(steps, reverse=True)
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK", layout=layout))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sig.bind(x=array)
    assert [told.category for told in caught] == [dl.LayoutWarning] * slow
    if slow:
        found, wanted = re.findall(r"\[[\d, ]+\]", str(caught[0].message))
        assert wanted == str(list(layout))
        assert found != wanted


def test_a_warning_that_is_an_error_is_raised() -> None:
    sig = dl.Signature(x=spec(layout=(1, 0)))
    array = np.zeros((3, 4))
    held = sys.getrefcount(array)
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(dl.LayoutWarning, match='"x"'):
                sig.bind(x=array)
    assert sys.getrefcount(array) == held


class OwnError(Exception):
    pass


@pytest.mark.parametrize("error", [OwnError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_producer_raises_passes_with_the_fields_name(error: BaseException) -> None:
    sig = dl.Signature(a=spec(), b=spec())
    array = np.zeros((3, 4))
    held = sys.getrefcount(array)
    names = ["__array_interface__", "__gt_data_interface__", "__gt_dims__", "__gt_origin__", "__dlpack__", "dims"]
    producers: list[Any] = [RaisingProducer(error), *(partly(array, name, error) for name in names)]
    for producer in producers:
        with pytest.raises(type(error)) as caught:
            sig.bind(a=array, b=producer)
        assert caught.value is error
        assert error.__notes__[-1] == 'field "b"'
    del producers, producer, caught
    error.__traceback__ = None
    gc.collect()
    assert sys.getrefcount(array) == held


def partly(array: Array, name: str, error: BaseException) -> Any:
    """Has an array interface, and an attribute that raises."""

    class Partly(Raising):
        def __init__(self) -> None:
            super().__init__(name, error)
            if name != "__array_interface__":
                self.__array_interface__ = interface_of(array.copy())

    return Partly()


def test_memory_of_a_gpu_is_bound_without_one() -> None:
    def gpu(address: int, **changes: Any) -> Exposing:
        return cuda(shape=(2, 3), typestr="<f8", data=(address, False), **changes)

    sig = dl.Signature(device="cuda:0", x=spec(), out=spec(access="w", alignment_size=32))
    bound = sig.bind(x=gpu(NOWHERE), out=gpu(NOWHERE + 64))
    assert (bound.x.ptr, bound.x.device, bound.domain) == (NOWHERE, "cuda:0", (2, 3))
    with pytest.raises(dl.LayoutError, match=r'"out": it is written, and shares memory with field "x"'):
        sig.bind(x=gpu(NOWHERE), out=gpu(NOWHERE + 32))
    with pytest.raises(dl.LayoutError, match=r'"out": .*multiple of 32'):
        sig.bind(x=gpu(NOWHERE), out=gpu(NOWHERE + 72))
    with pytest.raises(dl.DeviceError, match=r'"x": .*cpu.*cuda:0'):
        sig.bind(x=np.zeros((2, 3)), out=gpu(NOWHERE))
    both = Exposing(
        __gt_data_interface__={
            None: interface_of(np.zeros((2, 3))),
            ("gpu", 0): device_interface(typestr="<f8", dims=("J", "I"), shape=(3, 2)),
        }
    )
    assert sig.bind(x=both, out=gpu(NOWHERE + 64)).x.shape == (2, 3)
    assert dl.Signature(x=spec()).bind(x=both).x.device == "cpu"


def test_a_bound_keeps_its_arrays() -> None:
    bound = dl.Signature(x=spec()).bind(x=np.arange(12.0).reshape(3, 4))
    assert values(bound.x) == np.arange(12.0).reshape(3, 4).tolist()
    found = bound.x
    del bound
    assert values(found) == np.arange(12.0).reshape(3, 4).tolist()


def test_threads_bind_the_same_signature() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK"), out=W8)
    failures: list[BaseException] = []
    interval = sys.getswitchinterval()

    def work(extent: int) -> None:
        array, out = np.zeros((extent, 2, 2)), np.zeros((2, 2, extent))
        try:
            for _ in range(300):
                with sig.bind(x=Exposing(__array_interface__=interface_of(array)), out=dataarray(out, "KJI")) as fields:
                    assert fields.domain == (extent, 2, 2)
                    assert (fields.x.ptr, fields.out.ptr) == (array.ctypes.data, out.ctypes.data)
        except BaseException as error:
            failures.append(error)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(extent,)) for extent in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []
