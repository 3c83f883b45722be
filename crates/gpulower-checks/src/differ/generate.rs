//! Kernels at random: without races and without undefined behaviour, whatever the seed.

use super::interpret::Memory;
use super::kernel::{
    ATOMIC_KINDS, Bound, Buffer, Carried, Cast, Elem, For, Form, Id, If, Kernel, Layout, Op, Space, Stmt, Ty, Var,
    While,
};
use super::number::{Kind, OPERATIONS, Operation, Rounding, Shape};

/// `splitmix64`.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut next = self.0;
        next = (next ^ (next >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        next = (next ^ (next >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        next ^ (next >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    /// From the first to the last, both included.
    fn within(&mut self, first: i64, last: i64) -> i64 {
        first + self.below((last - first + 1) as usize) as i64
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Bits of a value of this type, an awkward one more often than not.
    fn bits(&mut self, elem: Elem) -> u64 {
        let kind = Kind {
            elem,
            bits: elem.bits(32),
        };
        let made = if elem.is_float() {
            let special = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                1e-6,
                65504.0,
                3.4e38,
            ];
            match self.below(20) {
                0..3 => kind.encode(self.pick(&special), Rounding::Even),
                3..10 => kind.encode(self.within(-40, 40) as f64 / 2.0, Rounding::Even),
                10..15 => {
                    let fraction = self.next() as f64 / 2f64.powi(64) - 0.5;
                    kind.encode(fraction * 2f64.powi(self.within(-6, 8) as i32), Rounding::Even)
                }
                15 => self.next() & 1023,
                _ => self.next(),
            }
        } else {
            match self.below(10) {
                0..4 => self.within(-4, 12) as u64,
                4 => 1 << self.below(kind.bits as usize),
                5 => (1u64 << (kind.bits - 1)).wrapping_sub(self.below(3) as u64),
                _ => self.next(),
            }
        };
        made & kind.mask()
    }
}

struct Maker {
    random: Random,
    kernel: Kernel,
    scope: Vec<Var>,
    /// All threads of a block come here together.
    uniform: bool,
    /// How often a statement here runs at most.
    weight: u64,
    /// How deep expressions and regions are nested.
    nesting: usize,
    depth: usize,
    floats: bool,
}

/// Kernel `number` of a seed.
pub fn kernel(seed: u64, number: u64) -> Kernel {
    let seed = Random::new(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93)).next();
    from_seed(seed)
}

pub fn from_seed(seed: u64) -> Kernel {
    let mut random = Random::new(seed);
    let floats = random.percent(70);
    let kernel = Kernel {
        seed,
        threads: random.pick(&[64, 64, 64, 128]),
        blocks: random.pick(&[1, 1, 2]),
        known_size: random.percent(30),
        exact: !floats,
        narrow: random.percent(60),
        fixed: random.percent(25),
        types: Vec::new(),
        scalars: Vec::new(),
        buffers: Vec::new(),
        body: Vec::new(),
    };
    let mut maker = Maker {
        random,
        kernel,
        scope: Vec::new(),
        uniform: true,
        weight: 1,
        nesting: 0,
        depth: 0,
        floats,
    };
    let mut body = Vec::new();
    maker.buffers();
    maker.start(&mut body);
    let statements = maker.random.within(2, 9);
    maker.statements(&mut body, statements as usize);
    maker.finish(&mut body);
    maker.kernel.body = body;
    maker.kernel
}

/// What memory holds at the start.
pub fn memory(kernel: &Kernel) -> Memory {
    let mut random = Random::new(kernel.seed ^ 0x5DEE_CE66);
    let count = kernel
        .buffers
        .iter()
        .map(|buffer| buffer.storage + 1)
        .max()
        .unwrap_or_default();
    let mut storages = vec![Vec::new(); count];
    for buffer in &kernel.buffers {
        if storages[buffer.storage].is_empty() && !matches!(buffer.space, Space::Shared | Space::Private) {
            // Sums of floats are exact from 0 on.
            let summed = buffer.space == Space::Atomic && buffer.elem.is_float();
            storages[buffer.storage] = (0..kernel.size(buffer))
                .map(|_| if summed { 0 } else { random.bits(buffer.elem) })
                .collect();
        }
    }
    let mut scalars: Vec<u64> = kernel.scalars.iter().map(|&elem| random.bits(elem)).collect();
    scalars[0] = 0;
    Memory { storages, scalars }
}

impl Maker {
    fn elem(&mut self) -> Elem {
        use Elem::{BF16, F16, F32, F64, I8, I16, I32, I64, Index};
        match self.floats && self.random.percent(45) {
            true => self.random.pick(&[F32, F32, F32, F64, F64, F16, F16, BF16]),
            false => self.random.pick(&[I32, I32, I32, I64, I64, I8, I8, I16, Index, Index]),
        }
    }

    fn stored(&mut self) -> Elem {
        loop {
            match self.elem() {
                Elem::Index => {}
                elem => return elem,
            }
        }
    }

    fn ty(&mut self) -> Ty {
        let elem = self.elem();
        let lanes = if self.kernel.narrow {
            1
        } else {
            self.random
                .pick(&[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 3, 8])
        };
        Ty { elem, lanes }
    }

    fn buffers(&mut self) {
        use Layout::{Cast, Collapsed, Cubes, Flat, Reinterpreted, Rows, Static, Strided, StridedView, View};
        let mut storage = 0;
        let mut push = |maker: &mut Self, elem, space, layout| {
            maker.kernel.buffers.push(Buffer {
                elem,
                space,
                layout,
                storage,
            });
            storage += 1;
        };
        // The first is where results go.
        let flat = if self.kernel.fixed { Static } else { Flat };
        push(self, Elem::I64, Space::Own, flat);
        let (inputs, own): (&[Layout], &[Layout]) = match self.kernel.fixed {
            true => (&[Static, Cast], &[Static, Static, Cast]),
            false => (
                &[Flat, Static, Strided, Cast],
                &[
                    Flat,
                    Flat,
                    Static,
                    Cast,
                    Rows,
                    Cubes,
                    View,
                    StridedView,
                    Strided,
                    Reinterpreted,
                    Collapsed,
                ],
            ),
        };
        for _ in 0..self.random.within(1, 3) {
            let (elem, layout) = (self.stored(), self.random.pick(inputs));
            push(self, elem, Space::Input, layout);
        }
        for _ in 0..self.random.within(1, 3) {
            let (elem, layout) = (self.stored(), self.random.pick(own));
            push(self, elem, Space::Own, layout);
        }
        for (elem, chance) in [
            (Elem::I32, 40),
            (Elem::I64, 40),
            (Elem::I8, 8),
            (Elem::I16, 8),
            (Elem::F32, 15),
            (Elem::F64, 15),
        ] {
            if self.random.percent(chance) && (self.floats || !elem.is_float()) {
                push(self, elem, Space::Atomic, flat);
            }
        }
        for space in [Space::Shared, Space::Private] {
            if self.random.percent(40) {
                let elem = self.stored();
                push(self, elem, space, Flat);
            }
        }
        // The same memory a second time.
        let strided = |layout| matches!(layout, Strided | StridedView);
        let owned = |buffer: &&Buffer| buffer.space == Space::Own && buffer.storage > 0 && !strided(buffer.layout);
        if self.random.percent(60)
            && let Some(same) = self.kernel.buffers.iter().find(owned).cloned()
        {
            let dense: Vec<Layout> = own.iter().copied().filter(|&layout| !strided(layout)).collect();
            let layout = self.random.pick(&dense);
            self.kernel.buffers.push(Buffer { layout, ..same });
        }
    }

    fn start(&mut self, out: &mut Vec<Stmt>) {
        self.kernel.scalars = vec![Elem::I64];
        for _ in 0..self.random.within(0, 3) {
            let elem = self.stored();
            self.kernel.scalars.push(elem);
        }
        for id in [Id::Global, Id::Thread, Id::Lane] {
            self.define(out, Op::Id(id), vec![], Ty::scalar(Elem::Index));
        }
        for number in 1..self.kernel.scalars.len() {
            let elem = self.kernel.scalars[number];
            self.define(out, Op::Scalar(number), vec![], Ty::scalar(elem));
        }
    }

    /// The last values of the kernel go to memory, as integers of 64 bits.
    fn finish(&mut self, out: &mut Vec<Stmt>) {
        let last: Vec<Var> = self.scope.iter().rev().copied().take(8).collect();
        for (slot, mut var) in last.into_iter().enumerate() {
            let mut ty = self.kernel.types[var];
            if ty.elem.is_float() {
                ty = ty.with(ty.elem.same_size());
                var = self.define(out, Op::Cast(Cast::Bitcast), vec![var], ty);
            }
            if ty.elem == Elem::Index {
                var = self.narrowed(out, var);
            }
            if ty.lanes > 1 && ty.elem == Elem::Index {
                ty = ty.with(Elem::I64);
                var = self.define(out, Op::Cast(Cast::IndexCastUI), vec![var], ty);
            }
            if ty.lanes > 1 {
                ty = Ty::scalar(ty.elem);
                let kind = if ty.elem == Elem::I1 { "xor" } else { "add" };
                var = self.define(out, Op::Reduce(kind), vec![var], ty);
            }
            let cast = match ty.elem {
                Elem::I64 => None,
                Elem::Index => Some(Cast::IndexCastUI),
                _ => Some(Cast::ExtUI),
            };
            if let Some(cast) = cast {
                var = self.define(out, Op::Cast(cast), vec![var], Ty::scalar(Elem::I64));
            }
            let index = self.define(out, Op::Const(slot as i64), vec![], Ty::scalar(Elem::Index));
            out.push(Stmt::Store {
                value: var,
                buffer: 0,
                index,
                mask: 7,
                only: None,
            });
        }
    }

    fn define(&mut self, out: &mut Vec<Stmt>, op: Op, args: Vec<Var>, ty: Ty) -> Var {
        let var = self.kernel.var(ty);
        out.push(Stmt::Def { var, op, args });
        self.scope.push(var);
        var
    }

    // -- values

    fn constant(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Var {
        let value = match ty.elem {
            Elem::Index if self.random.percent(80) => self.random.within(-2, 20),
            Elem::Index if self.kernel.narrow => self.random.within(-40, 4000),
            Elem::Index => i64::from(self.random.next() as i32),
            elem => self.random.bits(elem) as i64,
        };
        self.define(out, Op::Const(value), vec![], ty)
    }

    /// A value that is there, or a new one.
    fn value(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Var {
        let there: Vec<Var> = self
            .scope
            .iter()
            .copied()
            .filter(|&var| self.kernel.types[var] == ty)
            .collect();
        if !there.is_empty() && self.random.percent(if self.nesting > 2 { 92 } else { 70 }) {
            // Late ones twice as often.
            let (one, other) = (self.random.below(there.len()), self.random.below(there.len()));
            return there[one.max(other)];
        }
        if self.nesting > 3 || self.random.percent(25) {
            return self.constant(out, ty);
        }
        self.produce(out, ty)
    }

    fn produce(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Var {
        self.nesting += 1;
        let made = match self.random.below(20) {
            0..9 => None,
            9..13 => self.cast(out, ty),
            13..16 => self.load(out, ty),
            16..18 if !self.kernel.narrow => self.of_vectors(out, ty),
            18 if ty == Ty::scalar(Elem::I32) => self.fast(out),
            17 if ty.lanes == 1 && !ty.elem.is_float() && ty.elem != Elem::I1 => {
                let args = vec![self.value(out, ty), self.value(out, ty)];
                let name = self
                    .random
                    .pick(&["arith.addi", "arith.subi", "arith.muli", "arith.shli"]);
                let made = self.define(out, Op::NoWrap(name), args, ty);
                Some(self.replaced(out, made))
            }
            _ => self.select(out, ty),
        };
        let made = made.unwrap_or_else(|| self.operation(out, ty));
        self.nesting -= 1;
        made
    }

    fn select(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Option<Var> {
        let lanes = if self.random.percent(50) { 1 } else { ty.lanes };
        let args = vec![
            self.value(out, Ty { elem: Elem::I1, lanes }),
            self.value(out, ty),
            self.value(out, ty),
        ];
        Some(self.define(out, Op::Select, args, ty))
    }

    fn fast(&mut self, out: &mut Vec<Stmt>) -> Option<Var> {
        let ty = Ty::scalar(Elem::I32);
        let args = vec![self.value(out, ty), self.value(out, ty), self.value(out, ty)];
        let float = self.random.pick(&[Elem::F16, Elem::F32, Elem::F64]);
        Some(self.define(out, Op::Fast(float), args, ty))
    }

    /// An operation of the table whose result is of this type.
    fn operation(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Var {
        use Shape::{
            Bits, CmpF, CmpI, CopySign, DivS, DivU, Float1, Float2, Float3, High, Int, Int1, Number2, Shift, Test,
        };
        let floats = self.floats;
        let fits = |operation: &&'static Operation| match operation.shape {
            Shift | DivS | DivU => !ty.elem.is_float() && ty.elem != Elem::I1,
            Int | Bits => !ty.elem.is_float(),
            Int1 | High => !ty.elem.is_float() && !matches!(ty.elem, Elem::I1 | Elem::Index),
            CmpI => ty.elem == Elem::I1,
            CmpF | Test => floats && ty.elem == Elem::I1,
            Float1 | Float2 | Float3 | Number2 | CopySign => ty.elem.is_float(),
        };
        let choices: Vec<&'static Operation> = OPERATIONS.iter().filter(fits).collect();
        let mut operation = self.random.pick(&choices);
        if self.kernel.narrow && (ty.elem == Elem::Index || operation.shape == CmpI) {
            let signed: Vec<&'static Operation> = choices
                .into_iter()
                .filter(|one| !UNSIGNED.contains(&one.name))
                .collect();
            operation = self.random.pick(&signed);
        }
        let from = match operation.shape {
            CmpI if self.random.percent(8) => ty,
            CmpI => ty.with(self.random.pick(&Elem::INTEGERS)),
            CmpF | Test => ty.with(self.random.pick(&Elem::FLOATS)),
            _ => ty,
        };
        let operands = match operation.shape {
            Int1 | Float1 | Test => 1,
            Float3 => 3,
            _ => 2,
        };
        let args = (0..operands).map(|_| self.value(out, from)).collect();
        let guard = self.random.percent(30);
        let made = self.define(out, Op::Table(operation, guard), args, ty);
        if operation.name == "arith.muli" {
            self.replaced(out, made)
        } else {
            made
        }
    }

    /// The last value that was made, smaller where it would not fit an index of 32 bits: nobody sees what MLIR would compute with
    /// in 64.
    fn replaced(&mut self, out: &mut Vec<Stmt>, made: Var) -> Var {
        let narrow = self.narrowed(out, made);
        if narrow != made {
            self.scope.retain(|&seen| seen != made);
        }
        narrow
    }

    /// What would not fit an index of 32 bits made smaller.
    fn narrowed(&mut self, out: &mut Vec<Stmt>, var: Var) -> Var {
        let ty = self.kernel.types[var];
        if ty.elem != Elem::Index || !self.kernel.narrow {
            return var;
        }
        let most = self.define(out, Op::Const(0xFFF), vec![], ty);
        self.define(
            out,
            Op::Table(super::number::named("arith.andi"), false),
            vec![var, most],
            ty,
        )
    }

    fn cast(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Option<Var> {
        let mut from: Vec<Elem> = Elem::INTEGERS.into_iter().chain([Elem::I1]).collect();
        if self.floats {
            from.extend(Elem::FLOATS);
        }
        let from = self.random.pick(&from);
        let (wide, narrow) = (from.bits(64), ty.elem.bits(64));
        let rounding = self.random.pick(&[
            Rounding::Even,
            Rounding::Even,
            Rounding::Even,
            Rounding::Away,
            Rounding::Up,
            Rounding::Down,
            Rounding::Zero,
        ]);
        let choices: &[Cast] = match (from, ty.elem) {
            (from, to) if from == to => &[],
            (Elem::Index, to) | (to, Elem::Index) if to.is_float() || to == Elem::I1 => &[],
            (Elem::Index, _) | (_, Elem::Index) => &[Cast::IndexCast, Cast::IndexCastUI],
            (from, to) => match (from.is_float(), to.is_float()) {
                (false, false) if wide > narrow => &[Cast::TruncI],
                (false, false) => &[Cast::ExtSI, Cast::ExtUI],
                (false, true) if wide == narrow => &[Cast::SIToFP, Cast::UIToFP, Cast::Bitcast],
                (false, true) => &[Cast::SIToFP, Cast::UIToFP],
                (true, false) if wide == narrow => &[Cast::FPToSI, Cast::FPToUI, Cast::Bitcast],
                (true, false) => &[Cast::FPToSI, Cast::FPToUI],
                (true, true) if wide < narrow => &[Cast::ExtF],
                (true, true) if wide > narrow => &[Cast::TruncF(rounding)],
                _ => &[],
            },
        };
        if choices.is_empty() {
            return None;
        }
        let cast = self.random.pick(choices);
        let mut arg = self.value(out, ty.with(from));
        if cast == Cast::IndexCastUI {
            arg = self.narrowed(out, arg);
        }
        let made = self.define(out, Op::Cast(cast), vec![arg], ty);
        Some(self.replaced(out, made))
    }

    fn of_vectors(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Option<Var> {
        if ty.lanes == 1 {
            let vector = Ty {
                lanes: self.random.pick(&[2, 4]),
                ..ty
            };
            let from = self.value(out, vector);
            return Some(match self.random.below(3) {
                0 => {
                    let lane = self.random.below(vector.lanes);
                    self.define(out, Op::Extract(lane), vec![from], ty)
                }
                1 => {
                    let at = self.value(out, Ty::scalar(Elem::Index));
                    self.define(out, Op::ExtractAt, vec![from, at], ty)
                }
                _ => {
                    let kinds: &[&'static str] = match ty.elem {
                        Elem::I1 => &["and", "or", "xor"],
                        // The order of vector.reduction of indices is of no use.
                        Elem::Index => return None,
                        elem if elem.is_float() => &["add", "minimumf", "maximumf"],
                        _ => INTEGER_REDUCTIONS,
                    };
                    let kind = self.random.pick(kinds);
                    let mut args = vec![from];
                    if ty.elem.is_float() && kind == "add" {
                        args.push(self.value(out, ty));
                    }
                    self.define(out, Op::Reduce(kind), args, ty)
                }
            });
        }
        let scalar = Ty::scalar(ty.elem);
        Some(match self.random.below(3) {
            0 => {
                let from = self.value(out, scalar);
                self.define(out, Op::Splat, vec![from], ty)
            }
            1 => {
                let args = vec![self.value(out, scalar), self.value(out, ty)];
                let lane = self.random.below(ty.lanes);
                self.define(out, Op::Insert(lane), args, ty)
            }
            _ => {
                let args = vec![self.value(out, ty), self.value(out, ty)];
                let order = (0..ty.lanes).map(|_| self.random.below(2 * ty.lanes)).collect();
                self.define(out, Op::Permute(order), args, ty)
            }
        })
    }

    // -- memory

    /// A buffer of one of these spaces that values of a type come from or go to, an index, and its mask.
    fn place(&mut self, out: &mut Vec<Stmt>, ty: Ty, spaces: &[Space]) -> Option<(usize, Var, usize)> {
        use Layout::{Cubes, Strided, StridedView};
        let fits = |buffer: &Buffer| {
            let dense = match buffer.layout {
                Strided | StridedView => ty.lanes == 1,
                Cubes => ty.lanes <= 4,
                _ => true,
            };
            buffer.elem == ty.elem && spaces.contains(&buffer.space) && dense
        };
        let choices: Vec<usize> = (1..self.kernel.buffers.len())
            .filter(|&at| fits(&self.kernel.buffers[at]))
            .collect();
        if choices.is_empty() {
            return None;
        }
        let buffer = self.random.pick(&choices);
        let described = &self.kernel.buffers[buffer];
        let mask = match (described.space, described.layout, ty.lanes) {
            (Space::Input, ..) => 63,
            (_, _, 1) => 7,
            (_, Cubes, lanes) => 8 - lanes,
            (_, _, lanes) => self.random.pick(&[8 - lanes, 3.min(8 - lanes)]),
        };
        let index = self.value(out, Ty::scalar(Elem::Index));
        Some((buffer, index, mask))
    }

    fn load(&mut self, out: &mut Vec<Stmt>, ty: Ty) -> Option<Var> {
        let (buffer, index, mask) = self.place(out, ty, &[Space::Input, Space::Own, Space::Private])?;
        let only = (ty.lanes > 1 && self.random.percent(25))
            .then(|| (self.value(out, ty.with(Elem::I1)), self.value(out, ty)));
        let var = self.kernel.var(ty);
        out.push(Stmt::Load {
            var,
            buffer,
            index,
            mask,
            only,
        });
        self.scope.push(var);
        Some(var)
    }

    fn store(&mut self, out: &mut Vec<Stmt>) {
        let buffer = self.random.below(self.kernel.buffers.len());
        let lanes = if self.kernel.narrow {
            1
        } else {
            self.random.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 3, 8])
        };
        let ty = Ty {
            elem: self.kernel.buffers[buffer].elem,
            lanes,
        };
        if let Some((buffer, index, mask)) = self.place(out, ty, &[Space::Own, Space::Private]) {
            let value = self.value(out, ty);
            let only = (ty.lanes > 1 && self.random.percent(25)).then(|| self.value(out, ty.with(Elem::I1)));
            out.push(Stmt::Store {
                value,
                buffer,
                index,
                mask,
                only,
            });
        }
    }

    fn local(&mut self, wanted: Space) -> Option<usize> {
        let all: Vec<usize> = (0..self.kernel.buffers.len())
            .filter(|&at| self.kernel.buffers[at].space == wanted)
            .collect();
        (!all.is_empty()).then(|| self.random.pick(&all))
    }

    fn atomic(&mut self, out: &mut Vec<Stmt>) {
        if let Some(buffer) = self.local(Space::Atomic) {
            let elem = self.kernel.buffers[buffer].elem;
            // What is added to a float is a small whole number.
            let value = self.value(out, Ty::scalar(if elem.is_float() { Elem::I32 } else { elem }));
            let index = self.value(out, Ty::scalar(Elem::Index));
            let kind = self.random.below(ATOMIC_KINDS.len());
            let generic = self.random.percent(20);
            out.push(Stmt::Atomic {
                value,
                buffer,
                index,
                kind,
                generic,
            });
        }
    }

    fn collective(&mut self, out: &mut Vec<Stmt>) {
        if let Some(buffer) = self.local(Space::Shared).filter(|_| self.random.percent(50)) {
            let ty = Ty::scalar(self.kernel.buffers[buffer].elem);
            let mut args = vec![self.value(out, ty), self.value(out, Ty::scalar(Elem::Index))];
            let op = match matches!(ty.elem, Elem::I32 | Elem::I64) && self.random.percent(40) {
                true => {
                    args.push(self.value(out, Ty::scalar(Elem::Index)));
                    Op::Histogram(buffer)
                }
                false => Op::Exchange(buffer),
            };
            self.define(out, op, args, ty);
            return;
        }
        let ty = Ty::scalar(self.stored());
        let value = self.value(out, ty);
        let kinds: &[&'static str] = if ty.elem.is_float() {
            &["minimumf", "maximumf"]
        } else {
            INTEGER_REDUCTIONS
        };
        let kind = self.random.pick(kinds);
        let width = self.random.pick(&[32, 32, 32, 16, 8]);
        let (op, args) = match self.random.below(6) {
            0 => (Op::AllReduce(kind), vec![value]),
            1 => {
                let (size, stride) = self.random.pick(&[
                    (2, 1),
                    (4, 1),
                    (8, 1),
                    (16, 1),
                    (32, 1),
                    (0, 1),
                    (4, 2),
                    (8, 4),
                    (2, 16),
                ]);
                (Op::SubgroupReduce { kind, size, stride }, vec![value])
            }
            2 => (
                Op::ShuffleAt { width },
                vec![value, self.value(out, Ty::scalar(Elem::I32))],
            ),
            _ => {
                let mode = self.random.pick(&["xor", "up", "down", "idx"]);
                let offset = self.random.below(32) as u32;
                (Op::Shuffle { mode, offset, width }, vec![value])
            }
        };
        self.define(out, op, args, ty);
    }

    // -- statements

    fn statements(&mut self, out: &mut Vec<Stmt>, count: usize) {
        for _ in 0..count {
            match self.random.below(100) {
                0..50 => {
                    let ty = self.ty();
                    self.produce(out, ty);
                }
                50..64 => self.store(out),
                64..70 => self.atomic(out),
                70..76 if self.uniform => self.collective(out),
                76..88 if self.depth < 3 => self.repeat(out),
                88..92 if self.depth < 3 => self.repeat_while(out),
                92..98 if self.depth < 3 => self.branch(out),
                98..100 if self.depth == 0 => self.exit(out),
                _ => {
                    let ty = self.ty();
                    self.load(out, ty);
                }
            }
        }
    }

    /// Some threads end here.
    fn exit(&mut self, out: &mut Vec<Stmt>) {
        let condition = self.value(out, Ty::scalar(Elem::I1));
        self.uniform = false;
        out.push(Stmt::Exit { condition });
    }

    /// Statements of a region, where `more` is visible, and values of these types at its end.
    fn region(&mut self, more: &[Var], yields: &[Ty], uniform: bool, weight: u64) -> (Vec<Stmt>, Vec<Var>) {
        let before = (self.uniform, self.weight, self.scope.len(), self.nesting);
        self.uniform &= uniform;
        self.weight *= weight;
        self.depth += 1;
        self.nesting = 0;
        self.scope.extend(more);
        let mut body = Vec::new();
        let count = self.random.within(1, 3) as usize;
        self.statements(&mut body, count);
        let values = yields.iter().map(|&ty| self.value(&mut body, ty)).collect();
        self.depth -= 1;
        (self.uniform, self.weight, self.nesting) = (before.0, before.1, before.3);
        self.scope.truncate(before.2);
        (body, values)
    }

    fn some_types(&mut self) -> Vec<Ty> {
        let types: Vec<Ty> = (0..self.random.below(3)).map(|_| self.ty()).collect();
        // An index that doubles in a loop does not stay narrow.
        types
            .into_iter()
            .filter(|ty| ty.elem != Elem::Index || !self.kernel.narrow)
            .collect()
    }

    fn vars(&mut self, types: &[Ty]) -> Vec<Var> {
        types.iter().map(|&ty| self.kernel.var(ty)).collect()
    }

    fn carried(&mut self, out: &mut Vec<Stmt>, types: &[Ty]) -> Carried {
        Carried {
            inits: types.iter().map(|&ty| self.value(out, ty)).collect(),
            arguments: self.vars(types),
            results: self.vars(types),
        }
    }

    fn repeat(&mut self, out: &mut Vec<Stmt>) {
        let elem = self.random.pick(&[
            Elem::Index,
            Elem::Index,
            Elem::Index,
            Elem::I32,
            Elem::I32,
            Elem::I64,
            Elem::I16,
            Elem::I8,
        ]);
        let unsigned = self.random.percent(15);
        let most = (64 / self.weight).clamp(1, 12) as i64;
        let (numbers, masks) = self.range(elem, unsigned, most);
        let mut bounds = Vec::new();
        for (base, mask) in numbers.into_iter().zip(masks) {
            let more = (mask > 0).then(|| (self.value(out, Ty::scalar(elem)), mask));
            bounds.push(Bound { base, more });
        }
        let types = self.some_types();
        let carried = self.carried(out, &types);
        let iv = self.kernel.var(Ty::scalar(elem));
        let more: Vec<Var> = [iv].into_iter().chain(carried.arguments.iter().copied()).collect();
        let (body, yields) = self.region(&more, &types, masks == [0; 3], most as u64);
        self.scope.extend(&carried.results);
        let opaque = self.random.percent(40);
        let [Some(lower), Some(upper), Some(step)] = [0, 1, 2].map(|at| bounds.get(at).cloned()) else {
            return;
        };
        out.push(Stmt::For(For {
            iv,
            unsigned,
            opaque,
            bounds: [lower, upper, step],
            carried,
            body,
            yields,
        }));
    }

    /// Lower bound, upper bound and step of at most so many iterations, none of which overflows, and what may be added to each.
    fn range(&mut self, elem: Elem, unsigned: bool, most: i64) -> ([i64; 3], [u64; 3]) {
        let bits = elem.bits(32);
        let (least, largest) = match unsigned {
            true => (0, (1i128 << bits) - 1),
            false => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        };
        // Indices are the same numbers in 32 bits and in 64.
        let (least, largest) = if elem == Elem::Index {
            (least.max(-1 << 31), largest.min((1 << 31) - 1))
        } else {
            (least, largest)
        };
        let masks = match self.random.percent(50) {
            true => [0; 3],
            false => [0, 1, 2].map(|_| self.random.pick(&[0, 0, 1, 3])),
        };
        let [first, second, third] = masks.map(|mask| mask as i128);
        let trips = i128::from(self.random.within(0, most - 1));
        let huge = ((largest - least) / i128::from(most)).max(1);
        let step = match self.random.below(6) {
            0 => huge - (self.random.below(2) as i128) * (huge / 3),
            1 => i128::from(self.random.within(1, 40)).min(huge),
            _ => i128::from(self.random.within(1, 4)).min(huge),
        }
        .clamp(1, largest / 2);
        // The last number that is compared is below the upper bound by less than two steps: there has to be room above.
        let top = largest - second - step - third;
        let span = (trips * step - (self.random.below(step.min(1 << 20) as usize) as i128)).max(0);
        // What is added widens the range; with small steps that is more iterations.
        let span = (span - second).max(0).min(top - least - first);
        let lower = match self.random.below(8) {
            0 => top - span,
            1 => least,
            2 => -span / 2,
            _ => i128::from(self.random.within(-3, 5)),
        }
        .clamp(least, top - span - first);
        let upper = match self.random.below(12) {
            0 => lower - second - (self.random.below(100) as i128),
            1 => least,
            _ => lower + span,
        }
        .clamp(least, top);
        ([lower as i64, upper as i64, step as i64], masks)
    }

    fn repeat_while(&mut self, out: &mut Vec<Stmt>) {
        let limit = self.random.within(0, (24 / self.weight).clamp(1, 6) as i64) as u32;
        let types = self.some_types();
        let carried = self.carried(out, &types);
        let i32 = Ty::scalar(Elem::I32);
        let counters = [self.kernel.var(i32), self.kernel.var(i32)];
        let after_arguments = self.vars(&types);
        let visible = |counter: Var, arguments: &[Var]| -> Vec<Var> {
            [counter].into_iter().chain(arguments.iter().copied()).collect()
        };
        let mut ends = vec![Ty::scalar(Elem::I1)];
        ends.extend(&types);
        let weight = u64::from(limit) + 1;
        let (before, mut forwards) = self.region(&visible(counters[0], &carried.arguments), &ends, false, weight);
        let condition = forwards.remove(0);
        let (after, yields) = self.region(&visible(counters[1], &after_arguments), &types, false, weight);
        self.scope.extend(&carried.results);
        out.push(Stmt::While(While {
            limit,
            counters,
            carried,
            before,
            condition,
            forwards,
            after_arguments,
            after,
            yields,
        }));
    }

    fn branch(&mut self, out: &mut Vec<Stmt>) {
        let uniform = self.random.percent(30);
        let condition = match uniform {
            true => {
                let index = Ty::scalar(Elem::Index);
                let block = self.define(out, Op::Id(Id::Block), vec![], index);
                let other = self.define(out, Op::Const(0), vec![], index);
                let operation =
                    super::number::named(self.random.pick(&["arith.cmpi eq", "arith.cmpi ne", "arith.cmpi slt"]));
                self.define(
                    out,
                    Op::Table(operation, false),
                    vec![block, other],
                    Ty::scalar(Elem::I1),
                )
            }
            false => self.value(out, Ty::scalar(Elem::I1)),
        };
        let types = self.some_types();
        let results = self.vars(&types);
        let (yes, first) = self.region(&[], &types, uniform, 1);
        let (no, second) = self.region(&[], &types, uniform, 1);
        self.scope.extend(&results);
        let form = self.random.pick(&[
            Form::If,
            Form::If,
            Form::If,
            Form::If,
            Form::If,
            Form::Switch,
            Form::Blocks { switch: false },
            Form::Blocks { switch: true },
        ]);
        out.push(Stmt::If(If {
            form,
            condition,
            branches: [yes, no],
            yields: [first, second],
            results,
        }));
    }
}

/// What narrow indices are not compared and computed with: they may be negative, and -1 is another number in 32 bits.
const UNSIGNED: &[&str] = &[
    "arith.maxui",
    "arith.minui",
    "arith.shli",
    "arith.shrui",
    "arith.divui",
    "arith.remui",
    "arith.ceildivui",
    "arith.cmpi ult",
    "arith.cmpi ule",
    "arith.cmpi ugt",
    "arith.cmpi uge",
];

const INTEGER_REDUCTIONS: &[&str] = &["add", "mul", "and", "or", "xor", "maxsi", "minsi", "maxui", "minui"];
