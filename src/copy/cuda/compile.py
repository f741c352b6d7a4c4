"""Compile kernels.cu to kernels.ptx with NVRTC, which PyPI has: `pip install nvidia-cuda-nvrtc-cu12`.

The architecture is an old one, and the version of PTX that of CUDA 11.2, the oldest driver that dlfield takes: NVRTC
writes its own version, but the kernels use nothing that is newer.
"""

import ctypes
import hashlib
import re
from importlib.metadata import files
from pathlib import Path

HERE = Path(__file__).parent
OPTIONS = [b"--gpu-architecture=compute_52", b"--std=c++17"]


def compiled(source: bytes) -> str:
    """Return what NVRTC makes of a source."""
    library = next(file for file in files("nvidia-cuda-nvrtc-cu12") or [] if file.name == "libnvrtc.so.12")
    nvrtc = ctypes.CDLL(str(library.locate()))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    failed = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    content = "ProgramLog" if failed else "PTX"
    getattr(nvrtc, f"nvrtcGet{content}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{content}")(program, text)
    if failed:
        raise SystemExit(text.value.decode())
    return text.value.decode()


def main() -> None:
    """Write kernels.ptx."""
    source = (HERE / "kernels.cu").read_bytes()
    ptx = re.sub(r"^\.version .*$", ".version 7.2", compiled(source), count=1, flags=re.MULTILINE)
    ptx = re.sub(r"^//.*\n", "", ptx, flags=re.MULTILINE).strip()
    made_of = f"// Made by `make kernels` of kernels.cu with SHA-256 {hashlib.sha256(source).hexdigest()}"
    (HERE / "kernels.ptx").write_text(f"{made_of}\n{ptx}\n")


if __name__ == "__main__":
    main()
