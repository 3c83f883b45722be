//! Families of inputs that grow in one respect each.

use std::fmt::Write;

/// A way for inputs to grow.
pub struct Family {
    /// What there is more and more of.
    pub name: &'static str,
    /// How many at the smallest of the four sizes; each further one has twice as many.
    pub first: usize,
    /// An input with so many.
    pub make: fn(usize) -> String,
    /// Whether only NVIDIA's targets take it.
    pub nvidia_only: bool,
}

const fn family(name: &'static str, first: usize, make: fn(usize) -> String) -> Family {
    Family {
        name,
        first,
        make,
        nvidia_only: false,
    }
}

pub const FAMILIES: &[Family] = &[
    family("workgroup buffers", 400, workgroup_buffers),
    family("private buffers", 100, private_buffers),
    family("nested loops", 25, nested_loops),
    family("loops in a row", 50, loops_in_a_row),
    family("nested conditions", 25, nested_conditions),
    family("conditions in a row", 100, conditions_in_a_row),
    family("chain of multiplications", 1000, chain),
    family("sum of products", 500, tree),
    family("loads and stores", 200, loads_and_stores),
    family("loads, then stores", 200, loads_then_stores),
    family("kernels", 50, kernels),
    family("modules", 25, modules),
    family("device functions", 100, functions),
    family("parameters", 50, parameters),
    family("variables", 100, variables),
    family("constant bytes", 20_000, constant),
    family("blocks", 200, blocks),
    family("cases of a switch", 200, switch),
    family("mathematical functions", 50, mathematical),
    family("barriers", 200, barriers),
    family("reductions of a workgroup", 25, reductions),
    family("shuffles", 100, shuffles),
    family("vectors", 100, vectors),
    family("atomic operations", 100, atomics),
    family("instructions of LLVM IR", 1000, llvm_ir),
    Family {
        nvidia_only: true,
        ..family("instructions of PTX", 1000, ptx)
    },
];

/// Pieces, one for each number.
fn each(count: usize, mut piece: impl FnMut(&mut String, usize) -> std::fmt::Result) -> String {
    let mut text = String::new();
    for index in 0..count {
        // A string takes everything.
        let _ = piece(&mut text, index);
    }
    text
}

fn kernel(body: &str) -> String {
    with_parameters("%in: memref<?xf32>, %out: memref<?xf32>, %x: f32, %n: index", body)
}

fn with_parameters(parameters: &str, body: &str) -> String {
    in_module(&format!(
        "gpu.func @k({parameters}) kernel {{\n{CONSTANTS}{body}gpu.return\n}}\n"
    ))
}

const CONSTANTS: &str = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%id = gpu.thread_id x\n";

fn in_module(functions: &str) -> String {
    format!("gpu.module @m {{\n{functions}}}\n")
}

fn workgroup_buffers(count: usize) -> String {
    const TYPE: &str = "memref<1xf32, #gpu.address_space<workgroup>>";
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "%a{i} = memref.alloc() : {TYPE}\nmemref.store %x, %a{i}[%c0] : {TYPE}"
        )
    }))
}

fn private_buffers(count: usize) -> String {
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "%a{i} = memref.alloca() : memref<4xf32>\nmemref.store %x, %a{i}[%c1] : memref<4xf32>\n\
             %l{i} = memref.load %a{i}[%c1] : memref<4xf32>\nmemref.store %l{i}, %out[%id] : memref<?xf32>"
        )
    }))
}

fn nested_loops(count: usize) -> String {
    let open = each(count, |text, i| writeln!(text, "scf.for %i{i} = %c0 to %n step %c1 {{"));
    kernel(&format!(
        "{open}memref.store %x, %out[%id] : memref<?xf32>\n{}",
        "}\n".repeat(count)
    ))
}

fn loops_in_a_row(count: usize) -> String {
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "scf.for %i{i} = %c0 to %n step %c1 {{\n%l{i} = memref.load %in[%i{i}] : memref<?xf32>\n\
             memref.store %l{i}, %out[%i{i}] : memref<?xf32>\n}}"
        )
    }))
}

fn nested_conditions(count: usize) -> String {
    let open = each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n%q{i} = arith.cmpi sgt, %n, %b{i} : index\nscf.if %q{i} {{\n\
             memref.store %x, %out[%b{i}] : memref<?xf32>"
        )
    });
    kernel(&format!("{open}{}", "}\n".repeat(count)))
}

