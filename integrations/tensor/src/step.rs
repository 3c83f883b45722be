//! A step as MLIR: a function of linalg on tensors, and its schedule in the transform dialect. Both are in `mlir/`, as
//! text with `$name` for what is filled in.

use crate::graph::{Graph, Kind, Step};

const PRODUCT: &str = include_str!("mlir/product.mlir");
const ROWS: &str = include_str!("mlir/rows.mlir");
/// What both of them use.
const LIBRARY: &str = concat!(include_str!("mlir/functions.mlir"), include_str!("mlir/common.mlir"));

/// How a step is divided: a block makes `block` rows and columns of the result, and a unit in it `unit` of them.
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    block: [usize; 2],
    unit: [usize; 2],
    /// Whether a unit is a warp on tensor cores; if not, a thread.
    warps: bool,
}

/// Block and unit for products, in the order of preference where nothing is measured.
const OF_WARPS: &[[[usize; 2]; 2]] = &[
    [[64, 128], [32, 64]],
    [[128, 64], [64, 32]],
    [[64, 64], [32, 32]],
    [[64, 128], [32, 32]],
    [[32, 64], [16, 32]],
    [[32, 32], [16, 16]],
];
const OF_THREADS: &[[[usize; 2]; 2]] = &[
    [[64, 64], [4, 8]],
    [[64, 64], [8, 8]],
    [[32, 32], [4, 4]],
    [[16, 16], [2, 2]],
];
/// For rows, each of which is a block's, which goes over it in parts.
const OF_ROWS: &[[[usize; 2]; 2]] = &[[[1, 128], [1, 1]], [[1, 64], [1, 1]], [[1, 32], [1, 1]]];

impl Tiles {
    /// Those that divide a step evenly, one or more.
    pub fn of(graph: &Graph, step: &Step, tensor_cores: bool) -> Result<Vec<Self>, &'static str> {
        let ([m, n], [_, k]) = (graph.matrix(step.output), graph.matrix(step.operands[0]));
        let (all, warps) = match step.kind {
            Kind::Softmax | Kind::Normalize => (OF_ROWS, false),
            _ if tensor_cores => (OF_WARPS, true),
            _ => (OF_THREADS, false),
        };
        let tiles = all.iter().map(|&[block, unit]| Self { block, unit, warps });
        let fits = |tiles: &Self| {
            let [rows, columns] = tiles.block;
            m.is_multiple_of(rows) && n.is_multiple_of(columns) && k.is_multiple_of(tiles.depth())
        };
        let tiles: Vec<_> = tiles.filter(fits).collect();
        match tiles.is_empty() {
            true => Err("no tiles fit: sizes have to be multiples of 16, and of 32 for rows and on tensor cores"),
            false => Ok(tiles),
        }
    }

    /// The length of a step along the sum of a product.
    const fn depth(&self) -> usize {
        if self.warps { 16 } else { 4 }
    }
}

/// A step as MLIR: the function `name` of its operands and its output.
pub fn source(graph: &Graph, step: &Step, tiles: &Tiles, name: &str) -> String {
    let ([block_rows, block_columns], [down, across]) = (tiles.block, tiles.unit);
    let (units_down, units_across) = (block_rows / down, block_columns / across);
    let (unit, lanes) = if tiles.warps { ("warp", 32) } else { ("thread", 1) };
    let threads = units_down * units_across * lanes;
    let ([rows, columns], [_, sum]) = (graph.matrix(step.output), graph.matrix(step.operands[0]));
    let (template, of_kind) = match step.kind {
        Kind::Product => (PRODUCT, "rows_of_b=$sum columns_of_b=$columns map_of_b=(k,j)"),
        Kind::ProductTransposed => (PRODUCT, "rows_of_b=$columns columns_of_b=$sum map_of_b=(j,k)"),
        Kind::Softmax => (ROWS, "function=softmax combine=arith.maximumf start=0xFF800000"),
        Kind::Normalize => (ROWS, "function=normalize combine=arith.addf start=0.0"),
    };
    let (mut parameters, mut views) = (Vec::new(), String::new());
    for (index, value) in step.values().into_iter().enumerate() {
        let shape = &graph.shapes[value];
        let seen = match (step.kind, shape.as_slice()) {
            (Kind::Softmax | Kind::Normalize, [rows @ .., n]) => [rows, &[n / threads, threads]].concat(),
            (_, shape) => shape.to_vec(),
        };
        parameters.push(format!("%p{index}: {}", memref(shape)));
        views += &view(index, shape, &seen);
    }
    // For what is done to each element of a product, a thread takes up to 8 neighbours, of as many rows as it has to.
    let width = (block_rows * block_columns / threads).min(8);
    let words = format!(
        "{of_kind} name={name} last=%x{} out=%m{} unit={unit} rows={rows} columns={columns} sum={sum} parts={} \
         block_rows={block_rows} block_columns={block_columns} block_size={threads} down={units_down} \
         across={units_across} matrices_down={} matrices_across={} depth={} threads_down={} threads_across={}",
        step.each.len(),
        step.operands.len(),
        columns / threads,
        down.div_ceil(16),
        across.div_ceil(16),
        tiles.depth(),
        threads * width / block_columns,
        block_columns / width
    );
    let text = template.replace("$library", LIBRARY);
    let text = text.replace("$parameters", &parameters.join(", "));
    let text = text.replace("$views", &views);
    let text = text.replace("$each", &step.each.join("\n  "));
    let words = words.split(' ').filter_map(|word| word.split_once('='));
    words.fold(text, |text, (name, value)| text.replace(&format!("${name}"), value))
}

/// A parameter of some shape as the tensor `%t{index}` of another.
fn view(index: usize, shape: &[usize], seen: &[usize]) -> String {
    let strides: Vec<usize> = (1..=seen.len()).map(|inner| seen[inner..].iter().product()).collect();
    let (from, to) = (memref(shape), memref(seen));
    format!(
        "  %m{index} = memref.reinterpret_cast %p{index} to offset: [0], sizes: {seen:?}, strides: {strides:?} : {from} to {to}
  %t{index} = bufferization.to_tensor %m{index} restrict : {to} to tensor<{}\n",
        &to["memref<".len()..]
    )
}

pub fn memref(shape: &[usize]) -> String {
    let sizes: String = shape.iter().map(|size| format!("{size}x")).collect();
    format!("memref<{sizes}f16>")
}
