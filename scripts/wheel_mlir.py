"""MLIR in every form that the parser and printer of the Python package numba-cuda-mlir write: MLIR 23.

    python wheel_mlir.py OUTPUT-FOLDER PIPELINE INPUT.mlir...

writes STEM.gpu.FORM and, after the pipeline, STEM.lowered.FORM; what cannot be read or lowered has no file. The package itself
is not imported: it looks for a GPU.
"""

import importlib.util
import sys
import types
from pathlib import Path

found = importlib.util.find_spec("numba_cuda_mlir")
package = types.ModuleType("numba_cuda_mlir")
package.__path__ = list(found.submodule_search_locations)
sys.modules["numba_cuda_mlir"] = package

from numba_cuda_mlir._mlir import ir  # noqa: E402
from numba_cuda_mlir._mlir._mlir_libs import _mlirRegisterEverything  # noqa: E402
from numba_cuda_mlir._mlir.passmanager import PassManager  # noqa: E402


def write(operation: ir.Operation, stem: str) -> None:
    texts = {
        "custom.mlir": {},
        "custom-locations.mlir": {"enable_debug_info": True},
        "generic.mlir": {"print_generic_op_form": True},
        "generic-locations.mlir": {"print_generic_op_form": True, "enable_debug_info": True},
    }
    for form, flags in texts.items():
        Path(f"{stem}.{form}").write_text(operation.get_asm(**flags))
    for form, versions in (("bytecode.mlirbc", []), ("bytecode-v4.mlirbc", [4])):
        with open(f"{stem}.{form}", "wb") as file:
            operation.write_bytecode(file, *versions)


def main() -> None:
    folder, pipeline, *inputs = sys.argv[1:]
    registry = ir.DialectRegistry()
    _mlirRegisterEverything.register_dialects(registry)
    for path in map(Path, inputs):
        context = ir.Context()
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        with context, ir.Location.unknown():
            try:
                module = ir.Module.parse(path.read_text())
                write(module.operation, f"{folder}/{path.stem}.gpu")
                PassManager.parse(pipeline).run(module.operation)
                write(module.operation, f"{folder}/{path.stem}.lowered")
            except ir.MLIRError as error:
                print(f"{path.name}: {error}".splitlines()[0])


main()
