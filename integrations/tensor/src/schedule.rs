//! Schedules in MLIR's transform dialect: how a step is divided among blocks and threads, fused, and brought to `gpu`.

/// How a product is divided. A block makes `block` elements of the result; a warp (on tensor cores) or a thread makes `unit` of
/// them, in registers, in steps of `depth` along the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tiles {
    /// Rows and columns of a block.
    pub block: (usize, usize),
    /// Rows and columns of a warp or a thread.
    pub unit: (usize, usize),
    /// Length of a step.
    pub depth: usize,
    /// Whether warps work on tensor cores; if not, threads multiply and add.
    pub tensor_cores: bool,
}

const fn warps(block: (usize, usize), unit: (usize, usize)) -> Tiles {
    Tiles {
        block,
        unit,
        depth: 16,
        tensor_cores: true,
    }
}

const fn threads(block: (usize, usize), unit: (usize, usize)) -> Tiles {
    Tiles {
        block,
        unit,
        depth: 4,
        tensor_cores: false,
    }
}

/// In the order of preference where nothing is measured.
const TENSOR_CORES: [Tiles; 6] = [
    warps((64, 128), (32, 64)),
    warps((128, 64), (64, 32)),
    warps((64, 64), (32, 32)),
    warps((64, 128), (32, 32)),
    warps((32, 64), (16, 32)),
    warps((32, 32), (16, 16)),
];
const THREADS: [Tiles; 4] = [
    threads((64, 64), (4, 8)),
    threads((64, 64), (8, 8)),
    threads((32, 32), (4, 4)),
    threads((16, 16), (2, 2)),
];

/// The tiles that a product of these sizes can be divided into.
pub fn candidates(m: usize, n: usize, k: usize, tensor_cores: bool) -> Vec<Tiles> {
    let all: &[Tiles] = if tensor_cores { &TENSOR_CORES } else { &THREADS };
    let fits = |tiles: &&Tiles| {
        m.is_multiple_of(tiles.block.0) && n.is_multiple_of(tiles.block.1) && k.is_multiple_of(tiles.depth)
    };
    all.iter().filter(fits).copied().collect()
}

/// The threads of a block that works on a row of `n` elements.
pub fn row_threads(n: usize) -> Option<usize> {
    [128, 64, 32].into_iter().find(|threads| n.is_multiple_of(*threads))
}

const OP: &str = "!transform.any_op";

/// Collects the operations of a schedule.
#[derive(Default)]
struct Script(String);

impl Script {
    fn line(&mut self, text: &str) {
        self.0 += "  ";
        self.0 += text;
        self.0.push('\n');
    }

    fn find(&mut self, name: &str, op: &str, tag: &str) {
        self.line(&format!(
            "%{name} = transform.structured.match ops{{[\"{op}\"]}} attributes{{tag = \"{tag}\"}} in %module : ({OP}) -> {OP}"
        ));
    }

    fn all(&mut self, name: &str, op: &str) {
        self.line(&format!(
            "%{name} = transform.structured.match ops{{[\"{op}\"]}} in %module : ({OP}) -> {OP}"
        ));
    }

    /// Divides an operation into a `forall`.
    fn divide(&mut self, tiled: &str, forall: &str, op: &str, how: &str, mapping: &str) {
        self.line(&format!(
            "%{tiled}, %{forall} = transform.structured.tile_using_forall %{op} {how} (mapping = [{mapping}]) : ({OP}) -> ({OP}, {OP})"
        ));
    }

    /// Moves the making of an operand into a `forall`.
    fn fuse(&mut self, fused: &str, after: &str, op: &str, forall: &str) {
        self.line(&format!(
            "%{fused}, %{after} = transform.structured.fuse_into_containing_op %{op} into %{forall} : ({OP}, {OP}) -> ({OP}, {OP})"
        ));
    }

    fn patterns(&mut self, on: &str, patterns: &[&str]) {
        self.line(&format!("transform.apply_patterns to %{on} {{"));
        for pattern in patterns {
            self.line(&format!("  transform.apply_patterns.{pattern}"));
        }
        self.line(&format!("}} : {OP}"));
    }

