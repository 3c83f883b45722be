//! The graph: matrices of f16, and the steps that make them. Each step becomes one kernel.

/// A value of a graph: its place in `Graph::shapes`.
pub type Value = usize;

/// What a step begins with.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `a * b`, or `a * b^T`.
    Product { transposed: bool },
    /// Of each row.
    Softmax,
    /// Of each row: its mean becomes 0, its variance 1.
    Normalize,
}

#[derive(Debug)]
pub struct Step {
    pub kind: Kind,
    /// What is done to each element then, as MLIR: from `%x0` to `%x1` and so on.
    pub each: Vec<String>,
    pub operands: Vec<Value>,
    pub output: Value,
}

#[derive(Debug, Default)]
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

    fn step(&mut self, kind: Kind, operands: &[Value], shape: [usize; 2]) -> Value {
        let output = self.shapes.len();
        self.shapes.push(shape.to_vec());
        self.steps.push(Step {
            kind,
            each: Vec::new(),
            operands: operands.to_vec(),
            output,
        });
        output
    }

    fn rows(&mut self, kind: Kind, x: Value) -> Value {
        self.step(kind, &[x], self.matrix(x))
    }

    /// `a * b`, or `a * b^T`.
    fn product(&mut self, a: Value, b: Value, transposed: bool) -> Value {
        let ([m, k], [first, second]) = (self.matrix(a), self.matrix(b));
        let (inner, n) = if transposed { (second, first) } else { (first, second) };
        assert_eq!(k, inner, "no product of values {a} and {b}");
        self.step(Kind::Product { transposed }, &[a, b], [m, n])
    }

    /// Does something to each element of the newest value, in its step: `operation` makes `%next` of `%x`.
    fn each(&mut self, operation: &str) {
        let each = &mut self.steps.last_mut().expect("a step was made").each;
        let [x, y, next] = [
            format!("%x{}", each.len()),
            format!("%y{}", each.len()),
            format!("%x{}", each.len() + 1),
        ];
        each.push(operation.replace("%x", &x).replace("%y", &y).replace("%next", &next));
    }

    fn gelu(&mut self) {
        self.each("%next = func.call @gelu(%x) : (!wide) -> !wide");
    }

    fn scale(&mut self, factor: f32) {
        self.each(&format!(
            "%y = arith.constant dense<{factor:?}> : !wide  %next = arith.mulf %x, %y : !wide"
        ));
    }

    /// Adds or multiplies (`arith.addf`, `arith.mulf`) the elements of a matrix, or of a row to each row.
    fn with(&mut self, operation: &str, other: Value) {
        let step = self.steps.last_mut().expect("a step was made");
        let (shape, of_other) = (&self.shapes[step.output], &self.shapes[other]);
        assert!(
            shape.ends_with(of_other),
            "value {other} is no row of value {}",
            step.output
        );
        let kind = if of_other.len() == 1 { "vector" } else { "matrix" };
        let operand = step.operands.len();
        step.operands.push(other);
        self.each(&format!(
            "%y = func.call @widen_{kind}(%t{operand}) : (!{kind}) -> !wide  %next = {operation} %x, %y : !wide"
        ));
    }
}

/// A network of two layers: `gelu(x * w1 + b1) * w2 + b2`.
pub fn mlp(rows: usize, input: usize, hidden: usize, output: usize) -> Graph {
    let mut g = Graph::default();
    let x = g.input("x", &[rows, input]);
    let (w1, b1) = (g.input("w1", &[input, hidden]), g.input("b1", &[hidden]));
    let (w2, b2) = (g.input("w2", &[hidden, output]), g.input("b2", &[output]));
    let active = g.product(x, w1, false);
    g.with("arith.addf", b1);
    g.gelu();
    g.product(active, w2, false);
    g.with("arith.addf", b2);
    g
}

/// An attention block with one head: layer norm, projections, `softmax(q * k^T / sqrt(d)) * v`, projection, residual.
pub fn attention(rows: usize, width: usize) -> Graph {
    let mut g = Graph::default();
    let x = g.input("x", &[rows, width]);
    let (scale, shift) = (g.input("scale", &[width]), g.input("shift", &[width]));
    let [wq, wk, wv, wo] = ["wq", "wk", "wv", "wo"].map(|name| g.input(name, &[width, width]));
    let normal = g.rows(Kind::Normalize, x);
    g.with("arith.mulf", scale);
    g.with("arith.addf", shift);
    let q = g.product(normal, wq, false);
    let k = g.product(normal, wk, false);
    let v = g.product(normal, wv, false);
    let scores = g.product(q, k, true);
    g.scale(1.0 / (width as f32).sqrt());
    let weights = g.rows(Kind::Softmax, scores);
    let mixed = g.product(weights, v, false);
    g.product(mixed, wo, false);
    g.with("arith.addf", x);
    g
}
