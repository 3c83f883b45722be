"""Kernels as MLIR and as CUDA C++, from one source: functions of kernels.py, which are read and never executed.

What a plain front end would make of them: `scf`, `memref`, `arith` and `math` on one side, loops over arrays on the other.
Both have the same loads and stores and the same order of operations. Nothing here knows of a compiler's likes.

The language is Python's syntax: `for i in range(lower, upper, step)`, `while`, `if`, assignments, arithmetic. A name that an
`if` or a loop assigns and that existed before is carried. Arrays are annotated as "f32[rows, cols]": names of sizes are
variables. Index arithmetic has MLIR's `index` on one side and INDEX (64 bits by default) on the other.
"""

import ast
import hashlib
import pathlib

C_TYPES = {"f64": "double", "f32": "float", "f16": "__half", "bf16": "__nv_bfloat16", "i64": "long long", "i32": "int", "i16": "short",
           "i8": "signed char", "index": "Index", "bool": "bool"}
DIMENSIONS = {f"{prefix}{axis}": (operation, builtin, axis)
              for prefix, operation, builtin in (("t", "thread_id", "threadIdx"), ("b", "block_id", "blockIdx"),
                                                 ("g", "grid_dim", "gridDim"), ("w", "block_dim", "blockDim"))
              for axis in "xyz"}
UNARY_MATH = {"exp": "expf", "log": "logf", "sqrt": "sqrtf", "rsqrt": "rsqrtf", "tanh": "tanhf", "erf": "erff",
              "sin": "sinf", "cos": "cosf", "abs": "fabsf", "floor": "floorf"}


def is_hidden(name):
    """Whether a kernel is kept out of sight of those who work on the compiler, until the work is done."""
    return hashlib.sha256(f"gpulower quality {name}".encode()).digest()[0] % 3 == 0


class Kernel:
    """One function: its parameters as (name, element type, dimensions); scalars have None for dimensions.

    `shapes` has those of arrays whose sizes are constants, by name.
    """

    def __init__(self, function, shapes):
        self.name, self.function = function.name, function
        self.block = tuple(ast.literal_eval(function.decorator_list[0].args[0]))
        self.parameters, self.sizes, self.constants = [], [], {}
        for argument in function.args.args:
            text = argument.annotation.value
            element, _, shape = text.partition("[")
            dimensions = None
            if shape:
                dimensions = [part.strip() for part in shape.rstrip("]").split(",")]
                for at, part in enumerate(dimensions):
                    if not part.isdigit() and argument.arg in shapes:
                        dimensions[at] = str(shapes[argument.arg][at])
                        self.constants.setdefault(part, shapes[argument.arg][at])
                    elif not part.isdigit() and part not in [size for size, *_ in self.sizes]:
                        self.sizes.append((part, argument.arg, at))
            self.parameters.append((argument.arg, element, dimensions))

    def texts(self, stated):
        """MLIR and CUDA C++."""
        return Writer(self, stated).texts()


def read_kernels(shapes, path=pathlib.Path(__file__).with_name("kernels.py")):
    """`shapes` by kernel and array; empty where sizes are arguments."""
    tree = ast.parse(path.read_text())
    return [Kernel(node, shapes.get(node.name, {})) for node in tree.body if isinstance(node, ast.FunctionDef)]


def three(sizes):
    return (*sizes, 1, 1)[:3]


def stated_block(block, stated):
    """How MLIR and CUDA C++ state a block size; nothing where it is open."""
    x, y, z = three(block)
    return (f"known_block_size = array<i32: {x}, {y}, {z}>", f"__launch_bounds__({x * y * z}) ") if stated else ("", "")


def memref(element, dimensions, shared=False):
    shape = "x".join(part if part.isdigit() else "?" for part in dimensions)
    space = ", #gpu.address_space<workgroup>" if shared else ""
    return f"memref<{shape}x{element}{space}>"


