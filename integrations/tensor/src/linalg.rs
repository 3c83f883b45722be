//! A step as linalg on tensors: a function over memrefs, whose last operation writes to the last of them.

use std::fmt::Write;

use crate::graph::{Elementwise, Graph, Op, Step, Value};

/// A step in MLIR.
#[derive(Debug)]
pub struct Source {
    /// The function, named `step{number}`, and the maps before it.
    pub text: String,
    /// The values that are its parameters, the result last, each with its sizes as the function sees them.
    pub parameters: Vec<(Value, Vec<usize>)>,
}

fn sizes(shape: &[usize]) -> String {
    shape.iter().map(|size| format!("{size}x")).collect()
}

/// The function's head, and its parameters as tensors named `%v{index}`; the last is `%out`, to be written.
fn head(number: usize, parameters: &[(Value, Vec<usize>)]) -> String {
    let last = parameters.len() - 1;
    let list: Vec<String> = parameters
        .iter()
        .enumerate()
        .map(|(index, (_, shape))| format!("%m{index}: memref<{}f16>", sizes(shape)))
        .collect();
    let mut text = format!("func.func @step{number}({}) {{\n", list.join(", "));
    for (index, (_, shape)) in parameters.iter().enumerate() {
        let shape = sizes(shape);
        let (name, writable) = if index == last {
            ("out".to_owned(), " writable")
        } else {
            (format!("v{index}"), "")
        };
        let _ = writeln!(
            text,
            "  %{name} = bufferization.to_tensor %m{index} restrict{writable} : memref<{shape}f16> to tensor<{shape}f16>"
        );
    }
    text + "  %zero = arith.constant 0.0 : f32\n"
}

fn tail(result: &str, parameters: &[(Value, Vec<usize>)]) -> String {
    let shape = parameters.last().map(|(_, shape)| sizes(shape)).unwrap_or_default();
    let last = parameters.len() - 1;
    format!(
        "  bufferization.materialize_in_destination {result} in restrict writable %m{last} : (tensor<{shape}f16>, memref<{shape}f16>) \
         -> ()\n  return\n}}\n"
    )
}

