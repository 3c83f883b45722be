//! Runs a kernel on the host: each statement for all threads of a block, those that are active.

use super::kernel::{ATOMICS, Bound, Elem, For, Id, If, Kernel, Op, SLICE, Space, Stmt, Ty, Var, While};
use super::number::{Kind, Rounding, Shape, convert, named, no_wrap_masks};

/// What of the target and of the options shows in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    pub index_bits: u32,
    pub subgroup: u32,
}

/// Contents of storages and scalar arguments, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub storages: Vec<Vec<u64>>,
    pub scalars: Vec<u64>,
}

type Mask = Vec<bool>;

struct Run<'a> {
    kernel: &'a Kernel,
    machine: Machine,
    memory: &'a mut Memory,
    block: u32,
    /// Shared and private memory, by buffer: elements of all threads.
    local: Vec<Vec<u64>>,
    /// Values by variable: lanes of the first thread, of the second, and so on.
    values: Vec<Vec<u64>>,
}

/// Carries out the kernel on what is in memory.
pub fn run(kernel: &Kernel, machine: Machine, memory: &mut Memory) {
    for block in 0..kernel.blocks {
        let threads = kernel.threads as usize;
        let values = kernel.types.iter().map(|ty| vec![0; ty.lanes * threads]).collect();
        let size = |space| {
            if matches!(space, Space::Private | Space::Shared) {
                SLICE * threads
            } else {
                0
            }
        };
        let local = kernel
            .buffers
            .iter()
            .map(|buffer| vec![0; size(buffer.space)])
            .collect();
        let mut run = Run {
            kernel,
            machine,
            memory: &mut *memory,
            block,
            local,
            values,
        };
        let mut left = vec![true; threads];
        for stmt in &kernel.body {
            match stmt {
                Stmt::Exit { condition } => {
                    for (thread, on) in left.iter_mut().enumerate() {
                        *on &= run.scalar(*condition, thread) == 0;
                    }
                }
                _ => run.one(stmt, &left),
            }
        }
    }
}