    /// To vectors on tensors, which stay in registers.
    fn vectorize(&mut self) {
        self.all("function", "func.func");
        self.patterns(
            "function",
            &[
                "canonicalization",
                "tensor.fold_tensor_empty",
                "linalg.tiling_canonicalization",
                "scf.for_loop_canonicalization",
            ],
        );
        self.line(&format!(
            "%vectors = transform.structured.vectorize_children_and_apply_patterns %function {{fold_type_extensions_into_contract}} : \
             ({OP}) -> {OP}"
        ));
    }

    /// Tensors to memory, that of the block for what threads share; `forall`s to a launch.
    fn launch(&mut self, threads: usize) {
        self.patterns("vectors", &["canonicalization"]);
        self.all("empty", "tensor.empty");
        self.line(&format!(
            "%typed = transform.cast %empty : {OP} to !transform.op<\"tensor.empty\">"
        ));
        self.line(
            "%allocated = transform.bufferization.empty_tensor_to_alloc_tensor %typed : (!transform.op<\"tensor.empty\">) -> \
             !transform.op<\"bufferization.alloc_tensor\">",
        );
        self.line(
            "%shared, %made = transform.structured.bufferize_to_allocation %allocated {memory_space = #gpu.address_space<workgroup>} : \
             !transform.op<\"bufferization.alloc_tensor\">",
        );
        self.line(&format!(
            "%buffers = transform.bufferization.one_shot_bufferize layout{{IdentityLayoutMap}} %vectors : ({OP}) -> {OP}"
        ));
        self.line(&format!(
            "%launch = transform.gpu.map_forall_to_blocks %buffers {{generate_gpu_launch}} : ({OP}) -> {OP}"
        ));
        self.line(&format!(
            "%mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [{threads}, 1, 1] : ({OP}) -> {OP}"
        ));
        self.all("lowered", "func.func");
        self.patterns("lowered", &["canonicalization", "memref.fold_memref_alias_ops"]);
        self.line(&format!("transform.apply_cse to %lowered : {OP}"));
    }

    fn finish(self) -> String {
        format!(
            "transform.named_sequence @__transform_main(%module: {OP}) {{\n{}  transform.yield\n}}\n",
            self.0
        )
    }
}

const ROWS_AND_COLUMNS: &str = "#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>";

/// A product and what follows it: blocks; in each, warps or threads that sum up in registers; then the elements, from the
/// block's memory.
pub fn product(tiles: &Tiles) -> String {
    let Tiles {
        block: (bm, bn),
        unit: (um, un),
        depth,
        tensor_cores,
    } = *tiles;
    let units = (bm / um) * (bn / un);
    let threads = if tensor_cores { 32 * units } else { units };
    let unit = if tensor_cores { "warp" } else { "thread" };
    // A thread takes 8 or 4 neighbours of as many rows as it has to.
    let width = if threads * 8 / bn <= bm { 8 } else { 4 };
    let (across, down) = (bn / width, threads * width / bn);
    let each = format!("num_threads [{down}, {across}]");

    let mut script = Script::default();
    script.find("last", "linalg.generic", "last");
    script.find("product", "linalg.generic", "product");
    script.find("fill", "linalg.fill", "fill");
    let how = format!("tile_sizes [{bm}, {bn}]");
    script.divide("last1", "blocks", "last", &how, "#gpu.block<y>, #gpu.block<x>");
    script.fuse("product1", "blocks1", "product", "blocks");
    script.fuse("fill1", "blocks2", "fill", "blocks1");
    script.divide("fill2", "zeroing", "fill1", &each, ROWS_AND_COLUMNS);
    let mapping = format!("#gpu.{unit}<linear_dim_1>, #gpu.{unit}<linear_dim_0>");
    let how = format!("num_threads [{}, {}]", bm / um, bn / un);
    script.divide("product2", "units", "product1", &how, &mapping);
    script.line(&format!(
        "%product3, %sum = transform.structured.tile_using_for %product2 tile_sizes [0, 0, {depth}] : ({OP}) -> ({OP}, {OP})"
    ));
    if tensor_cores {
        // What the matrix units take at once; the loops between are unrolled, so that every part of the sum is a register.
        script.line(&format!(
            "%product4, %down, %across = transform.structured.tile_using_for %product3 tile_sizes [16, 16] : ({OP}) -> ({OP}, {OP}, {OP})"
        ));
        for (name, size) in [("across", un), ("down", um)] {
            if size > 16 {
                script.line(&format!(
                    "transform.loop.unroll %{name} {{factor = {}}} : {OP}",
                    size / 16
                ));
            }
        }
    }
    script.divide("last2", "elements", "last1", &each, ROWS_AND_COLUMNS);
    script.line(&format!(
        "%last3, %row = transform.structured.tile_using_for %last2 tile_sizes [1] : ({OP}) -> ({OP}, {OP})"
    ));
    script.vectorize();
    script.line(&format!("transform.apply_cse to %vectors : {OP}"));
    script.all("loops", "scf.for");
    script.line(&format!("transform.loop.hoist_loop_invariant_subsets %loops : {OP}"));
    script.launch(threads);
    if tensor_cores {
        script.line(&format!(
            "%matrices = transform.apply_registered_pass \"convert-vector-to-gpu\" to %lowered : ({OP}) -> {OP}"
        ));
    } else {
        let patterns = [
            "vector.lower_contraction lowering_strategy = \"outerproduct\"",
            "vector.lower_outerproduct",
            "canonicalization",
        ];
        script.patterns("lowered", &patterns);
    }
    script.finish()
}