/// A step that begins with a product.
pub fn product(graph: &Graph, number: usize, step: &Step, (a, b, transposed): (Value, Value, bool)) -> Source {
    let mut parameters: Vec<(Value, Vec<usize>)> = vec![(a, graph.shape(a).to_vec()), (b, graph.shape(b).to_vec())];
    for each in &step.each {
        if let Elementwise::Bias(value) | Elementwise::Add(value) = each {
            parameters.push((*value, graph.shape(*value).to_vec()));
        }
    }
    parameters.push((step.output, graph.shape(step.output).to_vec()));
    let out = sizes(graph.shape(step.output));
    let (left, right) = (sizes(graph.shape(a)), sizes(graph.shape(b)));
    let map = if transposed { "(j,k)" } else { "(k,j)" };
    let mut text = head(number, &parameters);
    let _ = write!(
        text,
        r#"  %empty = tensor.empty() : tensor<{out}f32>
  %filled = linalg.fill {{tag = "fill"}} ins(%zero : f32) outs(%empty : tensor<{out}f32>) -> tensor<{out}f32>
  %product = linalg.generic {{tag = "product", indexing_maps = [affine_map<(i,j,k)->(i,k)>, affine_map<(i,j,k)->{map}>,
      affine_map<(i,j,k)->(i,j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%v0, %v1 : tensor<{left}f16>, tensor<{right}f16>) outs(%filled : tensor<{out}f32>) {{
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %x32 = arith.extf %x : f16 to f32
    %y32 = arith.extf %y : f16 to f32
    %xy = arith.mulf %x32, %y32 : f32
    %next = arith.addf %sum, %xy : f32
    linalg.yield %next : f32
  }} -> tensor<{out}f32>
"#
    );
    text += &elementwise(graph, step, &out);
    text += &tail("%result", &parameters);
    Source { text, parameters }
}

/// What follows a product, as one operation on each element that rounds to f16.
fn elementwise(graph: &Graph, step: &Step, out: &str) -> String {
    let (mut maps, mut ins, mut types) = (String::new(), String::new(), String::new());
    let (mut arguments, mut body) = (String::new(), String::new());
    let (mut parameter, mut now) = (2, "%x0".to_owned());
    for (index, each) in step.each.iter().enumerate() {
        let next = format!("%x{}", index + 1);
        let _ = match each {
            Elementwise::Bias(value) | Elementwise::Add(value) => {
                let map = if matches!(each, Elementwise::Bias(_)) {
                    "(j)"
                } else {
                    "(i,j)"
                };
                let _ = write!(maps, "affine_map<(i,j)->{map}>, ");
                let _ = write!(ins, ", %v{parameter}");
                let _ = write!(types, ", tensor<{}f16>", sizes(graph.shape(*value)));
                let _ = write!(arguments, "%a{parameter}: f16, ");
                parameter += 1;
                let other = parameter - 1;
                write!(
                    body,
                    "    %e{other} = arith.extf %a{other} : f16 to f32\n    {next} = arith.addf {now}, %e{other} : f32\n"
                )
            }
            Elementwise::Scale(factor) => write!(
                body,
                "    %c{index} = arith.constant {factor:?} : f32\n    {next} = arith.mulf {now}, %c{index} : f32\n"
            ),
            Elementwise::Gelu => write!(
                body,
                "    %one = arith.constant 1.0 : f32\n    %half = arith.constant 0.5 : f32\n    %root = arith.constant {:?} : f32\n    \
                 %scaled = arith.mulf {now}, %root : f32\n    %erf = math.erf %scaled : f32\n    %more = arith.addf %erf, %one : f32\n    \
                 %halved = arith.mulf {now}, %half : f32\n    {next} = arith.mulf %halved, %more : f32\n",
                std::f32::consts::FRAC_1_SQRT_2
            ),
        };
        now = next;
    }
    format!(
        r#"  %result = linalg.generic {{tag = "last", indexing_maps = [affine_map<(i,j)->(i,j)>, {maps}affine_map<(i,j)->(i,j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%product{ins} : tensor<{out}f32>{types}) outs(%out : tensor<{out}f16>) {{
  ^bb0(%x0: f32, {arguments}%old: f16):
{body}    %rounded = arith.truncf {now} : f32 to f16
    linalg.yield %rounded : f16
  }} -> tensor<{out}f16>
"#
    )
}

/// What the threads of a block do with a row in three passes over it: two reductions and a result.
struct Rows {
    /// Combines two numbers of the first reduction.
    combine: &'static str,
    /// Where the first reduction begins.
    start: &'static str,
    /// What the second one adds up: `%y` of the element `%x` and the first result `%first`.
    second: String,
    /// `%z` of `%x`, `%first` and the second result `%sum`.
    result: String,
}

/// A step on rows. A row of `n` elements is seen as `n / threads` rows of as many elements as a block has threads: each thread
/// reduces a column, so that neighbours read neighbours, and then all columns' results.
pub fn rows(graph: &Graph, number: usize, step: &Step, threads: usize) -> Source {
    let shape = graph.shape(step.output);
    let (rows, n) = (shape.first().copied().unwrap_or(1), shape.last().copied().unwrap_or(1));
    let seen = vec![rows, n / threads, threads];
    let per = format!("    %n = arith.constant {:?} : f32\n", n as f32);
    let exponential = "    %d = arith.subf %x, %first : f32\n    %e = math.exp %d : f32\n";
    let mean = format!("{per}    %mean = arith.divf %first, %n : f32\n    %d = arith.subf %x, %mean : f32\n");
    let (of, others, how) = match step.op {
        Op::LayerNorm(of, scale, shift) => {
            let result = format!(
                "{mean}    %v = arith.divf %sum, %n : f32\n    %small = arith.constant 1.0e-5 : f32\n    %w = arith.addf %v, %small : f32\n    \
                 %r = math.rsqrt %w : f32\n    %normal = arith.mulf %d, %r : f32\n    %s32 = arith.extf %s : f16 to f32\n    \
                 %t32 = arith.extf %t : f16 to f32\n    %scaled = arith.mulf %normal, %s32 : f32\n    %z = arith.addf %scaled, %t32 : f32\n"
            );
            let second = format!("{mean}    %y = arith.mulf %d, %d : f32\n");
            (
                of,
                vec![scale, shift],
                Rows {
                    combine: "arith.addf",
                    start: "0.0",
                    second,
                    result,
                },
            )
        }
        Op::Softmax(of) => {
            let second = exponential.replace("%e =", "%y =");
            let result = format!("{exponential}    %z = arith.divf %e, %sum : f32\n");
            (
                of,
                vec![],
                Rows {
                    combine: "arith.maximumf",
                    start: "0xFF800000",
                    second,
                    result,
                },
            )
        }
        _ => (
            0,
            vec![],
            Rows {
                combine: "",
                start: "",
                second: String::new(),
                result: String::new(),
            },
        ),
    };
    let mut parameters = vec![(of, seen.clone())];
    parameters.extend(others.iter().map(|value| (*value, vec![n / threads, threads])));
    parameters.push((step.output, seen.clone()));
    let text = head(number, &parameters) + &passes(&seen, &how, others.len() == 2) + &tail("%result", &parameters);
    Source { text, parameters }
}

/// The three passes. Each result of a reduction over threads that is used in two of them is computed in both: once for each
/// thread, in registers.
fn passes(seen: &[usize], how: &Rows, scaled: bool) -> String {
    let &[rows, columns, threads] = seen else {
        return String::new();
    };
    let Rows {
        combine,
        start,
        second,
        result,
    } = how;
    let x = format!("tensor<{rows}x{columns}x{threads}xf16>");
    let (p0, p1, one) = (
        format!("tensor<{rows}x{threads}xf32>"),
        // The other way round, so that the two are not taken for the same memory.
        format!("tensor<{threads}x{rows}xf32>"),
        format!("tensor<{rows}xf32>"),
    );
    let partial = "iterator_types = [\"parallel\", \"parallel\", \"reduction\"]";
    let mut text = format!(
        r#"  %start = arith.constant {start} : f32
  %e0 = tensor.empty() : {p0}
  %e1 = tensor.empty() : {p1}
  %e2 = tensor.empty() : {one}
  %i0 = linalg.fill {{tag = "i0"}} ins(%start : f32) outs(%e0 : {p0}) -> {p0}
  %i1 = linalg.fill {{tag = "i1"}} ins(%zero : f32) outs(%e1 : {p1}) -> {p1}
  %p0 = linalg.generic {{tag = "p0", indexing_maps = [affine_map<(r,t,c)->(r,c,t)>, affine_map<(r,t,c)->(r,t)>], {partial}}}
      ins(%v0 : {x}) outs(%i0 : {p0}) {{
  ^bb0(%h: f16, %acc: f32):
    %x = arith.extf %h : f16 to f32
    %next = {combine} %acc, %x : f32
    linalg.yield %next : f32
  }} -> {p0}
"#
    );
    for (name, combine, start, of, of_type, map) in [
        ("f0", *combine, "%start", "%p0", &p0, "(r,t)"),
        ("f1", combine, "%start", "%p0", &p0, "(r,t)"),
        ("f2", "arith.addf", "%zero", "%p1", &p1, "(t,r)"),
    ] {
        if name == "f2" {
            let _ = write!(
                text,
                r#"  %p1 = linalg.generic {{tag = "p1", indexing_maps = [affine_map<(r,t,c)->(r,c,t)>, affine_map<(r,t,c)->(r)>,
      affine_map<(r,t,c)->(t,r)>], {partial}}} ins(%v0, %f0 : {x}, {one}) outs(%i1 : {p1}) {{
  ^bb0(%h: f16, %first: f32, %acc: f32):
    %x = arith.extf %h : f16 to f32
{second}    %next = arith.addf %acc, %y : f32
    linalg.yield %next : f32
  }} -> {p1}
"#
            );
        }
        let _ = write!(
            text,
            r#"  %i{name} = linalg.fill {{tag = "i{name}"}} ins({start} : f32) outs(%e2 : {one}) -> {one}
  %{name} = linalg.generic {{tag = "{name}", indexing_maps = [affine_map<(r,t)->{map}>, affine_map<(r,t)->(r)>],
      iterator_types = ["parallel", "reduction"]}} ins({of} : {of_type}) outs(%i{name} : {one}) {{
  ^bb0(%x: f32, %acc: f32):
    %next = {combine} %acc, %x : f32
    linalg.yield %next : f32
  }} -> {one}
"#
        );
    }
    let (maps, ins, types, arguments) = if scaled {
        let map = "affine_map<(r,t,c)->(c,t)>, ".repeat(2);
        (
            map,
            ", %v1, %v2",
            format!(", tensor<{columns}x{threads}xf16>").repeat(2),
            "%s: f16, %t: f16, ",
        )
    } else {
        (String::new(), "", String::new(), "")
    };
    let _ = write!(
        text,
        r#"  %result = linalg.generic {{tag = "last", indexing_maps = [affine_map<(r,t,c)->(r,c,t)>, affine_map<(r,t,c)->(r)>,
      affine_map<(r,t,c)->(r)>, {maps}affine_map<(r,t,c)->(r,c,t)>], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%v0, %f1, %f2{ins} : {x}, {one}, {one}{types}) outs(%out : {x}) {{
  ^bb0(%h: f16, %first: f32, %sum: f32, {arguments}%old: f16):
    %x = arith.extf %h : f16 to f32
{result}    %rounded = arith.truncf %z : f32 to f16
    linalg.yield %rounded : f16
  }} -> {x}
"#
    );
    text
}
