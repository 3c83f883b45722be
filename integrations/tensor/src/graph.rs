//! The graph: operations on matrices of f16, and its division into steps, each of which becomes one kernel.

use std::fmt;

/// A value of a graph.
pub type Value = usize;

/// What is done to each element of a product before it is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Elementwise {
    /// Adds a row to each row.
    Bias(Value),
    /// Adds another matrix.
    Add(Value),
    /// Multiplies with a number.
    Scale(f32),
    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    Gelu,
}

/// What makes a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Comes from outside.
    Input(&'static str),
    /// `a * b`, or `a * b^T`.
    Matmul { a: Value, b: Value, transposed: bool },
    /// One of these, of a product.
    Each(Value, Elementwise),
    /// Of each row.
    Softmax(Value),
    /// Of each row, with scale and shift.
    LayerNorm(Value, Value, Value),
}

/// A graph; the last value is its result.
#[derive(Debug, Default)]
pub struct Graph {
    values: Vec<(Vec<usize>, Op)>,
}

/// One kernel: what it computes, and of what.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What comes out.
    pub output: Value,
    /// Its first operation: a product, or one on rows.
    pub op: Op,
    /// What follows a product in the same kernel.
    pub each: Vec<Elementwise>,
}

/// Shapes that do not fit each other.
#[derive(Debug)]
pub struct ShapeError(String);

impl fmt::Display for ShapeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ShapeError {}

impl Graph {
    fn push(&mut self, shape: Vec<usize>, op: Op) -> Value {
        self.values.push((shape, op));
        self.values.len() - 1
    }

    /// The sizes of a value.
    pub fn shape(&self, value: Value) -> &[usize] {
        self.values.get(value).map_or(&[], |(shape, _)| shape)
    }

    /// How many values there are.
    pub const fn len(&self) -> usize {
        self.values.len()
    }