fn conditions_in_a_row(count: usize) -> String {
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n%l{i} = memref.load %in[%b{i}] : memref<?xf32>\n\
             %q{i} = arith.cmpf ogt, %l{i}, %x : f32\nscf.if %q{i} {{\n\
             memref.store %x, %out[%b{i}] : memref<?xf32>\n}}"
        )
    }))
}

fn chain(count: usize) -> String {
    let text = each(count, |text, i| {
        writeln!(text, "%v{} = arith.mulf %v{i}, %x : f32", i + 1)
    });
    kernel(&format!(
        "%v0 = arith.mulf %x, %x : f32\n{text}memref.store %v{count}, %out[%id] : memref<?xf32>\n"
    ))
}

fn tree(count: usize) -> String {
    let text = each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n%l{i} = memref.load %in[%b{i}] : memref<?xf32>\n\
             %p{i} = arith.mulf %l{i}, %l{i} : f32\n%v{} = arith.addf %v{i}, %p{i} : f32",
            i + 1
        )
    });
    kernel(&format!(
        "%v0 = arith.mulf %x, %x : f32\n{text}memref.store %v{count}, %out[%id] : memref<?xf32>\n"
    ))
}

fn loads_and_stores(count: usize) -> String {
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n%l{i} = memref.load %in[%b{i}] : memref<?xf32>\n\
             memref.store %l{i}, %out[%b{i}] : memref<?xf32>"
        )
    }))
}

fn loads_then_stores(count: usize) -> String {
    let loads = each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n%l{i} = memref.load %in[%b{i}] : memref<?xf32>"
        )
    });
    let stores = each(count, |text, i| {
        writeln!(text, "memref.store %l{i}, %out[%b{i}] : memref<?xf32>")
    });
    kernel(&(loads + &stores))
}

fn kernels(count: usize) -> String {
    in_module(&each(count, |text, i| {
        writeln!(
            text,
            "gpu.func @k{i}(%out: memref<?xf32>, %x: f32) kernel {{\n%id = gpu.thread_id x\n\
             %y = arith.mulf %x, %x : f32\nmemref.store %y, %out[%id] : memref<?xf32>\ngpu.return\n}}"
        )
    }))
}

fn modules(count: usize) -> String {
    each(count, |text, i| {
        writeln!(
            text,
            "gpu.module @m{i} {{\ngpu.func @k(%out: memref<?xf32>) kernel {{\n%id = gpu.thread_id x\n\
             %y = arith.constant {i}.5 : f32\nmemref.store %y, %out[%id] : memref<?xf32>\ngpu.return\n}}\n}}"
        )
    })
}

fn functions(count: usize) -> String {
    let definitions = each(count, |text, i| {
        writeln!(
            text,
            "func.func @f{i}(%x: f32) -> f32 {{\n%y = arith.mulf %x, %x : f32\nfunc.return %y : f32\n}}"
        )
    });
    let calls = each(count, |text, i| {
        writeln!(text, "%v{} = func.call @f{i}(%v{i}) : (f32) -> f32", i + 1)
    });
    in_module(&format!(
        "{definitions}gpu.func @k(%out: memref<?xf32>, %v0: f32) kernel {{\n%id = gpu.thread_id x\n{calls}\
         memref.store %v{count}, %out[%id] : memref<?xf32>\ngpu.return\n}}\n"
    ))
}

fn parameters(count: usize) -> String {
    let declared = each(count, |text, i| write!(text, ", %p{i}: f32"));
    let sum = each(count, |text, i| {
        writeln!(text, "%v{} = arith.addf %v{i}, %p{i} : f32", i + 1)
    });
    with_parameters(
        &format!("%out: memref<?xf32>, %v0: f32{declared}"),
        &format!("{sum}memref.store %v{count}, %out[%id] : memref<?xf32>\n"),
    )
}

fn variables(count: usize) -> String {
    let definitions = each(count, |text, i| {
        writeln!(text, "memref.global @g{i} : memref<4xf32> = dense<{i}.0>")
    });
    let uses = each(count, |text, i| {
        writeln!(
            text,
            "%g{i} = memref.get_global @g{i} : memref<4xf32>\n%l{i} = memref.load %g{i}[%id] : memref<4xf32>\n\
             memref.store %l{i}, %out[%id] : memref<?xf32>"
        )
    });
    in_module(&format!(
        "{definitions}gpu.func @k(%out: memref<?xf32>) kernel {{\n%id = gpu.thread_id x\n{uses}gpu.return\n}}\n"
    ))
}

