"""Kernels as upstream's lowering makes them of linalg, and the same as CUDA C++: the lowered kernel, operation by operation.

linalg.mlir has the functions. `mlir-opt` makes loops of them, tiles them by what a block has, and outlines one kernel of each.
"""

import pathlib
import re
import subprocess

from twins import C_TYPES

PASSES = ("linalg-generalize-named-ops,convert-linalg-to-parallel-loops,"
          "scf-parallel-loop-tiling{parallel-loop-tile-sizes=TILE no-min-max-bounds=true},gpu-map-parallel-loops")
PIPELINE = (f"builtin.module(func.func({PASSES}),convert-parallel-loops-to-gpu,lower-affine,canonicalize,cse,"
            "func.func(gpu-launch-sink-index-computations),gpu-kernel-outlining,canonicalize,cse)")
BINARY = {"muli": "*", "addi": "+", "subi": "-", "divui": "/", "remui": "%", "andi": "&", "ori": "|", "mulf": "*", "addf": "+", "subf": "-",
          "divf": "/"}
COMPARED = {"ult": "<", "slt": "<", "ule": "<=", "sle": "<=", "ugt": ">", "sgt": ">", "uge": ">=", "sge": ">=", "eq": "==", "ne": "!="}
MATH = {"exp": "expf", "sqrt": "sqrtf", "tanh": "tanhf", "rsqrt": "rsqrtf"}


class Kernel:
    """One function of linalg.mlir, lowered: what twins.Kernel has, and its texts."""

    def __init__(self, text, tile, mlir_opt):
        self.name = re.search(r"@(\w+)", text)[1]
        pipeline = PIPELINE.replace("TILE", tile.replace(" ", ""))
        result = subprocess.run([mlir_opt, f"--pass-pipeline={pipeline}"], input=text, capture_output=True, text=True, check=True)
        module = result.stdout[result.stdout.index("  gpu.module"):].rstrip().removesuffix("}").rstrip()
        found = re.search(r"gpu\.func @\w+\((.*)\) kernel attributes \{known_block_size = array<i32: ([\d, ]+)>.*\} \{", module)
        if not found or module.count("gpu.func") != 1:
            raise ValueError(f"{self.name}: no kernel, or several, became of it:\n{module}")
        self.module = re.sub(r"@\w+_kernel\b", f"@{self.name}", module)
        self.block = tuple(int(part) for part in found[2].split(","))
        self.parameters, self.sizes, self.arrays = [], [], {}
        # The outlined kernel has its arguments in another order than the function.
        launched = re.search(r"args\((.*)\)\n", result.stdout)[1]
        names = dict(zip((f"%arg{at}" for at in range(99)), re.findall(r"%(\w+): memref", text)))
        if "index" in found[1]:
            raise ValueError(f"{self.name}: it is launched in a loop")
        for (argument, kind), outer in zip(re.findall(r"(%\w+): memref<([^>]*)>", found[1]), re.findall(r"(%\w+) : memref", launched)):
            *dimensions, element = kind.split("x")
            name = names[outer]
            shape = [part if part != "?" else f"{name}_{at}" for at, part in enumerate(dimensions)]
            self.arrays[argument] = (name, element, shape)
            self.parameters.append((name, element, shape))
            self.sizes += [(f"{name}_{at}", name, at) for at, part in enumerate(dimensions) if part == "?"]

    def texts(self, stated):
        mlir = self.module if stated else re.sub(r" attributes \{known_block_size.*\} \{", " {", self.module)
        items = self.block[0] * self.block[1] * self.block[2]
        parameters = [f"{C_TYPES[element]} *RESTRICT {name}" for name, element, _ in self.parameters]
        parameters += [f"Index {size}" for size, *_ in self.sizes]
        bounds = f"__launch_bounds__({items}) " if stated else ""
        head = f'extern "C" __global__ void {bounds}{self.name}({", ".join(parameters)}) {{'
        return mlir + "\n", "\n".join([head, *Translator(self.arrays).lines(self.module), "}"]) + "\n"


