# lit configuration. `cargo xtask test lit` sets the variables; see CONTRIBUTING.md.
import os

import lit.formats

config.name = "gpulower"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ll", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
repository = os.path.dirname(os.path.dirname(config.test_source_root))


def folder(variable, fallback, program):
    """A folder that holds a program the tests need; a missing one fails here and says so."""
    path = os.environ.get(variable, fallback)
    if not os.path.exists(os.path.join(path, program)):
        lit_config.fatal(f"{variable}: no {program} in {path}; run `cargo xtask setup`, or the tests through `cargo xtask test lit`")
    return path


binaries = folder("GPULOWER_BIN_DIR", os.path.join(repository, "target", "debug"), "gpulower-opt")
llvm = folder("GPULOWER_LLVM_BIN", "/usr/lib/llvm-22/bin", "FileCheck")
cuda = folder("GPULOWER_CUDA", os.path.join(repository, ".toolkit", "cuda"), "bin/ptxas")

config.test_exec_root = os.path.join(binaries, "lit")
config.environment["PATH"] = os.pathsep.join([binaries, llvm, os.path.join(cuda, "bin"), os.environ["PATH"]])
config.environment["CUDA_HOME"] = cuda
for variable in ["CUDA_PATH", "CUDA_ROOT", "ROCM_PATH", "ROCM_ROOT", "ROCM_HOME", "HIP_DEVICE_LIB_PATH"]:
    config.environment.pop(variable, None)
# What is tested is to be compiled.
config.environment["GPULOWER_CACHE"] = "off"
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")

# `... | %text` shows the assembly inside a gpu.binary line by line; `... | %objects FOLDER` writes each object to a file.
config.substitutions.append(("%text", "sed -e 's/\\\\0A/\\n/g' -e 's/\\\\09/ /g' -e 's/\\\\22/\"/g'"))
config.substitutions.append(("%objects", "python3 " + os.path.join(config.test_source_root, "Inputs", "objects.py")))
config.substitutions.append(("%binaries", binaries))
config.substitutions.append(("%examples", os.path.join(repository, "examples")))
config.substitutions.append(("%cuda", cuda))
config.substitutions.append(("%llvm", llvm))