fn constant(count: usize) -> String {
    let values: Vec<String> = (0..count).map(|i| (i * 7919 % 251).to_string()).collect();
    in_module(&format!(
        "memref.global constant @g : memref<{count}xi8> = dense<[{}]>\n\
         gpu.func @k(%out: memref<?xi8>) kernel {{\n%id = gpu.thread_id x\n\
         %g = memref.get_global @g : memref<{count}xi8>\n%l = memref.load %g[%id] : memref<{count}xi8>\n\
         memref.store %l, %out[%id] : memref<?xi8>\ngpu.return\n}}\n",
        values.join(", ")
    ))
}

fn blocks(count: usize) -> String {
    let text = each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n%l{i} = memref.load %in[%b{i}] : memref<?xf32>\n\
             %q{i} = arith.cmpf ogt, %l{i}, %x : f32\ncf.cond_br %q{i}, ^t{i}, ^e{i}\n\
             ^t{i}:\nmemref.store %x, %out[%b{i}] : memref<?xf32>\ncf.br ^e{i}\n^e{i}:"
        )
    });
    kernel(&text)
}

fn switch(count: usize) -> String {
    let cases = each(count, |text, i| {
        writeln!(
            text,
            "case {i} {{\n%b{i} = arith.constant {} : index\nmemref.store %x, %out[%b{i}] : memref<?xf32>\nscf.yield\n}}",
            i * i % 1009
        )
    });
    kernel(&format!("scf.index_switch %n\n{cases}default {{\n}}\n"))
}

fn mathematical(count: usize) -> String {
    const NAMES: [&str; 5] = ["exp", "sin", "log", "tanh", "cbrt"];
    let text = each(count, |text, i| {
        let name = NAMES[i % NAMES.len()];
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n%l{i} = memref.load %in[%b{i}] : memref<?xf32>\n\
             %v{i} = math.{name} %l{i} : f32\nmemref.store %v{i}, %out[%b{i}] : memref<?xf32>"
        )
    });
    kernel(&text)
}

fn barriers(count: usize) -> String {
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\nmemref.store %x, %out[%b{i}] : memref<?xf32>\ngpu.barrier"
        )
    }))
}

fn reductions(count: usize) -> String {
    let text = each(count, |text, i| {
        writeln!(
            text,
            "%v{} = gpu.all_reduce add %v{i} uniform {{}} : (f32) -> f32",
            i + 1
        )
    });
    kernel(&format!(
        "%v0 = arith.mulf %x, %x : f32\n{text}memref.store %v{count}, %out[%id] : memref<?xf32>\n"
    ))
}

fn shuffles(count: usize) -> String {
    let text = each(count, |text, i| {
        writeln!(text, "%v{}, %q{i} = gpu.shuffle xor %v{i}, %one, %width : f32", i + 1)
    });
    kernel(&format!(
        "%one = arith.constant 1 : i32\n%width = arith.constant 32 : i32\n%v0 = arith.mulf %x, %x : f32\n{text}\
         memref.store %v{count}, %out[%id] : memref<?xf32>\n"
    ))
}

fn vectors(count: usize) -> String {
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {} : index\n%l{i} = vector.load %in[%b{i}] : memref<?xf32>, vector<4xf32>\n\
             %v{i} = arith.mulf %l{i}, %l{i} : vector<4xf32>\n\
             vector.store %v{i}, %out[%b{i}] : memref<?xf32>, vector<4xf32>",
            4 * i
        )
    }))
}

fn atomics(count: usize) -> String {
    kernel(&each(count, |text, i| {
        writeln!(
            text,
            "%b{i} = arith.constant {i} : index\n\
             %v{i} = memref.atomic_rmw addf %x, %out[%b{i}] : (f32, memref<?xf32>) -> f32"
        )
    }))
}

/// For NVIDIA and AMD alike: a device function that everything may call.
fn llvm_ir(count: usize) -> String {
    let text = each(count, |text, i| {
        writeln!(
            text,
            "%p{i} = getelementptr i32, ptr %a, i64 {i}\n%l{i} = load i32, ptr %p{i}\n\
             %v{} = xor i32 %v{i}, %l{i}",
            i + 1
        )
    });
    format!("define i32 @f(ptr %a, i32 %v0) {{\n{text}ret i32 %v{count}\n}}\n")
}

fn ptx(count: usize) -> String {
    let text = each(count, |text, i| {
        writeln!(text, "ld.global.b32 %r1, [%rd1+{}];\nxor.b32 %r2, %r2, %r1;", 4 * i)
    });
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b32 %r<4>;\n\
         .reg .b64 %rd<4>;\nld.param.u64 %rd1, [p];\nmov.b32 %r2, 1;\n{text}st.global.b32 [%rd1], %r2;\nret;\n}}\n"
    )
}