class Translator:
    """The operations of a kernel as statements of C++: a variable for each value."""

    def __init__(self, arrays):
        self.arrays, self.constants = arrays, {}

    def lines(self, module):
        body = module[module.index("gpu.func"):].splitlines()[1:]
        end = next(at for at, line in enumerate(body) if "gpu.return" in line)
        return ["  " + self.statement(line.strip()) for line in body[:end]]

    def value(self, name):
        name = name.strip()
        return self.constants.get(name, "v" + name[1:].replace("#", "_"))

    def place(self, array, indices):
        name, _, shape = self.arrays[array]
        place = ""
        for size, index in zip(shape, indices.split(",")):
            place = f"({place}) * {size} + {self.value(index)}" if place else self.value(index)
        return f"{name}[{place}]"

    def statement(self, line):
        if line == "}":
            return line
        if found := re.fullmatch(r"scf\.if (%\w+) \{", line):
            return f"if ({self.value(found[1])}) {{"
        if found := re.fullmatch(r"scf\.for (%\w+) = (%\w+) to (%\w+) step (%\w+) +\{", line):
            counter, lower, upper, step = (self.value(part) for part in found.groups())
            return f"for (Index {counter} = {lower}; {counter} < {upper}; {counter} += {step}) {{"
        if found := re.fullmatch(r"memref\.store (%\w+), (%\w+)\[(.*)\] : .*", line):
            return f"{self.place(found[2], found[3])} = {self.value(found[1])};"
        name, _, rest = line.partition(" = ")
        if found := re.fullmatch(r"arith\.constant (\S+) : (\w+)", rest):
            suffix = "f" if found[2] == "f32" else ""
            self.constants[name] = f"{found[1]}{suffix}" if found[2] != "index" else f"Index({found[1]})"
            return f"// {rest}"
        type, value = self.expression(rest)
        return f"{type} {self.value(name)} = {value};"

    def expression(self, text):
        if found := re.fullmatch(r"gpu\.(block|thread)_id +(\w)", text):
            return "Index", f"{found[1]}Idx.{found[2]}"
        if found := re.fullmatch(r"memref\.dim (%\w+), (%\w+) : .*", text):
            at = int(re.search(r"\d+", self.constants[found[2]])[0])
            return "Index", self.arrays[found[1]][2][at]
        if found := re.fullmatch(r"memref\.load (%\w+)\[(.*)\] : .*", text):
            return C_TYPES[self.arrays[found[1]][1]], self.place(found[1], found[2])
        if found := re.fullmatch(r"arith\.cmpi (\w+), (%\w+), (%\w+) : \w+", text):
            unsigned = "unsigned long long" if found[1].startswith("u") else "Index"
            left, right = (f"({unsigned}){self.value(part)}" for part in (found[2], found[3]))
            return "bool", f"{left} {COMPARED[found[1]]} {right}"
        if found := re.fullmatch(r"arith\.maximumf (%\w+), (%\w+) : (\w+)", text):
            left, right = self.value(found[1]), self.value(found[2])
            if found[3] == "f16":
                return "__half", f"__float2half(larger(__half2float({left}), __half2float({right})))"
            return "float", f"larger({left}, {right})"
        if found := re.fullmatch(r"arith\.(\w+) (%\w+), (%\w+)[^:]*: (\w+)", text):
            type = "bool" if found[4] == "i1" else C_TYPES[found[4]]
            return type, f"{self.value(found[2])} {BINARY[found[1]]} {self.value(found[3])}"
        if found := re.fullmatch(r"arith\.(extf|truncf|extsi) (%\w+) : (\w+) to (\w+)", text):
            convert = {"extf": "__half2float", "truncf": "__float2half", "extsi": ""}[found[1]]
            return C_TYPES[found[4]], f"{convert}({self.value(found[2])})"
        if found := re.fullmatch(r"math\.(\w+) (%\w+) : f32", text):
            return "float", f"{MATH[found[1]]}({self.value(found[2])})"
        raise ValueError(f"not translated: {text}")


C_HEADER = """
/// As `arith.maximumf`: what is not a number stays.
__device__ inline float larger(float a, float b) {
#ifdef __clang__
  return __builtin_isnan(a) || __builtin_isnan(b) ? a + b : fmaxf(a, b);
#else
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#endif
}
"""


def with_shapes(text, shapes):
    """A function of arrays with constant sizes."""

    def kind(name, before):
        element = before.split("x")[-1]
        return "memref<" + "x".join([*(str(size) for size in shapes[name]), element]) + ">" if name in shapes else f"memref<{before}>"

    def operands(found):
        kinds = zip(re.findall(r"%(\w+)", found[2]), re.findall(r"memref<([^>]*)>", found[3]))
        return f"{found[1]}({found[2]} : {', '.join(kind(*each) for each in kinds)})"

    text = re.sub(r"%(\w+): memref<([^>]*)>", lambda found: f"%{found[1]}: {kind(found[1], found[2])}", text)
    return re.sub(r"(ins|outs)\(([%\w, ]+) : ([^)]*)\)", operands, text)


def read_kernels(shapes, mlir_opt, path=pathlib.Path(__file__).with_name("linalg.mlir")):
    found = re.findall(r"^// ([\d, ]+)\n(func\.func.*?^\}\n)", path.read_text(), re.MULTILINE | re.DOTALL)
    names = [re.search(r"@(\w+)", text)[1] for _, text in found]
    return [Kernel(with_shapes(text, shapes.get(name, {})), tile, mlir_opt) for name, (tile, text) in zip(names, found)]