class Value:
    def __init__(self, mlir, c, type):
        self.mlir, self.c, self.type = mlir, c, type


class Writer:
    """Writes both texts at once."""

    def __init__(self, kernel, stated):
        self.kernel, self.stated = kernel, stated
        self.next, self.mlir, self.c = 0, [], []
        self.names, self.arrays, self.shared = {}, {}, []
        self.depth = 2

    def texts(self):
        kernel = self.kernel
        mlir_parameters, c_parameters = [], []
        for name, element, dimensions in kernel.parameters:
            if dimensions is None:
                self.names[name] = Value(f"%{name}", name, element)
                mlir_parameters.append(f"%{name}: {element}")
                c_parameters.append(f"{C_TYPES[element]} {name}")
            else:
                self.arrays[name] = (element, dimensions, memref(element, dimensions))
                mlir_parameters.append(f"%{name}: {memref(element, dimensions)}")
                c_parameters.append(f"{C_TYPES[element]} *RESTRICT {name}")
        for size, array, at in kernel.sizes:
            position = self.constant(at, "index")
            value = self.fresh()
            self.line(f"{value} = memref.dim %{array}, {position} : {self.arrays[array][2]}")
            self.names[size] = Value(value, size, "index")
            c_parameters.append(f"Index {size}")
        for size, number in kernel.constants.items():
            self.names[size] = Value(self.constant(number, "index"), size, "index")
            self.statement(f"const Index {size} = {number};")
        self.block(kernel.function.body)
        shared = ", ".join(f"%{name}: {kind}" for name, kind in self.shared)
        known, bounds = stated_block(kernel.block, self.stated)
        mlir = [f"gpu.module @{kernel.name} {{",
                f"  gpu.func @{kernel.name}({', '.join(mlir_parameters)})",
                f"      {f'workgroup({shared}) ' if shared else ''}kernel attributes {{{known}}} {{",
                *self.mlir, "    gpu.return", "  }", "}"]
        c = [f'extern "C" __global__ void {bounds}{kernel.name}({", ".join(c_parameters)}) {{', *self.c, "}"]
        return "\n".join(mlir) + "\n", "\n".join(c) + "\n"

    # Text.

    def fresh(self):
        self.next += 1
        return f"%v{self.next}"

    def line(self, text):
        self.mlir.append("  " * self.depth + text)

    def statement(self, text):
        self.c.append("  " * (self.depth - 1) + text)

    def constant(self, number, type):
        value = self.fresh()
        if type in ("f16", "f32", "f64"):
            infinity = {"f16": "0xFC00", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}[type]
            number = infinity if number == float("-inf") else repr(float(number))
            number = number if "." in number or "x" in number else number.replace("e", ".0e")
        type = "i1" if type == "bool" else type
        self.line(f"{value} = arith.constant {number} : {type}")
        return value

    def fixed(self, value, type):
        """Gives a literal a type."""
        if not value.type.startswith("literal"):
            if value.type != type:
                raise TypeError(f"{self.kernel.name}: {value.c} is {value.type}, not {type}")
            return value
        number = value.mlir
        if type in ("f32", "f16"):
            c = "-INFINITY" if number == float("-inf") else f"{float(number)!r}f"
            c = f"__float2half({c})" if type == "f16" else c
        else:
            c = repr(number)
        return Value(self.constant(number, type), c, type)

    # Expressions.

    def expression(self, node, want=None):
        value = self.visit(node)
        return self.fixed(value, want) if want else value

    def visit(self, node):
        return getattr(self, f"of_{type(node).__name__}")(node)

    def of_Constant(self, node):
        return Value(node.value, None, "literal float" if isinstance(node.value, float) else "literal int")

    def of_Name(self, node):
        name = node.id
        if name in self.names:
            return self.names[name]
        if name == "inf":
            return Value(float("inf"), None, "literal float")
        operation, builtin, axis = DIMENSIONS[name]
        if operation == "block_dim" and self.stated:
            size = three(self.kernel.block)["xyz".index(axis)]
            # The same promise on both sides; what a compiler makes of it is its own affair.
            value = self.fresh()
            self.line(f"{value} = gpu.block_dim {axis}")
            return Value(value, f"Index({size})", "index")
        value = self.fresh()
        self.line(f"{value} = gpu.{operation} {axis}")
        return Value(value, f"Index({builtin}.{axis})", "index")

    def of_UnaryOp(self, node):
        value = self.visit(node.operand)
        if isinstance(node.op, ast.USub):
            if value.type.startswith("literal"):
                return Value(-value.mlir, None, value.type)
            if value.type[0] == "f":
                result = self.fresh()
                self.line(f"{result} = arith.negf {value.mlir} : {value.type}")
                return Value(result, f"(-{value.c})", value.type)
            return self.binary("sub", Value(0, None, "literal int"), value)
        one = self.constant("true", "bool")
        result = self.fresh()
        self.line(f"{result} = arith.xori {value.mlir}, {one} : i1")
        return Value(result, f"(!{value.c})", "bool")

    def of_BinOp(self, node):
        names = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "div", "Mod": "rem",
                 "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "shl", "RShift": "shru"}
        return self.binary(names[type(node.op).__name__], self.visit(node.left), self.visit(node.right))

    def common(self, left, right):
        type = right.type if left.type.startswith("literal") else left.type
        if type.startswith("literal"):
            type = "f32" if "float" in type else "index"
        return self.fixed(left, type), self.fixed(right, type), type

    def binary(self, name, left, right):
        if left.type.startswith("literal") and right.type.startswith("literal"):
            a, b = left.mlir, right.mlir
            number = {"add": a + b, "sub": a - b, "mul": a * b}[name]
            return Value(number, None, left.type)
        left, right, type = self.common(left, right)
        signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<",
                 "shru": ">>"}
        if type[0] == "f":
            operation = name + "f"
        elif name in ("div", "rem"):
            operation = name + ("ui" if type == "index" else "si")
        else:
            operation = {"shru": "shrui", "shl": "shli"}.get(name, name + "i")
        result = self.fresh()
        self.line(f"{result} = arith.{operation} {left.mlir}, {right.mlir} : {'i1' if type == 'bool' else type}")
        c = f"({left.c} {signs[name]} {right.c})"
        if name == "shru":
            c = f"int(unsigned({left.c}) >> {right.c})"
        return Value(result, c, type)

    def of_Compare(self, node):
        left, right, type = self.common(self.visit(node.left), self.visit(node.comparators[0]))
        name = {"Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "Eq": "eq", "NotEq": "ne"}[type_name(node.ops[0])]
        sign = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}[name]
        result = self.fresh()
        if type[0] == "f":
            self.line(f"{result} = arith.cmpf o{name}, {left.mlir}, {right.mlir} : {type}")
        else:
            predicate = name if name in ("eq", "ne") else "s" + name
            self.line(f"{result} = arith.cmpi {predicate}, {left.mlir}, {right.mlir} : {'i1' if type == 'bool' else type}")
        return Value(result, f"({left.c} {sign} {right.c})", "bool")

    def of_BoolOp(self, node):
        name, sign = ("andi", "&") if isinstance(node.op, ast.And) else ("ori", "|")
        value = self.visit(node.values[0])
        for other in node.values[1:]:
            other = self.visit(other)
            result = self.fresh()
            self.line(f"{result} = arith.{name} {value.mlir}, {other.mlir} : i1")
            value = Value(result, f"({value.c} {sign} {other.c})", "bool")
        return value

    def place(self, node):
        """An element of an array: array, MLIR's indices, and C's."""
        element, dimensions, kind = self.arrays[node.value.id]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.expression(part, "index") for part in parts]
        c = indices[0].c
        for size, index in zip(dimensions[1:], indices[1:]):
            c = f"({c}) * {size} + {index.c}"
        return element, kind, ", ".join(index.mlir for index in indices), f"{node.value.id}[{c}]"

    def of_Subscript(self, node):
        element, kind, indices, c = self.place(node)
        result = self.fresh()
        self.line(f"{result} = memref.load %{node.value.id}[{indices}] : {kind}")
        # A load happens where it stands.
        name = f"l{self.next}"
        self.statement(f"{C_TYPES[element]} {name} = {c};")
        return Value(result, name, element)

    def of_Call(self, node):
        name = node.func.id
        if name in ("f64", "f32", "f16", "i32", "i64", "index", "i8"):
            return self.cast(self.visit(node.args[0]), name)
        arguments = [self.visit(argument) for argument in node.args]
        result = self.fresh()
        if name in UNARY_MATH:
            value = self.fixed(arguments[0], arguments[0].type if arguments[0].type[0] == "f" else "f32")
            function = UNARY_MATH[name] if value.type == "f32" else UNARY_MATH[name][:-1]
            operation = "absf" if name == "abs" else name
            self.line(f"{result} = math.{operation} {value.mlir} : {value.type}")
            return Value(result, f"{function}({value.c})", value.type)
        if name == "fma":
            a, b, type = self.common(*arguments[:2])
            c = self.fixed(arguments[2], type)
            self.line(f"{result} = math.fma {a.mlir}, {b.mlir}, {c.mlir} : {type}")
            return Value(result, f"fmaf({a.c}, {b.c}, {c.c})", type)
        if name in ("max", "min"):
            left, right, type = self.common(*arguments)
            if type[0] == "f":
                self.line(f"{result} = arith.{name}numf {left.mlir}, {right.mlir} : {type}")
                return Value(result, f"f{name}f({left.c}, {right.c})", type)
            self.line(f"{result} = arith.{name}si {left.mlir}, {right.mlir} : {type}")
            return Value(result, f"{name}({left.c}, {right.c})", type)
        if name == "select":
            left, right, type = self.common(*arguments[1:])
            self.line(f"{result} = arith.select {arguments[0].mlir}, {left.mlir}, {right.mlir} : {type}")
            return Value(result, f"({arguments[0].c} ? {left.c} : {right.c})", type)
        if name.startswith("shuffle_"):
            mode = name.removeprefix("shuffle_")
            value, distance = arguments[0], arguments[1].mlir
            offset, width = self.constant(distance, "i32"), self.constant(32, "i32")
            valid = self.fresh()
            self.line(f"{result}, {valid} = gpu.shuffle {mode} {value.mlir}, {offset}, {width} : {value.type}")
            local = f"s{self.next}"
            self.statement(f"{C_TYPES[value.type]} {local} = __shfl_{mode}_sync(0xffffffffu, {value.c}, {distance});")
            return Value(result, local, value.type)
        if name in ("sum_of_block", "max_of_block"):
            value = arguments[0]
            operation = {"sum_of_block": "add", "max_of_block": "maxnumf"}[name]
            self.line(f"{result} = gpu.all_reduce {operation} {value.mlir} uniform {{}} : ({value.type}) -> {value.type}")
            local = f"r{self.next}"
            items = " * ".join(str(part) for part in three(self.kernel.block)) if self.stated else "blockDim.x"
            self.statement(f"{C_TYPES[value.type]} {local} = {name}<{C_TYPES[value.type]}>({value.c}, {items});")
            return Value(result, local, value.type)
        raise TypeError(f"{self.kernel.name}: no such function: {name}")

    def cast(self, value, type):
        if value.type.startswith("literal"):
            return self.fixed(value, type)
        if value.type == type:
            return value
        widths = {"f64": 64, "f32": 32, "f16": 16, "i64": 64, "i32": 32, "i8": 8, "index": 64}
        source = value.type
        if source == "index" and type[0] == "f":
            value, source = self.cast(value, "i64"), "i64"
        if "index" in (source, type):
            operation = "index_cast"
        elif source[0] == "f" and type[0] == "f":
            operation = "extf" if widths[type] > widths[source] else "truncf"
        elif source[0] == "i" and type[0] == "i":
            operation = "extsi" if widths[type] > widths[source] else "trunci"
        else:
            operation = "sitofp" if type[0] == "f" else "fptosi"
        result = self.fresh()
        self.line(f"{result} = arith.{operation} {value.mlir} : {source} to {type}")
        c = f"(({C_TYPES[type]})({value.c}))"
        if "f16" in (source, type):
            c = f"__half2float({value.c})" if source == "f16" else f"__float2half({value.c})"
        return Value(result, c, type)

    # Statements.

    def block(self, statements):
        for statement in statements:
            getattr(self, f"do_{type_name(statement)}")(statement)

    def assign(self, name, value):
        if value.type.startswith("literal"):
            old = self.names.get(name)
            value = self.fixed(value, old.type if old else ("f32" if "float" in value.type else "index"))
        if name in self.names:
            if self.names[name].type != value.type:
                raise TypeError(f"{self.kernel.name}: {name} was {self.names[name].type} and is {value.type}")
            self.statement(f"{name} = {value.c};")
        else:
            self.statement(f"{C_TYPES[value.type]} {name} = {value.c};")
        self.names[name] = Value(value.mlir, name, value.type)

    def do_Assign(self, node):
        target = node.targets[0]
        if isinstance(node.value, ast.Call) and node.value.func.id in ("shared", "local"):
            element = node.value.args[0].value
            dimensions = [str(argument.value) for argument in node.value.args[1:]]
            is_shared = node.value.func.id == "shared"
            kind = memref(element, dimensions, is_shared)
            self.arrays[target.id] = (element, dimensions, kind)
            c = f"{C_TYPES[element]} {target.id}[{' * '.join(dimensions)}];"
            if is_shared:
                self.shared.append((target.id, kind))
                self.statement(f"__shared__ {c}")
            else:
                self.line(f"%{target.id} = memref.alloca() : {kind}")
                self.statement(c)
        elif isinstance(target, ast.Subscript):
            value = self.visit(node.value)
            self.store(target, value)
        else:
            self.assign(target.id, self.visit(node.value))

    def store(self, target, value):
        element, kind, indices, c = self.place(target)
        value = self.fixed(value, element)
        self.line(f"memref.store {value.mlir}, %{target.value.id}[{indices}] : {kind}")
        self.statement(f"{c} = {value.c};")

    def do_AugAssign(self, node):
        load = ast.copy_location(ast.BinOp(left=reading(node.target), op=node.op, right=node.value), node)
        if isinstance(node.target, ast.Subscript):
            self.store(node.target, self.visit(load))
        else:
            self.assign(node.target.id, self.visit(load))

    def do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return
        name = node.value.func.id
        if name == "barrier":
            self.line("gpu.barrier")
            self.statement("__syncthreads();")
            return
        # atomic_add(array[...], value)
        element, kind, indices, c = self.place(node.value.args[0])
        value = self.expression(node.value.args[1], element)
        result = self.fresh()
        array = node.value.args[0].value.id
        operation = "addf" if element[0] == "f" else "addi"
        self.line(f"{result} = memref.atomic_rmw {operation} {value.mlir}, %{array}[{indices}] : "
                  f"({element}, {kind}) -> {element}")
        self.statement(f"atomicAdd(&{c}, {value.c});")

    def carried(self, statements):
        """The names that the statements assign and that exist."""
        names = []
        for statement in statements:
            for node in ast.walk(statement):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(
                    node, ast.AugAssign) else []
                for target in targets:
                    if isinstance(target, ast.Name) and target.id in self.names and target.id not in names:
                        names.append(target.id)
        return names

    def region(self, statements, carried, terminator="scf.yield"):
        """Writes a nested block; returns its lines of MLIR and C."""
        outer_mlir, outer_c, outer_names = self.mlir, self.c, dict(self.names)
        self.mlir, self.c = [], []
        self.depth += 1
        self.block(statements)
        if carried:
            values = ", ".join(self.names[name].mlir for name in carried)
            types = ", ".join(self.names[name].type for name in carried)
            self.line(f"{terminator} {values} : {types}")
        self.depth -= 1
        inner = self.mlir, self.c
        self.mlir, self.c, self.names = outer_mlir, outer_c, outer_names
        return inner

    def results(self, carried):
        """Names for the results of an operation that carries them: the text before it, and what to assign then."""
        if not carried:
            return "", lambda: None
        result = self.fresh()
        types = {name: self.names[name].type for name in carried}

        def assign():
            for at, name in enumerate(carried):
                value = f"{result}#{at}" if len(carried) > 1 else result
                self.names[name] = Value(value, name, types[name])
        count = f":{len(carried)}" if len(carried) > 1 else ""
        return f"{result}{count} = ", assign

    def do_For(self, node):
        bounds = node.iter.args
        if len(bounds) == 1:
            bounds = [ast.Constant(0), *bounds]
        lower, upper = (self.expression(bound, "index") for bound in bounds[:2])
        step = self.expression(bounds[2], "index") if len(bounds) > 2 else self.fixed(Value(1, None, "literal int"), "index")
        carried = self.carried(node.body)
        before, assign = self.results(carried)
        types = ", ".join(self.names[name].type for name in carried)
        start = [f"%c{self.next}_{name} = {self.names[name].mlir}" for name in carried]
        for name in carried:
            self.names[name] = Value(f"%c{self.next}_{name}", name, self.names[name].type)
        counter = node.target.id
        outer = self.names.get(counter)
        self.next += 1
        self.names[counter] = Value(f"%i{self.next}", counter, "index")
        mlir_counter = f"%i{self.next}"
        mlir, c = self.region(node.body, carried)
        arguments = f" iter_args({', '.join(start)}) -> ({types})" if carried else ""
        self.line(f"{before}scf.for {mlir_counter} = {lower.mlir} to {upper.mlir} step {step.mlir}{arguments} {{")
        self.mlir += mlir
        self.line("}")
        advance = f"++{counter}" if step.c == "1" else f"{counter} += {step.c}"
        self.statement(f"for (Index {counter} = {lower.c}; {counter} < {upper.c}; {advance}) {{")
        self.c += c
        self.statement("}")
        del self.names[counter]
        if outer:
            self.names[counter] = outer
        assign()

    def do_While(self, node):
        carried = self.carried(node.body)
        before, assign = self.results(carried)
        types = ", ".join(self.names[name].type for name in carried)
        tag = self.next
        start = ", ".join(f"%w{tag}_{name} = {self.names[name].mlir}" for name in carried)
        kinds = {name: self.names[name].type for name in carried}
        for name in carried:
            self.names[name] = Value(f"%w{tag}_{name}", name, kinds[name])
        # The condition, which must not load.
        outer, self.mlir, outer_c = self.mlir, [], self.c
        self.depth += 1
        self.c = []
        condition = self.visit(node.test)
        values = ", ".join(self.names[name].mlir for name in carried)
        self.line(f"scf.condition({condition.mlir}) {values} : {types}")
        self.depth -= 1
        head, self.mlir, head_c, self.c = self.mlir, outer, self.c, outer_c
        for name in carried:
            self.names[name] = Value(f"%d{tag}_{name}", name, kinds[name])
        mlir, c = self.region(node.body, carried)
        self.line(f"{before}scf.while ({start}) : ({types}) -> ({types}) {{")
        self.mlir += head
        self.line("} do {")
        arguments = ", ".join(f"%d{tag}_{name}: {kinds[name]}" for name in carried)
        self.line(f"^bb0({arguments}):")
        self.mlir += mlir
        self.line("}")
        self.statement("while (true) {")
        self.c += head_c
        self.statement(f"  if (!{condition.c}) break;")
        self.c += c
        self.statement("}")
        assign()

    def do_If(self, node):
        condition = self.visit(node.test)
        carried = self.carried(node.body + node.orelse)
        before, assign = self.results(carried)
        types = ", ".join(self.names[name].type for name in carried)
        mlir, c = self.region(node.body, carried)
        arrow = f" -> ({types})" if carried else ""
        self.line(f"{before}scf.if {condition.mlir}{arrow} {{")
        self.mlir += mlir
        self.statement(f"if {condition.c if condition.c.startswith('(') else '(' + condition.c + ')'} {{")
        self.c += c
        if node.orelse or carried:
            mlir, c = self.region(node.orelse, carried)
            self.line("} else {")
            self.mlir += mlir
            if node.orelse:
                self.statement("} else {")
                self.c += c
        self.line("}")
        self.statement("}")
        assign()

    def do_Pass(self, node):
        pass


