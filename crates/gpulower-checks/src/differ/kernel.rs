//! A random kernel: typed values, one assignment each, structured control flow, buffers that a thread owns, reads or adds to.

use super::number::{Operation, Rounding};

/// Values that a thread has of one element of an own or private buffer.
pub const SLICE: usize = 8;
/// Elements of a buffer that every thread reads; a vector that begins at the last one still ends inside.
pub const INPUTS: usize = 64;
/// Elements of a buffer for atomics: four for each kind of update, so that updates of one element commute.
pub const ATOMICS: usize = 4 * ATOMIC_KINDS.len();
/// Atomic updates that commute.
pub const ATOMIC_KINDS: [&str; 8] = ["addi", "andi", "ori", "xori", "maxs", "maxu", "mins", "minu"];

/// Element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem {
    I1,
    I8,
    I16,
    I32,
    I64,
    Index,
    F16,
    BF16,
    F32,
    F64,
}

impl Elem {
    pub const INTEGERS: [Self; 5] = [Self::I8, Self::I16, Self::I32, Self::I64, Self::Index];
    pub const FLOATS: [Self; 4] = [Self::F16, Self::BF16, Self::F32, Self::F64];

    pub fn name(self) -> &'static str {
        match self {
            Self::I1 => "i1",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Index => "index",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Bits in a register; `index` is as wide as the setting says.
    pub fn bits(self, index: u32) -> u32 {
        match self {
            Self::I1 => 1,
            Self::I8 => 8,
            Self::I16 | Self::F16 | Self::BF16 => 16,
            Self::I32 | Self::F32 => 32,
            Self::I64 | Self::F64 => 64,
            Self::Index => index,
        }
    }

    pub fn is_float(self) -> bool {
        Self::FLOATS.contains(&self)
    }

    /// The integer type with as many bits.
    pub fn same_size(self) -> Self {
        match self {
            Self::F16 | Self::BF16 => Self::I16,
            Self::F32 => Self::I32,
            Self::F64 => Self::I64,
            other => other,
        }
    }
}

/// A scalar (one lane) or a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ty {
    pub elem: Elem,
    pub lanes: usize,
}

impl Ty {
    pub const fn scalar(elem: Elem) -> Self {
        Self { elem, lanes: 1 }
    }

    pub fn with(self, elem: Elem) -> Self {
        Self { elem, ..self }
    }

    pub fn text(self) -> String {
        match self.lanes {
            1 => self.elem.name().to_owned(),
            lanes => format!("vector<{lanes}x{}>", self.elem.name()),
        }
    }
}

/// A value, by its number in [`Kernel::types`].
pub type Var = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    Thread,
    Block,
    Global,
    Lane,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::enum_variant_names, reason = "they are MLIR's")]
pub enum Cast {
    TruncI,
    ExtSI,
    ExtUI,
    IndexCast,
    IndexCastUI,
    SIToFP,
    UIToFP,
    /// Of what is in range; 0 otherwise.
    FPToSI,
    /// Of the absolute value, where that is in range; 0 otherwise.
    FPToUI,
    ExtF,
    TruncF(Rounding),
    /// From a float: of 0 where it is not a number.
    Bitcast,
}

