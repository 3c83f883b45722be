"""Opens libgpulower.so.1 with ctypes, beside Python packages that bring an LLVM of their own, with faulthandler on.

neighbours.py LIBRARY [gpulower|MODULE|+MODULE|PATH.so ...]: in this order, with a sign for all to see; after each, once ours is open, it compiles cleanly, into
a fatal error of LLVM, into a crash of MLIR, and cleanly again.
"""

import ctypes
import faulthandler
import importlib
import os
import sys

CLEAN = b"""gpu.module @saxpy { gpu.func @saxpy(%p: memref<?xf32>, %a: f32) kernel {
  %i = gpu.global_id x
  %x = memref.load %p[%i] : memref<?xf32>
  %y = arith.mulf %x, %a : f32
  memref.store %y, %p[%i] : memref<?xf32>
  gpu.return } }"""
FATAL = b"""declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
define ptx_kernel void @k(ptr %p) {
  %v = call i32 @llvm.nvvm.redux.sync.add(i32 1, i32 -1)
  store i32 %v, ptr %p ret void }"""
CRASH = b"gpu.module @m { gpu.func @k(%a: !amdgpu.tdm_gather_base<index, i32>) kernel { gpu.return } }"


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        self.c.gpulower_result_error.restype = ctypes.c_void_p
        self.c.gpulower_error_code.restype = ctypes.c_char_p
        self.compiler = ctypes.c_void_p()
        assert self.c.gpulower_compiler_create(None, ctypes.byref(self.compiler), None) == 0

    def compile(self, name, text, target, emit=None):
        """The bytes, or the code of the first error."""
        c, request, result = self.c, ctypes.c_void_p(), ctypes.c_void_p()
        assert c.gpulower_request_create(ctypes.byref(request), None) == 0
        assert c.gpulower_request_add_input(request, name, text, ctypes.c_size_t(len(text)), None) == 0
        assert c.gpulower_request_set(request, b"target", target, None) == 0
        if emit:
            assert c.gpulower_request_set(request, b"emit", emit, None) == 0
        status = c.gpulower_compile(self.compiler, request, None, ctypes.byref(result))
        if status == 0:
            data, length = ctypes.c_void_p(), ctypes.c_size_t()
            first = ctypes.c_size_t(0)
            assert c.gpulower_result_artifact_bytes(result, first, ctypes.byref(data), ctypes.byref(length)) == 0
            answer = ctypes.string_at(data, length.value)
        else:
            error = ctypes.c_void_p(c.gpulower_result_error(result, ctypes.c_size_t(0)))
            answer = c.gpulower_error_code(error).decode()
        assert c.gpulower_result_free(result) == 0 and c.gpulower_request_free(request) == 0
        return answer

    def compile_all(self):
        before = self.compile(b"clean.mlir", CLEAN, b"gfx942")
        fatal = self.compile(b"fatal.ll", FATAL, b"sm_75", b"ptx")
        crash = self.compile(b"crash.mlir", CRASH, b"gfx942")
        after = self.compile(b"clean.mlir", CLEAN, b"gfx942")
        assert (fatal, crash) == ("E0501", "E1201"), (fatal, crash)
        assert isinstance(before, bytes) and before == after
        return before


def main():
    faulthandler.enable()
    path, order = sys.argv[1], sys.argv[2:]
    library, made = None, set()
    for name in order:
        if name == "gpulower":
            library = Library(path)
        elif ".so" in name:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        else:
            # As in programs that load their plugins so.
            sys.setdlopenflags(os.RTLD_NOW | (os.RTLD_GLOBAL if name.startswith("+") else os.RTLD_LOCAL))
            importlib.import_module(name.removeprefix("+"))
        if library:
            made.add(library.compile_all())
    assert len(made) == 1, "other bytes came out"
    print(f"{' '.join(order)}: the same {len(made.pop())} bytes each time")


main()
