"""Changes of the sources, each of which takes out the fix of a crash, wrong data or a leak that once was in dlfield.

The adversary has to find each of them: `make mutants`. `tests/py/exchange/test_adversary.py` checks that they apply.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

IMPORT = "src/python/import"


class Mutation(NamedTuple):
    """A text that occurs once in a file, and what replaces it."""

    name: str
    file: str
    old: str
    new: str
    # Whether it shows in the example extension instead of the module.
    of_extension: bool = False
    # Parts of the names of the functions that the adversary calls, to find it in less time; without any, all.
    functions: tuple[str, ...] = ()

    def apply(self, tree: Path) -> None:
        """Change the file in a copy of the sources; the text has to be there once."""
        path = tree / self.file
        text = path.read_text()
        count = text.count(self.old)
        if count != 1:
            raise LookupError(f"{self.name}: the old text occurs {count} times in {self.file}; adapt mutations.py")
        path.write_text(text.replace(self.old, self.new))


MUTATIONS = (
    Mutation(
        "an owner keeps the PyTorch tensor, not its storage",
        f"{IMPORT}/torch.rs",
        "    Ok(out.owned(storage.into_owner_of(out.descriptor)?))\n",
        "    Ok(out.owned(py_owner::owner(tensor)))\n",
    ),
    Mutation(
        "the storage that an owner keeps stays resizable",
        f"{IMPORT}/torch.rs",
        'if device != Device::CPU || !self.0.call_method0(intern!(py, "resizable"))?.is_truthy()? {',
        'if device == Device::CPU || !self.0.call_method0(intern!(py, "resizable"))?.is_truthy()? {',
    ),
    Mutation(
        "an owned NumPy array stays resizable",
        f"{IMPORT}/owners.rs",
        "let owner = py_owner::pinned(&holder)?;",
        "let owner = py_owner::owner(&holder);",
    ),
    Mutation(
        "an array that an interface names as its data stays resizable",
        f"{IMPORT}/held_buffer.rs",
        "Ok(Owner::foreign((pinned, self)))",
        "drop(pinned);\n        Ok(Owner::foreign(self))",
    ),
    Mutation(
        "a description of a PyTorch tensor is not checked before its memory is used",
        f"{IMPORT}/pinned.rs",
        "        check_unmoved(object, found)?;\n        return storage.into_owner_of(found);\n",
        "        return Ok(py_owner::owner(object));\n",
    ),
    Mutation(
        "a description of a NumPy array is not checked before its memory is used",
        f"{IMPORT}/pinned.rs",
        "    check_unmoved(object, found)?;\n    Ok(owner)\n",
        "    Ok(owner)\n",
    ),
    Mutation(
        "elements are written back to an address of before the body",
        "src/python/module/signature/field.rs",
        "let _pinned = import::pin_described(&self.original.get().parts(py))?;",
        "let _pinned = ();",
        functions=("Signature.bind",),
    ),
    Mutation(
        "bind does not check earlier arguments after code of later ones",
        "src/python/module/signature/bound.rs",
        "        self.check_unmoved(py, known)?;\n",
        "",
        functions=("Signature.bind",),
    ),
    Mutation(
        "a bound call does not check its fields when it is entered",
        "src/python/module/signature/bound.rs",
        "errors.add(bound.check_unmoved(py, signature));",
        "errors.add(Ok(()));",
        functions=("Signature.bind",),
    ),
    Mutation(
        "an extension's arguments are not checked after code of later ones",
        "src/python/from_py/open.rs",
        "ran || !is_located).map_err(refusal)?;",
        "ran).map_err(refusal)?;",
        of_extension=True,
    ),
    Mutation(
        "PyTorch is given a managed tensor of a type that it may not have",
        "src/python/module/export/torch.rs",
        " || !supports(py, dtype)? {",
        " || !supports(py, dtype)? && false {",
        functions=("as_torch",),
    ),
    Mutation(
        "a request for a buffer without a shape gets all dimensions",
        "src/python/module/export/buffer.rs",
        "(*view).ndim = if shaped { parts.ndim } else { 1 };",
        "(*view).ndim = parts.ndim;",
    ),
    Mutation(
        "the exchange table exports read-only memory",
        "src/python/module/export/dlpack_c_exchange.rs",
        "            check_writable(&tensor.get().0)?;\n            *out = tensor.get().0.to_versioned",
        "            *out = tensor.get().0.to_versioned",
    ),
    Mutation(
        "a function of a table that fails without an exception becomes a SystemError",
        f"{IMPORT}/dlpack_c_exchange.rs",
        "error.unwrap_or_else(|| errors::no_exception_set(EXPORT, object.get_type()))",
        "error.unwrap_or_else(|| PyErr::fetch(object.py()))",
        functions=("describe", "from_dlpack"),
    ),
)