impl Run<'_> {
    fn threads(&self) -> usize {
        self.kernel.threads as usize
    }

    fn kind(&self, elem: Elem) -> Kind {
        Kind {
            elem,
            bits: elem.bits(self.machine.index_bits),
        }
    }

    fn get(&self, var: Var, thread: usize) -> &[u64] {
        let lanes = self.kernel.types[var].lanes;
        &self.values[var][thread * lanes..][..lanes]
    }

    fn scalar(&self, var: Var, thread: usize) -> u64 {
        self.values[var][thread]
    }

    fn set(&mut self, var: Var, thread: usize, lanes: &[u64]) {
        let mask = self.kind(self.kernel.types[var].elem).mask();
        let first = thread * lanes.len();
        for (to, from) in self.values[var][first..].iter_mut().zip(lanes) {
            *to = from & mask;
        }
    }

    fn copy(&mut self, from: &[Var], to: &[Var], mask: &Mask) {
        // All are read before one is written.
        for thread in active(mask) {
            let read: Vec<Vec<u64>> = from.iter().map(|&var| self.get(var, thread).to_vec()).collect();
            for (&var, lanes) in to.iter().zip(&read) {
                self.set(var, thread, lanes);
            }
        }
    }

    fn all(&mut self, body: &[Stmt], mask: &Mask) {
        for stmt in body {
            self.one(stmt, mask);
        }
    }

    fn one(&mut self, stmt: &Stmt, mask: &Mask) {
        match stmt {
            Stmt::Def { var, op, args } => self.define(*var, op, args, mask),
            Stmt::Load {
                var,
                buffer,
                index,
                mask: below,
                only,
            } => {
                for thread in active(mask) {
                    let lanes = self.kernel.types[*var].lanes;
                    let first = self.scalar(*index, thread) as usize & below;
                    let read: Vec<u64> = (0..lanes)
                        .map(|lane| match only {
                            Some((some, other)) if self.get(*some, thread)[lane] == 0 => self.get(*other, thread)[lane],
                            _ => *self.cell(*buffer, thread, first + lane),
                        })
                        .collect();
                    self.set(*var, thread, &read);
                }
            }
            Stmt::Store {
                value,
                buffer,
                index,
                mask: below,
                only,
            } => {
                for thread in active(mask) {
                    let first = self.scalar(*index, thread) as usize & below;
                    for (lane, bits) in self.get(*value, thread).to_vec().into_iter().enumerate() {
                        if only.is_none_or(|some| self.get(some, thread)[lane] == 1) {
                            *self.cell(*buffer, thread, first + lane) = bits;
                        }
                    }
                }
            }
            Stmt::Atomic {
                value,
                buffer,
                index,
                kind,
                ..
            } => {
                for thread in active(mask) {
                    let at = 4 * kind + (self.scalar(*index, thread) as usize & 3);
                    debug_assert!(at < ATOMICS);
                    let (bits, storage) = (self.scalar(*value, thread), self.kernel.buffers[*buffer].storage);
                    let ty = self.kind(self.kernel.buffers[*buffer].elem);
                    let (name, bits) = match ty.elem.is_float() {
                        true => ("add", ty.encode((bits & 7) as f64, Rounding::Even)),
                        false => (super::kernel::ATOMIC_KINDS[*kind], bits),
                    };
                    let cell = &mut self.memory.storages[storage][at];
                    *cell = combine(name, ty, *cell, bits);
                }
            }
            // Not inside of regions.
            Stmt::Exit { .. } => {}
            Stmt::For(inner) => self.repeat(inner, mask),
            Stmt::While(inner) => self.repeat_while(inner, mask),
            Stmt::If(inner) => self.branch(inner, mask),
        }
    }

    fn cell(&mut self, buffer: usize, thread: usize, at: usize) -> &mut u64 {
        let described = &self.kernel.buffers[buffer];
        let global = self.block as usize * self.threads() + thread;
        match described.space {
            Space::Private => &mut self.local[buffer][thread * SLICE + at],
            Space::Shared => &mut self.local[buffer][at],
            Space::Own => &mut self.memory.storages[described.storage][self.kernel.place(buffer, global, at)],
            _ => &mut self.memory.storages[described.storage][self.kernel.place(buffer, 0, at)],
        }
    }

    fn bound(&self, bound: &Bound, kind: Kind, thread: usize) -> u64 {
        let more = bound.more.map_or(0, |(var, mask)| self.scalar(var, thread) & mask);
        (bound.base as u64).wrapping_add(more) & kind.mask()
    }

    fn repeat(&mut self, inner: &For, mask: &Mask) {
        let kind = self.kind(self.kernel.types[inner.iv].elem);
        let [lower, upper, step] = &inner.bounds;
        let of =
            |bound, run: &Self| -> Vec<u64> { (0..mask.len()).map(|thread| run.bound(bound, kind, thread)).collect() };
        let (mut at, ends, steps) = (of(lower, self), of(upper, self), of(step, self));
        self.copy(&inner.carried.inits, &inner.carried.arguments, mask);
        let mut mask_now = mask.clone();
        loop {
            for thread in 0..mask.len() {
                let below = match inner.unsigned {
                    true => at[thread] < ends[thread],
                    false => kind.signed(at[thread]) < kind.signed(ends[thread]),
                };
                mask_now[thread] &= below;
            }
            if !mask_now.contains(&true) {
                break;
            }
            for thread in active(&mask_now) {
                self.set(inner.iv, thread, &[at[thread]]);
                at[thread] = at[thread].wrapping_add(steps[thread]) & kind.mask();
            }
            self.all(&inner.body, &mask_now);
            self.copy(&inner.yields, &inner.carried.arguments, &mask_now);
        }
        self.copy(&inner.carried.arguments, &inner.carried.results, mask);
    }

    fn repeat_while(&mut self, inner: &While, mask: &Mask) {
        self.copy(&inner.carried.inits, &inner.carried.arguments, mask);
        let mut now = mask.clone();
        for iteration in 0u64.. {
            for thread in active(&now) {
                self.set(inner.counters[0], thread, &[iteration]);
            }
            self.all(&inner.before, &now);
            // What leaves here is what was forwarded.
            self.copy(&inner.forwards, &inner.after_arguments, &now);
            self.copy(&inner.after_arguments, &inner.carried.results, &now);
            for (thread, on) in now.iter_mut().enumerate() {
                *on &= iteration < u64::from(inner.limit) && self.scalar(inner.condition, thread) == 1;
            }
            if !now.contains(&true) {
                break;
            }
            for thread in active(&now) {
                self.set(inner.counters[1], thread, &[iteration]);
            }
            self.all(&inner.after, &now);
            self.copy(&inner.yields, &inner.carried.arguments, &now);
        }
    }

    fn branch(&mut self, inner: &If, mask: &Mask) {
        for (number, branch) in inner.branches.iter().enumerate() {
            let taken = (0..mask.len())
                .map(|thread| mask[thread] && (self.scalar(inner.condition, thread) == 1) == (number == 0))
                .collect();
            if active(&taken).next().is_some() {
                self.all(branch, &taken);
                self.copy(&inner.yields[number], &inner.results, &taken);
            }
        }
    }

    fn define(&mut self, var: Var, op: &Op, args: &[Var], mask: &Mask) {
        let ty = self.kernel.types[var];
        if let Some(all) = self.collective(op, args, ty) {
            for thread in active(mask) {
                self.set(var, thread, &[all[thread]]);
            }
            return;
        }
        for thread in active(mask) {
            let made = self.lanes(op, args, ty, thread);
            self.set(var, thread, &made);
        }
    }

    /// What one thread computes by itself.
    fn lanes(&self, op: &Op, args: &[Var], ty: Ty, thread: usize) -> Vec<u64> {
        let arg = |number: usize| self.get(args[number], thread);
        let kind = self.kind(ty.elem);
        match op {
            Op::Const(value) => vec![*value as u64; ty.lanes],
            Op::Id(id) => vec![match id {
                Id::Thread => thread as u64,
                Id::Block => u64::from(self.block),
                Id::Global => u64::from(self.block * self.kernel.threads) + thread as u64,
                Id::Lane => thread as u64 % u64::from(self.machine.subgroup),
            }],
            Op::Scalar(number) => vec![self.memory.scalars[*number]],
            Op::Table(operation, guard) => {
                let from = self.kind(self.kernel.types[args[0]].elem);
                (0..ty.lanes)
                    .map(|lane| {
                        let mut operands = [0; 3];
                        for (to, number) in operands.iter_mut().zip(0..args.len()) {
                            *to = arg(number)[lane];
                        }
                        if operation.shape == Shape::DivS {
                            operands[2] = u64::from(*guard);
                        }
                        (operation.eval)(from, &operands)
                    })
                    .collect()
            }
            Op::Cast(cast) => {
                let from = self.kind(self.kernel.types[args[0]].elem);
                arg(0).iter().map(|&bits| convert(*cast, from, kind, bits)).collect()
            }
            Op::Select => (0..ty.lanes)
                .map(|lane| {
                    let condition = arg(0);
                    let taken = condition[lane.min(condition.len() - 1)] == 1;
                    arg(if taken { 1 } else { 2 })[lane]
                })
                .collect(),
            Op::Splat => vec![arg(0)[0]; ty.lanes],
            Op::Extract(lane) => vec![arg(0)[*lane]],
            Op::ExtractAt => vec![arg(0)[arg(1)[0] as usize & (arg(0).len() - 1)]],
            Op::Insert(lane) => {
                let mut lanes = arg(1).to_vec();
                lanes[*lane] = arg(0)[0];
                lanes
            }
            Op::Permute(order) => {
                let both: Vec<u64> = arg(0).iter().chain(arg(1)).copied().collect();
                order.iter().map(|&lane| both[lane]).collect()
            }
            Op::Reduce(name) => {
                let start = args.get(1).map(|&var| self.scalar(var, thread));
                let reduced = start
                    .into_iter()
                    .chain(arg(0).iter().copied())
                    .reduce(|a, b| combine(name, kind, a, b));
                vec![reduced.unwrap_or_default()]
            }
            Op::NoWrap(name) => {
                let (x, y) = small_operands(name, kind, arg(0)[0], arg(1)[0]);
                vec![match *name {
                    "arith.addi" => x + y,
                    "arith.subi" => x - y,
                    "arith.muli" => x * y,
                    _ => x << y,
                }]
            }
            Op::Fast(_) => {
                let [x, y, z] = [0, 1, 2].map(|number| (arg(number)[0] & 7) as i64);
                vec![((x * y + z) * x - y * z + z) as u64]
            }
            _ => arg(0).to_vec(),
        }
    }

    /// What threads compute together; all of them are active.
    fn collective(&self, op: &Op, args: &[Var], ty: Ty) -> Option<Vec<u64>> {
        let kind = self.kind(ty.elem);
        let threads = self.threads();
        let subgroup = self.machine.subgroup as usize;
        let all = &self.values[*args.first()?];
        let from = |thread: usize, width: u32, lane: i64| -> u64 {
            let (own, first) = (thread % subgroup, thread - thread % subgroup);
            let width = i64::from(width);
            let there = (own as i64) < width && (0..width).contains(&lane);
            all[if there { first + lane as usize } else { thread }]
        };
        let reduce = |name: &str, members: &mut dyn Iterator<Item = usize>| {
            members
                .map(|thread| all[thread])
                .reduce(|a, b| combine(name, kind, a, b))
                .unwrap_or_default()
        };
        Some(match op {
            Op::Shuffle { mode, offset, width } => (0..threads)
                .map(|thread| {
                    let (lane, offset) = ((thread % subgroup) as i64, i64::from(*offset));
                    let source = match *mode {
                        "xor" => lane ^ offset,
                        "up" => lane - offset,
                        "down" => lane + offset,
                        _ => offset,
                    };
                    from(thread, *width, source)
                })
                .collect(),
            Op::ShuffleAt { width } => (0..threads)
                .map(|thread| from(thread, *width, (self.scalar(args[1], thread) & 31) as i64))
                .collect(),
            Op::AllReduce(name) => vec![reduce(name, &mut (0..threads)); threads],
            Op::SubgroupReduce { kind, size, stride } => (0..threads)
                .map(|thread| {
                    let (size, stride) = (*size as usize, *stride as usize);
                    let (size, stride) = if size == 0 { (subgroup, 1) } else { (size, stride) };
                    let (group, lane) = (thread / (size * stride), thread % stride);
                    reduce(
                        kind,
                        &mut (0..size).map(|member| group * size * stride + member * stride + lane),
                    )
                })
                .collect(),
            Op::Exchange(_) => (0..threads)
                .map(|thread| all[self.scalar(args[1], thread) as usize & (threads - 1)])
                .collect(),
            Op::Histogram(_) => {
                let index = |var: Var, thread: usize| self.scalar(var, thread) as usize & (threads - 1);
                let mut counts = vec![0u64; threads];
                for thread in 0..threads {
                    let cell = &mut counts[index(args[1], thread)];
                    *cell = cell.wrapping_add(all[thread]);
                }
                (0..threads).map(|thread| counts[index(args[2], thread)]).collect()
            }
            _ => return None,
        })
    }
}