/// A step on rows: a block for each row, a thread for each column of what [`crate::linalg::rows`] makes of it.
pub fn rows(threads: usize) -> String {
    let mut script = Script::default();
    let reductions = ["f2", "p1", "f1", "f0", "p0"];
    script.find("last", "linalg.generic", "last");
    for name in reductions {
        script.find(name, "linalg.generic", name);
    }
    script.divide("row", "blocks0", "last", "tile_sizes [1]", "#gpu.block<x>");
    for (index, name) in reductions.iter().enumerate() {
        script.fuse(
            &format!("{name}a"),
            &format!("blocks{}", index + 1),
            name,
            &format!("blocks{index}"),
        );
    }
    script.all("fills", "linalg.fill");
    script.fuse("fills1", "blocks", "fills", "blocks5");
    // Fusion leaves the operations as they were, and makes one for each use.
    script.all("whole", "func.func");
    script.line(&format!("transform.apply_dce to %whole : {OP}"));
    script.line(&format!("transform.apply_cse to %whole : {OP}"));

    let each = format!("num_threads [0, {threads}]");
    let thread = "#gpu.thread<linear_dim_0>";
    for (name, users) in [("last", ["f1", "f2"].as_slice()), ("p1", &["f0"]), ("p0", &[])] {
        script.find(&format!("{name}t"), "linalg.generic", name);
        script.divide(
            &format!("{name}u"),
            &format!("{name}_0"),
            &format!("{name}t"),
            &each,
            thread,
        );
        for (index, user) in users.iter().enumerate() {
            script.find(&format!("{user}t"), "linalg.generic", user);
            script.fuse(
                &format!("{user}u"),
                &format!("{name}_{}", index + 1),
                &format!("{user}t"),
                &format!("{name}_{index}"),
            );
        }
    }
    script.line(&format!("transform.apply_dce to %whole : {OP}"));
    for (fill, forall, after) in [
        ("if1", "last_2", "last_3"),
        ("if2", "last_3", "last_4"),
        ("if0", "p1_1", "p1_2"),
        ("i1", "p1_2", "p1_3"),
        ("i0", "p0_0", "p0_1"),
    ] {
        script.find(&format!("{fill}t"), "linalg.fill", fill);
        script.fuse(&format!("{fill}u"), after, &format!("{fill}t"), forall);
    }
    script.vectorize();
    script.launch(threads);
    script.patterns(
        "lowered",
        &["vector.lower_multi_reduction lowering_strategy = \"innerreduction\""],
    );
    script.finish()
}
