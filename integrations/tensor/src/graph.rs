//! The graph: matrices of f16, and the steps that make them. Each step becomes one kernel.

/// A value of a graph: its place in `Graph::shapes`.
pub type Value = usize;

/// What a step begins with.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `a * b`.
    Product,
    /// `a * b^T`.
    ProductTransposed,
    /// Of each row.
    Softmax,
    /// Of each row: its mean becomes 0, its variance 1.
    Normalize,
}

pub struct Step {
    pub kind: Kind,
    /// What is done to each element then, as MLIR: from `%x0` to `%x1` and so on.
    pub each: Vec<String>,
    pub operands: Vec<Value>,
    pub output: Value,
}

impl Step {
    /// The parameters of its function.
    pub fn values(&self) -> Vec<Value> {
        [self.operands.as_slice(), &[self.output]].concat()
    }
}

#[derive(Default)]
pub struct Graph {
    /// Of all values. Inputs come first; the last value is the result.
    pub shapes: Vec<Vec<usize>>,
    pub inputs: Vec<&'static str>,
    pub steps: Vec<Step>,
}

impl Graph {
    /// Rows and columns of a matrix.
    pub fn matrix(&self, value: Value) -> [usize; 2] {
        [self.shapes[value][0], self.shapes[value][1]]
    }

    fn input(&mut self, name: &'static str, shape: &[usize]) -> Value {
        self.inputs.push(name);
        self.shapes.push(shape.to_vec());
        self.shapes.len() - 1
    }

    /// A step of one operand, or of two, `a` and `b`.
    fn step(&mut self, kind: Kind, operands: &[Value]) -> Value {
        let ([rows, inner], [first, second]) = (self.matrix(operands[0]), self.matrix(operands[operands.len() - 1]));
        let (columns, fits) = match kind {
            Kind::Product => (second, first == inner),
            Kind::ProductTransposed => (first, second == inner),
            Kind::Softmax | Kind::Normalize => (inner, true),
        };
        assert!(fits, "no product of values {operands:?}");
        let output = self.shapes.len();
        self.shapes.push(vec![rows, columns]);
        self.steps.push(Step {
            kind,
            each: Vec::new(),
            operands: operands.to_vec(),
            output,
        });
        output
    }

    /// Does something to each element of the newest value, in its step: `operation` makes `%next` of `%x`.
    fn each(&mut self, operation: &str) {
        let each = &mut self.steps.last_mut().expect("a step was made").each;
        let (x, next) = (format!("%x{}", each.len()), format!("%x{}", each.len() + 1));
        each.push(operation.replace("%x", &x).replace("%next", &next));
    }

    fn gelu(&mut self) {
        self.each("%next = func.call @gelu(%x) : (!wide) -> !wide");
    }

    fn scale(&mut self, factor: f32) {
        let constant = format!("%next_y = arith.constant dense<{factor:?}> : !wide");
        self.each(&format!("{constant}  %next = arith.mulf %x, %next_y : !wide"));
    }

    /// Adds or multiplies (`arith.addf`, `arith.mulf`) the elements of a matrix, or of a row to each row.
    fn with(&mut self, operation: &str, other: Value) {
        let step = self.steps.last_mut().expect("a step was made");
        let (shape, of_other) = (&self.shapes[step.output], &self.shapes[other]);
        assert!(shape.ends_with(of_other), "value {other} is no row of it");
        let operand = format!("%t{}", step.operands.len());
        let y = match of_other.len() {
            1 => format!("func.call @all_rows({operand}) : (!vector) -> !wide"),
            _ => format!("arith.extf {operand} : !matrix to !wide"),
        };
        step.operands.push(other);
        self.each(&format!("%next_y = {y}  %next = {operation} %x, %next_y : !wide"));
    }
}

/// A network of two layers: `gelu(x * w1 + b1) * w2 + b2`.
pub fn mlp(rows: usize, input: usize, hidden: usize, output: usize) -> Graph {
    let mut g = Graph::default();
    let x = g.input("x", &[rows, input]);
    let (w1, b1) = (g.input("w1", &[input, hidden]), g.input("b1", &[hidden]));
    let (w2, b2) = (g.input("w2", &[hidden, output]), g.input("b2", &[output]));
    let active = g.step(Kind::Product, &[x, w1]);
    g.with("arith.addf", b1);
    g.gelu();
    g.step(Kind::Product, &[active, w2]);
    g.with("arith.addf", b2);
    g
}

/// An attention block with one head: layer norm, projections, `softmax(q * k^T / sqrt(d)) * v`, projection, residual.
pub fn attention(rows: usize, width: usize) -> Graph {
    let mut g = Graph::default();
    let x = g.input("x", &[rows, width]);
    let (scale, shift) = (g.input("scale", &[width]), g.input("shift", &[width]));
    let [wq, wk, wv, wo] = ["wq", "wk", "wv", "wo"].map(|name| g.input(name, &[width, width]));
    let normal = g.step(Kind::Normalize, &[x]);
    g.with("arith.mulf", scale);
    g.with("arith.addf", shift);
    let q = g.step(Kind::Product, &[normal, wq]);
    let k = g.step(Kind::Product, &[normal, wk]);
    let v = g.step(Kind::Product, &[normal, wv]);
    let scores = g.step(Kind::ProductTransposed, &[q, k]);
    g.scale(1.0 / (width as f32).sqrt());
    let weights = g.step(Kind::Softmax, &[scores]);
    let mixed = g.step(Kind::Product, &[weights, v]);
    g.step(Kind::Product, &[mixed, wo]);
    g.with("arith.addf", x);
    g
}