    /// The inputs with their names.
    pub fn inputs(&self) -> impl Iterator<Item = (Value, &'static str)> + '_ {
        let input = |(value, (_, op)): (Value, &(Vec<usize>, Op))| match op {
            Op::Input(name) => Some((value, *name)),
            _ => None,
        };
        self.values.iter().enumerate().filter_map(input)
    }

    /// A value from outside.
    pub fn input(&mut self, name: &'static str, shape: &[usize]) -> Value {
        self.push(shape.to_vec(), Op::Input(name))
    }

    fn product(&mut self, a: Value, b: Value, transposed: bool) -> Result<Value, ShapeError> {
        match (self.shape(a), self.shape(b), transposed) {
            (&[m, k], &[inner, n], false) | (&[m, k], &[n, inner], true) if k == inner => {
                Ok(self.push(vec![m, n], Op::Matmul { a, b, transposed }))
            }
            (left, right, _) => Err(ShapeError(format!("no product of {left:?} and {right:?}"))),
        }
    }

    /// `a * b`.
    pub fn matmul(&mut self, a: Value, b: Value) -> Result<Value, ShapeError> {
        self.product(a, b, false)
    }

    /// `a * b^T`.
    pub fn matmul_transposed(&mut self, a: Value, b: Value) -> Result<Value, ShapeError> {
        self.product(a, b, true)
    }

    /// Something done to each element of a product.
    pub fn each(&mut self, value: Value, what: Elementwise) -> Value {
        self.push(self.shape(value).to_vec(), Op::Each(value, what))
    }

    /// Softmax of each row.
    pub fn softmax(&mut self, value: Value) -> Value {
        self.push(self.shape(value).to_vec(), Op::Softmax(value))
    }

    /// Layer normalisation of each row.
    pub fn layer_norm(&mut self, value: Value, scale: Value, shift: Value) -> Value {
        self.push(self.shape(value).to_vec(), Op::LayerNorm(value, scale, shift))
    }

    /// The steps in order. What is done to each element of a value that nothing else uses goes into the step that makes it.
    pub fn steps(&self) -> Result<Vec<Step>, ShapeError> {
        let mut steps: Vec<Step> = Vec::new();
        for (output, (_, op)) in self.values.iter().enumerate() {
            match op {
                Op::Input(_) => {}
                Op::Each(of, what) => {
                    let uses = self.values.iter().filter(|(_, op)| uses(op).contains(of)).count();
                    let made = steps.iter_mut().find(|step| step.output == *of);
                    let Some(step) = made.filter(|step| uses == 1 && matches!(step.op, Op::Matmul { .. })) else {
                        return Err(ShapeError(format!("{what:?} follows no product of its own")));
                    };
                    step.each.push(*what);
                    step.output = output;
                }
                op => steps.push(Step {
                    output,
                    op: op.clone(),
                    each: Vec::new(),
                }),
            }
        }
        Ok(steps)
    }
}

fn uses(op: &Op) -> Vec<Value> {
    match op {
        Op::Input(_) => vec![],
        Op::Matmul { a, b, .. } => vec![*a, *b],
        Op::Each(of, Elementwise::Bias(other) | Elementwise::Add(other)) => vec![*of, *other],
        Op::Each(of, _) | Op::Softmax(of) => vec![*of],
        Op::LayerNorm(of, scale, shift) => vec![*of, *scale, *shift],
    }
}

/// A network of two layers: `gelu(x * w1 + b1) * w2 + b2`.
pub fn mlp(rows: usize, input: usize, hidden: usize, output: usize) -> Result<Graph, ShapeError> {
    let mut g = Graph::default();
    let x = g.input("x", &[rows, input]);
    let (w1, b1) = (g.input("w1", &[input, hidden]), g.input("b1", &[hidden]));
    let (w2, b2) = (g.input("w2", &[hidden, output]), g.input("b2", &[output]));
    let product = g.matmul(x, w1)?;
    let biased = g.each(product, Elementwise::Bias(b1));
    let active = g.each(biased, Elementwise::Gelu);
    let product = g.matmul(active, w2)?;
    g.each(product, Elementwise::Bias(b2));
    Ok(g)
}

/// An attention block with one head: layer norm, projections, `softmax(q * k^T / sqrt(d)) * v`, projection, residual.
pub fn attention(rows: usize, width: usize) -> Result<Graph, ShapeError> {
    let mut g = Graph::default();
    let x = g.input("x", &[rows, width]);
    let (scale, shift) = (g.input("scale", &[width]), g.input("shift", &[width]));
    let [wq, wk, wv, wo] = ["wq", "wk", "wv", "wo"].map(|name| g.input(name, &[width, width]));
    let normal = g.layer_norm(x, scale, shift);
    let (q, k, v) = (g.matmul(normal, wq)?, g.matmul(normal, wk)?, g.matmul(normal, wv)?);
    let scores = g.matmul_transposed(q, k)?;
    let scaled = g.each(scores, Elementwise::Scale(1.0 / (width as f32).sqrt()));
    let weights = g.softmax(scaled);
    let mixed = g.matmul(weights, v)?;
    let out = g.matmul(mixed, wo)?;
    g.each(out, Elementwise::Add(x));
    Ok(g)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elementwise_operations_go_into_the_product_before_them() {
        let steps = mlp(64, 64, 64, 64).and_then(|graph| graph.steps()).expect("it fits");
        assert_eq!(steps.iter().map(|step| step.each.len()).collect::<Vec<_>>(), [2, 1]);
        let steps = attention(64, 64).and_then(|graph| graph.steps()).expect("it fits");
        assert_eq!(steps.len(), 8);
    }

    #[test]
    fn shapes_have_to_fit() {
        let mut graph = Graph::default();
        let (a, b) = (graph.input("a", &[4, 8]), graph.input("b", &[4, 8]));
        assert_eq!(
            graph.matmul(a, b).expect_err("8 is not 4").to_string(),
            "no product of [4, 8] and [4, 8]"
        );
        assert!(graph.matmul_transposed(a, b).is_ok());
    }
}