def type_name(node):
    return type(node).__name__


def reading(node):
    return ast.parse(ast.unparse(node), mode="eval").body


C_HEADER = """
#ifdef __HIP__
#include "amd.h"
#elif defined(__clang__)
// No CUDA headers: what they would declare.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#define INFINITY __builtin_inff()
struct ThreadIdx { __declspec(property(get = X)) unsigned x; __declspec(property(get = Y)) unsigned y;
  __declspec(property(get = Z)) unsigned z;
  __device__ unsigned X() const { return __nvvm_read_ptx_sreg_tid_x(); }
  __device__ unsigned Y() const { return __nvvm_read_ptx_sreg_tid_y(); }
  __device__ unsigned Z() const { return __nvvm_read_ptx_sreg_tid_z(); } };
struct BlockIdx { __declspec(property(get = X)) unsigned x; __declspec(property(get = Y)) unsigned y;
  __declspec(property(get = Z)) unsigned z;
  __device__ unsigned X() const { return __nvvm_read_ptx_sreg_ctaid_x(); }
  __device__ unsigned Y() const { return __nvvm_read_ptx_sreg_ctaid_y(); }
  __device__ unsigned Z() const { return __nvvm_read_ptx_sreg_ctaid_z(); } };
struct BlockDim { __declspec(property(get = X)) unsigned x; __declspec(property(get = Y)) unsigned y;
  __declspec(property(get = Z)) unsigned z;
  __device__ unsigned X() const { return __nvvm_read_ptx_sreg_ntid_x(); }
  __device__ unsigned Y() const { return __nvvm_read_ptx_sreg_ntid_y(); }
  __device__ unsigned Z() const { return __nvvm_read_ptx_sreg_ntid_z(); } };
struct GridDim { __declspec(property(get = X)) unsigned x;
  __device__ unsigned X() const { return __nvvm_read_ptx_sreg_nctaid_x(); } };
extern const __device__ ThreadIdx threadIdx;
extern const __device__ BlockIdx blockIdx;
extern const __device__ BlockDim blockDim;
extern const __device__ GridDim gridDim;
using __half = _Float16;
__device__ inline float __half2float(__half h) { return h; }
__device__ inline __half __float2half(float f) { return f; }
extern "C" {
__device__ float __nv_expf(float); __device__ float __nv_logf(float); __device__ float __nv_tanhf(float);
__device__ float __nv_erff(float); __device__ float __nv_sinf(float); __device__ float __nv_cosf(float);
__device__ float __nv_rsqrtf(float); __device__ float __nv_log1pf(float); __device__ float __nv_rintf(float);
__device__ float __nv_exp2f(float); __device__ double __nv_sin(double); __device__ double __nv_cos(double);
}
using __nv_bfloat16 = __bf16;
__device__ inline float __bfloat162float(__nv_bfloat16 h) { return h; }
__device__ inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
template <class T> __device__ inline T min(T a, T b) { return b < a ? b : a; }
template <class T> __device__ inline T max(T a, T b) { return a < b ? b : a; }
#define expf __nv_expf
#define logf __nv_logf
#define tanhf __nv_tanhf
#define erff __nv_erff
#define sinf __nv_sinf
#define cosf __nv_cosf
#define rsqrtf __nv_rsqrtf
#define sqrtf __builtin_sqrtf
#define fabsf __builtin_fabsf
#define floorf __builtin_floorf
#define fmaxf __builtin_fmaxf
#define fminf __builtin_fminf
#define fmaf __builtin_fmaf
#define log1pf __nv_log1pf
#define rintf __nv_rintf
#define exp2f __nv_exp2f
#define sin __nv_sin
#define cos __nv_cos
#define fabs __builtin_fabs
__device__ inline int __shfl_xor_sync(unsigned m, int v, int d) { return __nvvm_shfl_sync_bfly_i32(m, v, d, 31); }
__device__ inline float __shfl_xor_sync(unsigned m, float v, int d) { return __nvvm_shfl_sync_bfly_f32(m, v, d, 31); }
__device__ inline double __shfl_xor_sync(unsigned m, double v, int d) {
  union { double d; int i[2]; } u{v};
  u.i[0] = __shfl_xor_sync(m, u.i[0], d);
  u.i[1] = __shfl_xor_sync(m, u.i[1], d);
  return u.d;
}
__device__ inline int __shfl_up_sync(unsigned m, int v, int d) { return __nvvm_shfl_sync_up_i32(m, v, d, 0); }
__device__ inline long long __shfl_up_sync(unsigned m, long long v, int d) {
  union { long long l; int i[2]; } u{v};
  u.i[0] = __shfl_up_sync(m, u.i[0], d);
  u.i[1] = __shfl_up_sync(m, u.i[1], d);
  return u.l;
}
__device__ inline float __shfl_down_sync(unsigned m, float v, int d) { return __nvvm_shfl_sync_down_f32(m, v, d, 31); }
template <typename T> __device__ inline void atomicAdd(T *at, T v) {
  __scoped_atomic_fetch_add(at, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
template <typename T> __device__ inline void atomicOr(T *at, T v) {
  __scoped_atomic_fetch_or(at, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
#else
// cuda_fp16.h would need the headers of CCCL.
struct alignas(2) __half { unsigned short bits; };
__device__ inline float __half2float(__half h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
  return f;
}
__device__ inline __half __float2half(float f) {
  __half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}
struct alignas(2) __nv_bfloat16 { unsigned short bits; };
__device__ inline float __bfloat162float(__nv_bfloat16 h) { return __uint_as_float(unsigned(h.bits) << 16); }
__device__ inline __nv_bfloat16 __float2bfloat16(float f) {
  __nv_bfloat16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
  return h;
}
#endif
#ifndef INDEX
#define INDEX long long
#endif
#ifndef RESTRICT
#define RESTRICT
#endif
using Index = INDEX;

template <typename T> __device__ T joined(T a, T b, bool sum) { return sum ? a + b : (a > b ? a : b); }

/// Warps by shuffles, then the warps' results by every warp.
template <typename T> __device__ __forceinline__ T of_block(T value, int items, bool sum, T neutral) {
  __shared__ T partial[32];
  for (int step = 16; step > 0; step /= 2)
    value = joined(value, __shfl_xor_sync(0xffffffffu, value, step), sum);
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < items / 32 ? partial[threadIdx.x % 32] : neutral;
  for (int step = 16; step > 0; step /= 2)
    value = joined(value, __shfl_xor_sync(0xffffffffu, value, step), sum);
  return value;
}
template <typename T> __device__ __forceinline__ T sum_of_block(T value, int items) { return of_block(value, items, true, T(0)); }
template <typename T> __device__ __forceinline__ T max_of_block(T value, int items) { return of_block(value, items, false, T(-INFINITY)); }
"""
