"""MLIR in every form that the parser and printer of the Python package numba-cuda-mlir write: MLIR 23.

    python wheel_mlir.py OUTPUT-FOLDER LEVEL=PIPELINE... -- INPUT.mlir...

writes STEM.LEVEL.FORM after each pipeline; what cannot be read or lowered has no file. The package itself
is not imported: it looks for a GPU.
"""

import importlib.util
import sys
import types
from itertools import product
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
    separator = sys.argv.index("--")
    folder, *levels = sys.argv[1:separator]
    registry = ir.DialectRegistry()
    _mlirRegisterEverything.register_dialects(registry)
    for path, (level, _, pipeline) in product(map(Path, sys.argv[separator + 1 :]), (level.partition("=") for level in levels)):
        context = ir.Context()
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        with context, ir.Location.unknown():
            try:
                module = ir.Module.parse(path.read_text())
                PassManager.parse(pipeline).run(module.operation)
                write(module.operation, f"{folder}/{path.stem}.{level}")
            except ir.MLIRError as error:
                print(f"{path.name}, {level}: {error}".splitlines()[0])


main()