/// What a value is made by.
#[derive(Clone, Debug)]
pub enum Op {
    Const(i64),
    Id(Id),
    /// A scalar argument of the kernel.
    Scalar(usize),
    /// An operation of the table, and which of its guards.
    Table(&'static Operation, bool),
    Cast(Cast),
    Select,
    Splat,
    Extract(usize),
    /// The lane is a value.
    ExtractAt,
    Insert(usize),
    Permute(Vec<usize>),
    Reduce(&'static str),
    /// A polynomial of three small integers, in floats with all fast-math flags: exact in any order.
    Fast(Elem),
    Copy,
    /// A lane's value from another lane, where there is one; its own otherwise.
    Shuffle {
        mode: &'static str,
        offset: u32,
        width: u32,
    },
    /// The same from the lane that the second operand names.
    ShuffleAt {
        width: u32,
    },
    AllReduce(&'static str),
    SubgroupReduce {
        kind: &'static str,
        size: u32,
        stride: u32,
    },
    /// To shared memory, a barrier, and from the element that the second operand names.
    Exchange(usize),
    /// Zeros to shared memory, atomic additions to the element that the second operand names, and from the one of the third.
    Histogram(usize),
    /// Two small integers, which do not wrap: the operation has flags that say so.
    NoWrap(&'static str),
}

/// One bound of a loop: a constant, and what a value adds to it below a mask.
#[derive(Clone, Debug)]
pub struct Bound {
    pub base: i64,
    pub more: Option<(Var, u64)>,
}

#[derive(Clone, Debug)]
pub struct For {
    pub iv: Var,
    pub unsigned: bool,
    /// Bounds get 0 added, which the compiler does not know.
    pub opaque: bool,
    pub bounds: [Bound; 3],
    pub carried: Carried,
    pub body: Vec<Stmt>,
    pub yields: Vec<Var>,
}

/// Values that a region takes over and returns.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    pub inits: Vec<Var>,
    pub arguments: Vec<Var>,
    pub results: Vec<Var>,
}

#[derive(Clone, Debug)]
pub struct While {
    pub limit: u32,
    /// Numbers of iterations so far, in the two regions.
    pub counters: [Var; 2],
    pub carried: Carried,
    pub before: Vec<Stmt>,
    pub condition: Var,
    pub forwards: Vec<Var>,
    pub after_arguments: Vec<Var>,
    pub after: Vec<Stmt>,
    pub yields: Vec<Var>,
}

/// How a branch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    If,
    /// Blocks of `scf.execute_region`, after `cf.cond_br` or `cf.switch`.
    Blocks {
        switch: bool,
    },
    /// `scf.index_switch`.
    Switch,
}

#[derive(Clone, Debug)]
pub struct If {
    pub form: Form,
    pub condition: Var,
    pub branches: [Vec<Stmt>; 2],
    pub yields: [Vec<Var>; 2],
    pub results: Vec<Var>,
}

#[derive(Clone, Debug)]
pub enum Stmt {
    Def {
        var: Var,
        op: Op,
        args: Vec<Var>,
    },
    /// The element is the index below the mask, in the thread's slice.
    Load {
        var: Var,
        buffer: usize,
        index: Var,
        mask: usize,
        /// Lanes that are read, and what is in the place of the others.
        only: Option<(Var, Var)>,
    },
    Store {
        value: Var,
        buffer: usize,
        index: Var,
        mask: usize,
        /// Lanes that are written.
        only: Option<Var>,
    },
    Atomic {
        value: Var,
        buffer: usize,
        index: Var,
        /// Of [`ATOMIC_KINDS`]; floats are added to, by small whole numbers.
        kind: usize,
        /// As a region, which becomes a loop of compare and swap.
        generic: bool,
    },
    /// The threads for which it holds end here; not inside of regions.
    Exit {
        condition: Var,
    },
    For(For),
    While(While),
    If(If),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Read by all.
    Input,
    /// Each thread has a slice.
    Own,
    /// For atomics.
    Atomic,
    /// One element for each thread of a block.
    Shared,
    /// Each thread has one.
    Private,
}

/// How a kernel sees a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `memref<?xT>`
    Flat,
    /// `memref<NxT>`
    Static,
    /// The same, cast to a dynamic size.
    Cast,
    /// `memref<?x8xT>`
    Rows,
    /// `memref<?x2x4xT>`
    Cubes,
    /// A subview of the thread's slice.
    View,
    /// A subview of every second element.
    StridedView,
    /// The thread's slice by `memref.reinterpret_cast`.
    Reinterpreted,
    /// `memref<?x8xT>`, collapsed.
    Collapsed,
    /// `memref<?xT, strided<[?], offset: ?>>`, every second element from the second on.
    Strided,
}

#[derive(Clone, Debug)]
pub struct Buffer {
    pub elem: Elem,
    pub space: Space,
    pub layout: Layout,
    /// Buffers of one storage are the same memory.
    pub storage: usize,
}

#[derive(Clone, Debug)]
pub struct Kernel {
    pub seed: u64,
    pub threads: u32,
    pub blocks: u32,
    /// Whether the kernel says how many threads there are.
    pub known_size: bool,
    /// No value depends on how a float is rounded.
    pub exact: bool,
    /// Every index is the same number in 32 bits and in 64: MLIR computes what is constant in 64, whatever the option says.
    pub narrow: bool,
    /// All memrefs have static shapes.
    pub fixed: bool,
    pub types: Vec<Ty>,
    pub scalars: Vec<Elem>,
    pub buffers: Vec<Buffer>,
    pub body: Vec<Stmt>,
}

impl Kernel {
    pub fn var(&mut self, ty: Ty) -> Var {
        self.types.push(ty);
        self.types.len() - 1
    }

    /// Where an element of a buffer is in its storage: `slice` is the thread's, or 0.
    pub fn place(&self, buffer: usize, slice: usize, offset: usize) -> usize {
        match self.buffers[buffer].layout {
            Layout::Strided => 1 + 2 * (slice * SLICE + offset),
            Layout::StridedView => slice * 2 * SLICE + 2 * offset,
            _ => slice * SLICE + offset,
        }
    }

    /// Elements of a storage.
    pub fn size(&self, buffer: &Buffer) -> usize {
        let all = (self.threads * self.blocks) as usize;
        match (buffer.space, buffer.layout) {
            (Space::Input, Layout::Strided) => 2 * (INPUTS + SLICE) + 2,
            (Space::Input, _) => INPUTS + SLICE,
            (Space::Own, Layout::Strided) => 2 * SLICE * all + 2,
            (Space::Own, Layout::StridedView) => 2 * SLICE * all,
            (Space::Own, _) => SLICE * all,
            (Space::Atomic, _) => ATOMICS,
            (Space::Shared, _) => self.threads as usize,
            (Space::Private, _) => SLICE,
        }
    }
}

impl Stmt {
    /// The values that other statements see.
    pub fn results(&self) -> Vec<Var> {
        match self {
            Self::Def { var, .. } | Self::Load { var, .. } => vec![*var],
            Self::Store { .. } | Self::Atomic { .. } | Self::Exit { .. } => Vec::new(),
            Self::For(inner) => inner.carried.results.clone(),
            Self::While(inner) => inner.carried.results.clone(),
            Self::If(inner) => inner.results.clone(),
        }
    }

    /// The regions inside.
    pub fn regions(&mut self) -> Vec<&mut Vec<Self>> {
        match self {
            Self::For(inner) => vec![&mut inner.body],
            Self::While(inner) => vec![&mut inner.before, &mut inner.after],
            Self::If(inner) => inner.branches.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
}

/// Statements, those of regions included.
pub fn count(body: &[Stmt]) -> usize {
    body.iter()
        .map(|stmt| {
            1 + match stmt {
                Stmt::For(inner) => count(&inner.body),
                Stmt::While(inner) => count(&inner.before) + count(&inner.after),
                Stmt::If(inner) => inner.branches.iter().map(|branch| count(branch)).sum(),
                _ => 0,
            }
        })
        .sum()
}