/// The operands of an operation that does not wrap, signed or unsigned: `x` at least `y` for a difference.
fn small_operands(name: &str, kind: Kind, x: u64, y: u64) -> (u64, u64) {
    let masks = no_wrap_masks(name, kind.elem);
    match name {
        "arith.subi" => (x & masks[0] | (masks[1] + 1), y & masks[1]),
        _ => (x & masks[0], y & masks[1]),
    }
}

fn active(mask: &Mask) -> impl Iterator<Item = usize> + '_ {
    mask.iter().enumerate().filter(|(_, on)| **on).map(|(thread, _)| thread)
}

/// An update or a reduction by its name.
fn combine(name: &str, kind: Kind, a: u64, b: u64) -> u64 {
    let float = kind.elem.is_float();
    let operation = match name {
        "add" if float => "arith.addf",
        "add" | "addi" => "arith.addi",
        "mul" | "muli" => "arith.muli",
        "and" | "andi" => "arith.andi",
        "or" | "ori" => "arith.ori",
        "xor" | "xori" => "arith.xori",
        "maxs" | "maxsi" => "arith.maxsi",
        "mins" | "minsi" => "arith.minsi",
        "maxu" | "maxui" => "arith.maxui",
        "minu" | "minui" => "arith.minui",
        "maximumf" => "arith.maximumf",
        _ => "arith.minimumf",
    };
    let made = (named(operation).eval)(kind, &[a, b]);
    debug_assert!(float || kind.encode(0.0, Rounding::Even) == 0);
    made & kind.mask()
}
