//! A kernel as MLIR.

use std::fmt::Write;

use super::kernel::{
    ATOMIC_KINDS, Bound, Cast, Elem, For, Form, Id, If, Kernel, Layout, Op, SLICE, Space, Stmt, Ty, Var, While,
};
use super::number::{Kind, Shape, limit, most_positive, most_shift, no_wrap_masks};

const INDEX: Ty = Ty::scalar(Elem::Index);

struct Emitter<'a> {
    kernel: &'a Kernel,
    out: String,
    temporaries: usize,
}

/// A `gpu.module` of kernels `k0`, `k1` and so on.
pub fn module(kernels: &[&Kernel]) -> String {
    let mut out = "gpu.module @m {\n".to_owned();
    for (number, kernel) in kernels.iter().enumerate() {
        let mut emitter = Emitter {
            kernel,
            out: String::new(),
            temporaries: 0,
        };
        emitter.function(number);
        out += &emitter.out;
    }
    out + "}\n"
}

/// The type of a memref argument.
fn memref(kernel: &Kernel, number: usize) -> String {
    let buffer = &kernel.buffers[number];
    let elem = buffer.elem.name();
    match (buffer.space, buffer.layout) {
        (Space::Shared, _) => format!("memref<{}x{elem}, #gpu.address_space<workgroup>>", kernel.threads),
        (Space::Private, _) => format!("memref<{SLICE}x{elem}, #gpu.address_space<private>>"),
        (_, Layout::Static | Layout::Cast) => format!("memref<{}x{elem}>", kernel.size(buffer)),
        (_, Layout::Rows | Layout::Collapsed) => format!("memref<?x{SLICE}x{elem}>"),
        (_, Layout::Cubes) => format!("memref<?x2x4x{elem}>"),
        (_, Layout::Strided) => format!("memref<?x{elem}, strided<[?], offset: ?>>"),
        _ => format!("memref<?x{elem}>"),
    }
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn v(var: &Var) -> String {
    format!("%v{var}")
}

fn constant(ty: Ty, value: i64) -> String {
    let kind = Kind {
        elem: ty.elem,
        bits: ty.elem.bits(64),
    };
    let one = match ty.elem {
        Elem::I1 => (if value & 1 == 1 { "true" } else { "false" }).to_owned(),
        elem if elem.is_float() => format!(
            "0x{:0width$X}",
            value as u64 & kind.mask(),
            width = kind.bits as usize / 4
        ),
        _ => kind.signed(value as u64).to_string(),
    };
    match (ty.lanes, ty.elem) {
        (1, Elem::I1) => format!("arith.constant {one}"),
        (1, _) => format!("arith.constant {one} : {}", ty.text()),
        _ => format!("arith.constant dense<{one}> : {}", ty.text()),
    }
}

impl Emitter<'_> {
    fn ty(&self, var: Var) -> Ty {
        self.kernel.types[var]
    }

    fn t(&self, var: Var) -> String {
        self.ty(var).text()
    }

    fn types(&self, vars: &[Var]) -> String {
        list(vars, |&var| self.t(var))
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "  {text}");
    }

    /// A line that defines a new name, which is returned.
    fn temporary(&mut self, text: &str) -> String {
        self.temporaries += 1;
        let name = format!("%t{}", self.temporaries);
        self.line(&format!("{name} = {text}"));
        name
    }

    fn constant(&mut self, ty: Ty, value: i64) -> String {
        self.temporary(&constant(ty, value))
    }

    fn function(&mut self, number: usize) {
        let kernel = self.kernel;
        let of = |wanted: &[Space]| -> Vec<(usize, String)> {
            let all = kernel.buffers.iter().enumerate();
            all.filter(|(_, buffer)| wanted.contains(&buffer.space))
                .map(|(number, _)| (number, memref(kernel, number)))
                .collect()
        };
        let named = |entries: &[(usize, String)]| list(entries, |(number, ty)| format!("%b{number}: {ty}"));
        let mut arguments = named(&of(&[Space::Input, Space::Own, Space::Atomic]));
        for (number, elem) in kernel.scalars.iter().enumerate() {
            let _ = write!(arguments, ", %s{number}: {}", elem.name());
        }
        let mut head = format!("gpu.func @k{number}({arguments})");
        for (word, space) in [("workgroup", Space::Shared), ("private", Space::Private)] {
            let entries = of(&[space]);
            if !entries.is_empty() {
                let _ = write!(head, " {word}({})", named(&entries).replace(": memref", " : memref"));
            }
        }
        head += " kernel";
        if kernel.known_size {
            let _ = write!(
                head,
                " attributes {{known_block_size = array<i32: {}, 1, 1>}}",
                kernel.threads
            );
        }
        let _ = writeln!(self.out, "{head} {{");
        self.prelude();
        self.all(&kernel.body);
        self.line("gpu.return");
        if kernel.body.iter().any(|stmt| matches!(stmt, Stmt::Exit { .. })) {
            self.line("^exit:");
            self.line("gpu.return");
        }
        self.line("}");
    }

    /// Thread numbers, views, and private memory filled with zeros, since nobody may read what was never written.
    fn prelude(&mut self) {
        for text in [
            "%tid = gpu.thread_id x",
            "%bid = gpu.block_id x",
            "%bdim = gpu.block_dim x",
        ] {
            self.line(text);
        }
        self.line("%first = arith.muli %bid, %bdim : index");
        self.line("%gid = arith.addi %first, %tid : index");
        for (number, buffer) in self.kernel.buffers.iter().enumerate() {
            let (elem, own) = (buffer.elem.name(), memref(self.kernel, number));
            match (buffer.space, buffer.layout) {
                (Space::Private, _) => {
                    let zero = self.constant(Ty::scalar(buffer.elem), 0);
                    for at in 0..SLICE {
                        let at = self.constant(INDEX, at as i64);
                        self.line(&format!("memref.store {zero}, %b{number}[{at}] : {own}"));
                    }
                }
                (_, Layout::Cast) => self.line(&format!(
                    "%c{number} = memref.cast %b{number} : {own} to memref<?x{elem}>"
                )),
                (_, Layout::View | Layout::StridedView) => {
                    let stride = if buffer.layout == Layout::View { 1 } else { 2 };
                    let size = self.constant(INDEX, (SLICE * stride) as i64);
                    let first = self.temporary(&format!("arith.muli %gid, {size} : index"));
                    self.line(&format!(
                        "%c{number} = memref.subview %b{number}[{first}][{SLICE}][{stride}] : {own} to \
                         memref<{SLICE}x{elem}, strided<[{stride}], offset: ?>>"
                    ));
                }
                (_, Layout::Reinterpreted) => {
                    let size = self.constant(INDEX, SLICE as i64);
                    let first = self.temporary(&format!("arith.muli %gid, {size} : index"));
                    self.line(&format!(
                        "%c{number} = memref.reinterpret_cast %b{number} to offset: [{first}], sizes: [{SLICE}], \
                         strides: [1] : {own} to memref<{SLICE}x{elem}, strided<[1], offset: ?>>"
                    ));
                }
                (_, Layout::Collapsed) => self.line(&format!(
                    "%c{number} = memref.collapse_shape %b{number} [[0, 1]] : {own} into memref<?x{elem}>"
                )),
                _ => {}
            }
        }
    }

    /// An element of a buffer, and the type of what it is in.
    fn place(&mut self, number: usize, index: Var, mask: usize) -> String {
        let buffer = &self.kernel.buffers[number];
        let (elem, own) = (buffer.elem.name(), memref(self.kernel, number));
        let below = self.constant(INDEX, mask as i64);
        let at = self.temporary(&format!("arith.andi {}, {below} : index", v(&index)));
        if buffer.space != Space::Own {
            return match buffer.layout {
                Layout::Cast => format!("%c{number}[{at}] : memref<?x{elem}>"),
                _ => format!("%b{number}[{at}] : {own}"),
            };
        }
        match buffer.layout {
            Layout::View | Layout::StridedView | Layout::Reinterpreted => {
                let stride = if buffer.layout == Layout::StridedView { 2 } else { 1 };
                format!("%c{number}[{at}] : memref<{SLICE}x{elem}, strided<[{stride}], offset: ?>>")
            }
            Layout::Rows => format!("%b{number}[%gid, {at}] : {own}"),
            Layout::Cubes => {
                let four = self.constant(INDEX, 4);
                let (row, rest) = (
                    self.temporary(&format!("arith.divui {at}, {four} : index")),
                    self.temporary(&format!("arith.remui {at}, {four} : index")),
                );
                format!("%b{number}[%gid, {row}, {rest}] : {own}")
            }
            layout => {
                let size = self.constant(INDEX, SLICE as i64);
                let first = self.temporary(&format!("arith.muli %gid, {size} : index"));
                let at = self.temporary(&format!("arith.addi {first}, {at} : index"));
                match layout {
                    Layout::Cast | Layout::Collapsed => format!("%c{number}[{at}] : memref<?x{elem}>"),
                    _ => format!("%b{number}[{at}] : {own}"),
                }
            }
        }
    }

    fn all(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.one(stmt);
        }
    }

    fn one(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Def { var, op, args } => {
                let made = self.define(*var, op, args);
                self.line(&format!("{} = {made}", v(var)));
            }
            Stmt::Load {
                var,
                buffer,
                index,
                mask,
                only,
            } => {
                let (ty, place) = (self.ty(*var), self.place(*buffer, *index, *mask));
                let text = match (ty.lanes, only) {
                    (1, _) => format!("memref.load {place}"),
                    (_, None) => format!("vector.load {place}, {}", ty.text()),
                    (_, Some((some, other))) => {
                        let (at, memref) = place.split_once(" : ").unwrap_or_default();
                        let (lanes, text) = (self.t(*some), ty.text());
                        format!(
                            "vector.maskedload {at}, {}, {} : {memref}, {lanes}, {text} into {text}",
                            v(some),
                            v(other)
                        )
                    }
                };
                self.line(&format!("{} = {text}", v(var)));
            }
            Stmt::Store {
                value,
                buffer,
                index,
                mask,
                only,
            } => {
                let (ty, place) = (self.ty(*value), self.place(*buffer, *index, *mask));
                let text = match (ty.lanes, only) {
                    (1, _) => format!("memref.store {}, {place}", v(value)),
                    (_, None) => format!("vector.store {}, {place}, {}", v(value), ty.text()),
                    (_, Some(some)) => {
                        let (at, memref) = place.split_once(" : ").unwrap_or_default();
                        let (lanes, text) = (self.t(*some), ty.text());
                        format!(
                            "vector.maskedstore {at}, {}, {} : {memref}, {lanes}, {text}",
                            v(some),
                            v(value)
                        )
                    }
                };
                self.line(&text);
            }
            Stmt::Atomic {
                value,
                buffer,
                index,
                kind,
                generic,
            } => self.atomic(*value, *buffer, *index, *kind, *generic),
            Stmt::Exit { condition } => {
                self.temporaries += 1;
                let next = format!("^next{}", self.temporaries);
                self.line(&format!("cf.cond_br {}, ^exit, {next}", v(condition)));
                self.line(&format!("{next}:"));
            }
            Stmt::For(inner) => self.repeat(inner),
            Stmt::While(inner) => self.repeat_while(inner),
            Stmt::If(inner) => match inner.form {
                Form::If => self.branch(inner),
                Form::Switch => self.switch(inner),
                Form::Blocks { switch } => self.blocks(inner, switch),
            },
        }
    }

    fn atomic(&mut self, value: Var, buffer: usize, index: Var, kind: usize, generic: bool) {
        let (own, elem) = (memref(self.kernel, buffer), self.kernel.buffers[buffer].elem);
        let (three, first) = (self.constant(INDEX, 3), self.constant(INDEX, 4 * kind as i64));
        let at = self.temporary(&format!("arith.andi {}, {three} : index", v(&index)));
        let at = self.temporary(&format!("arith.addi {at}, {first} : index"));
        let (name, mut value) = (ATOMIC_KINDS[kind], v(&value));
        let (name, operation, elem) = match elem.is_float() {
            true => {
                let seven = self.constant(Ty::scalar(Elem::I32), 7);
                let small = self.temporary(&format!("arith.andi {value}, {seven} : i32"));
                value = self.temporary(&format!("arith.sitofp {small} : i32 to {}", elem.name()));
                ("addf", "addf".to_owned(), elem.name())
            }
            // The names of atomic minima and maxima are those of `arith` without a letter.
            false if name.starts_with('m') => (name, format!("{name}i"), elem.name()),
            false => (name, name.to_owned(), elem.name()),
        };
        if !generic {
            self.temporary(&format!(
                "memref.atomic_rmw {name} {value}, %b{buffer}[{at}] : ({elem}, {own}) -> {elem}"
            ));
            return;
        }
        let old = self.temporary(&format!("memref.generic_atomic_rmw %b{buffer}[{at}] : {own} {{"));
        self.line(&format!("^bb0({old}_is: {elem}):"));
        let new = self.temporary(&format!("arith.{operation} {old}_is, {value} : {elem}"));
        self.line(&format!("memref.atomic_yield {new} : {elem}"));
        self.line("}");
    }

    fn results(results: &[Var]) -> String {
        match results {
            [] => String::new(),
            _ => format!("{} = ", list(results, v)),
        }
    }

    fn bound(&mut self, bound: &Bound, ty: Ty, opaque: bool) -> String {
        let mut made = self.constant(ty, bound.base);
        if opaque {
            let zero = self.zero(ty);
            made = self.temporary(&format!("arith.addi {made}, {zero} : {}", ty.text()));
        }
        if let Some((var, mask)) = bound.more {
            let mask = self.constant(ty, mask as i64);
            let more = self.temporary(&format!("arith.andi {}, {mask} : {}", v(&var), ty.text()));
            made = self.temporary(&format!("arith.addi {made}, {more} : {}", ty.text()));
        }
        made
    }

    /// 0, from the first argument, which is an i64.
    fn zero(&mut self, ty: Ty) -> String {
        match ty.elem {
            Elem::I64 => "%s0".to_owned(),
            Elem::Index => self.temporary("arith.index_cast %s0 : i64 to index"),
            elem => self.temporary(&format!("arith.trunci %s0 : i64 to {}", elem.name())),
        }
    }

    fn repeat(&mut self, inner: &For) {
        let ty = self.ty(inner.iv);
        let [lower, upper, step] = [0, 1, 2].map(|number| self.bound(&inner.bounds[number], ty, inner.opaque));
        let carried = &inner.carried;
        let pairs: Vec<(Var, Var)> = carried
            .arguments
            .iter()
            .copied()
            .zip(carried.inits.iter().copied())
            .collect();
        let mut head = format!(
            "{}scf.for{} {} = {lower} to {upper} step {step}",
            Self::results(&carried.results),
            if inner.unsigned { " unsigned" } else { "" },
            v(&inner.iv)
        );
        if !pairs.is_empty() {
            let entries = list(&pairs, |(argument, init)| format!("{} = {}", v(argument), v(init)));
            let _ = write!(head, " iter_args({entries}) -> ({})", self.types(&carried.results));
        }
        if ty != INDEX {
            let _ = write!(head, " : {}", ty.text());
        }
        self.line(&format!("{head} {{"));
        self.all(&inner.body);
        self.yields("scf.yield", &inner.yields);
        self.line("}");
    }

    fn yields(&mut self, name: &str, vars: &[Var]) {
        match vars {
            [] => self.line(name),
            _ => self.line(&format!("{name} {} : {}", list(vars, v), self.types(vars))),
        }
    }

    fn repeat_while(&mut self, inner: &While) {
        const I32: Ty = Ty::scalar(Elem::I32);
        let start = self.constant(I32, 0);
        let carried = &inner.carried;
        self.temporaries += 1;
        let unused = format!("%t{}", self.temporaries);
        let mut results = unused;
        let mut entries = format!("{} = {start}", v(&inner.counters[0]));
        for (argument, init) in carried.arguments.iter().zip(&carried.inits) {
            let _ = write!(entries, ", {} = {}", v(argument), v(init));
        }
        for result in &carried.results {
            let _ = write!(results, ", {}", v(result));
        }
        let more: String = carried
            .results
            .iter()
            .map(|&var| format!(", {}", self.t(var)))
            .collect();
        self.line(&format!(
            "{results} = scf.while ({entries}) : (i32{more}) -> (i32{more}) {{"
        ));
        self.all(&inner.before);
        let limit = self.constant(I32, i64::from(inner.limit));
        let below = self.temporary(&format!("arith.cmpi ult, {}, {limit} : i32", v(&inner.counters[0])));
        let go_on = self.temporary(&format!("arith.andi {below}, {} : i1", v(&inner.condition)));
        let forwards: String = inner.forwards.iter().map(|var| format!(", {}", v(var))).collect();
        self.line(&format!(
            "scf.condition({go_on}) {}{forwards} : i32{more}",
            v(&inner.counters[0])
        ));
        self.line("} do {");
        let mut arguments = format!("{}: i32", v(&inner.counters[1]));
        for argument in &inner.after_arguments {
            let _ = write!(arguments, ", {}: {}", v(argument), self.t(*argument));
        }
        self.line(&format!("^bb0({arguments}):"));
        self.all(&inner.after);
        let one = self.constant(I32, 1);
        let next = self.temporary(&format!("arith.addi {}, {one} : i32", v(&inner.counters[1])));
        let yields: String = inner.yields.iter().map(|var| format!(", {}", v(var))).collect();
        self.line(&format!("scf.yield {next}{yields} : i32{more}"));
        self.line("}");
    }

    fn branch(&mut self, inner: &If) {
        let arrow = match &inner.results[..] {
            [] => String::new(),
            results => format!(" -> ({})", self.types(results)),
        };
        self.line(&format!(
            "{}scf.if {}{arrow} {{",
            Self::results(&inner.results),
            v(&inner.condition)
        ));
        self.all(&inner.branches[0]);
        self.yields("scf.yield", &inner.yields[0]);
        self.line("} else {");
        self.all(&inner.branches[1]);
        self.yields("scf.yield", &inner.yields[1]);
        self.line("}");
    }

    fn switch(&mut self, inner: &If) {
        let arrow = match &inner.results[..] {
            [] => String::new(),
            results => format!(" -> {}", self.types(results)),
        };
        let case = self.temporary(&format!("arith.index_castui {} : i1 to index", v(&inner.condition)));
        self.line(&format!(
            "{}scf.index_switch {case}{arrow}",
            Self::results(&inner.results)
        ));
        for (label, number) in [("case 1", 0), ("default", 1)] {
            self.line(&format!("{label} {{"));
            self.all(&inner.branches[number]);
            self.yields("scf.yield", &inner.yields[number]);
            self.line("}");
        }
    }

    fn blocks(&mut self, inner: &If, switch: bool) {
        let arrow = match &inner.results[..] {
            [] => String::new(),
            results => format!(" -> ({})", self.types(results)),
        };
        self.line(&format!(
            "{}scf.execute_region{arrow} {{",
            Self::results(&inner.results)
        ));
        match switch {
            false => self.line(&format!("cf.cond_br {}, ^yes, ^no", v(&inner.condition))),
            true => {
                let number = self.temporary(&format!("arith.extui {} : i1 to i32", v(&inner.condition)));
                self.line(&format!("cf.switch {number} : i32, [ default: ^no, 1: ^yes, 7: ^no ]"));
            }
        }
        self.temporaries += 1;
        let names: Vec<String> = (0..inner.results.len())
            .map(|at| format!("%y{}_{at}", self.temporaries))
            .collect();
        let joined: Vec<(String, String)> = names
            .into_iter()
            .zip(inner.results.iter().map(|&var| self.t(var)))
            .collect();
        for (label, number) in [("yes", 0), ("no", 1)] {
            self.line(&format!("^{label}:"));
            self.all(&inner.branches[number]);
            let yields = &inner.yields[number];
            let values = match &yields[..] {
                [] => String::new(),
                _ => format!("({} : {})", list(yields, v), self.types(yields)),
            };
            self.line(&format!("cf.br ^end{values}"));
        }
        match &joined[..] {
            [] => {
                self.line("^end:");
                self.line("scf.yield");
            }
            _ => {
                self.line(&format!(
                    "^end({}):",
                    list(&joined, |(name, ty)| format!("{name}: {ty}"))
                ));
                let (names, types) = (
                    list(&joined, |(name, _)| name.clone()),
                    list(&joined, |(_, ty)| ty.clone()),
                );
                self.line(&format!("scf.yield {names} : {types}"));
            }
        }
        self.line("}");
    }

    /// The right side of a definition.
    fn define(&mut self, var: Var, op: &Op, args: &[Var]) -> String {
        let (ty, text) = (self.ty(var), self.t(var));
        let from = args.first().map_or(ty, |&first| self.ty(first));
        let (a, b) = (
            args.first().map(v).unwrap_or_default(),
            args.get(1).map(v).unwrap_or_default(),
        );
        match op {
            Op::Const(value) => constant(ty, *value),
            Op::Id(Id::Thread) => "gpu.thread_id x".to_owned(),
            Op::Id(Id::Block) => "gpu.block_id x".to_owned(),
            Op::Id(Id::Global) => "gpu.global_id x".to_owned(),
            Op::Id(Id::Lane) => "gpu.lane_id".to_owned(),
            Op::Scalar(number) => {
                let zero = constant(ty, 0);
                let zero = self.temporary(&zero);
                // There is no copy; nothing is changed by these.
                match ty.elem.is_float() {
                    false => format!("arith.ori %s{number}, {zero} : {text}"),
                    true => {
                        let yes = self.temporary("arith.constant true");
                        format!("arith.select {yes}, %s{number}, {zero} : {text}")
                    }
                }
            }
            Op::Table(operation, guard) => self.table(operation.name, operation.shape, *guard, args, from),
            Op::Cast(cast) => self.cast(*cast, &a, from, ty),
            Op::Select => {
                let condition = match from.lanes {
                    1 => String::new(),
                    _ => format!("{}, ", from.text()),
                };
                format!("arith.select {a}, {b}, {} : {condition}{text}", v(&args[2]))
            }
            Op::Splat => format!("vector.broadcast {a} : {} to {text}", from.text()),
            Op::Extract(lane) => format!("vector.extract {a}[{lane}] : {text} from {}", from.text()),
            Op::ExtractAt => {
                let below = self.constant(INDEX, from.lanes as i64 - 1);
                let at = self.temporary(&format!("arith.andi {b}, {below} : index"));
                format!("vector.extract {a}[{at}] : {text} from {}", from.text())
            }
            Op::Insert(lane) => format!("vector.insert {a}, {b}[{lane}] : {} into {text}", from.text()),
            Op::Permute(order) => {
                format!("vector.shuffle {a}, {b} {order:?} : {}, {}", from.text(), from.text())
            }
            Op::Reduce(kind) => match args.len() {
                1 => format!("vector.reduction <{kind}>, {a} : {} into {text}", from.text()),
                _ => format!("vector.reduction <{kind}>, {a}, {b} : {} into {text}", from.text()),
            },
            Op::Fast(float) => self.fast(*float, args),
            Op::Copy => {
                let yes = self.temporary("arith.constant true");
                format!("arith.select {yes}, {a}, {a} : {text}")
            }
            Op::Shuffle { mode, offset, width } => {
                let offset = self.constant(Ty::scalar(Elem::I32), i64::from(*offset));
                self.shuffle(mode, &a, &offset, *width, &text)
            }
            Op::ShuffleAt { width } => {
                let below = self.constant(Ty::scalar(Elem::I32), 31);
                let lane = self.temporary(&format!("arith.andi {b}, {below} : i32"));
                self.shuffle("idx", &a, &lane, *width, &text)
            }
            Op::AllReduce(kind) => format!("gpu.all_reduce {kind} {a} uniform {{}} : ({text}) -> {text}"),
            Op::SubgroupReduce { kind, size: 0, .. } => {
                format!("gpu.subgroup_reduce {kind} {a} uniform : ({text}) -> {text}")
            }
            Op::SubgroupReduce { kind, size, stride } => {
                let stride = if *stride == 1 {
                    String::new()
                } else {
                    format!(", stride = {stride}")
                };
                format!("gpu.subgroup_reduce {kind} {a} cluster(size = {size}{stride}) : ({text}) -> {text}")
            }
            Op::Exchange(buffer) => {
                let own = memref(self.kernel, *buffer);
                self.line(&format!("memref.store {a}, %b{buffer}[%tid] : {own}"));
                self.line("gpu.barrier");
                let below = self.constant(INDEX, i64::from(self.kernel.threads) - 1);
                let at = self.temporary(&format!("arith.andi {b}, {below} : index"));
                let read = self.temporary(&format!("memref.load %b{buffer}[{at}] : {own}"));
                self.line("gpu.barrier");
                let yes = self.temporary("arith.constant true");
                format!("arith.select {yes}, {read}, {read} : {text}")
            }
            Op::Histogram(buffer) => {
                let own = memref(self.kernel, *buffer);
                let zero = self.constant(ty, 0);
                self.line(&format!("memref.store {zero}, %b{buffer}[%tid] : {own}"));
                self.line("gpu.barrier");
                let below = self.constant(INDEX, i64::from(self.kernel.threads) - 1);
                let at = self.temporary(&format!("arith.andi {b}, {below} : index"));
                self.temporary(&format!(
                    "memref.atomic_rmw addi {a}, %b{buffer}[{at}] : ({text}, {own}) -> {text}"
                ));
                self.line("gpu.barrier");
                let at = self.temporary(&format!("arith.andi {}, {below} : index", v(&args[2])));
                let read = self.temporary(&format!("memref.load %b{buffer}[{at}] : {own}"));
                self.line("gpu.barrier");
                let yes = self.temporary("arith.constant true");
                format!("arith.select {yes}, {read}, {read} : {text}")
            }
            Op::NoWrap(name) => {
                let masks = no_wrap_masks(name, ty.elem);
                let [first, second] = [0, 1].map(|number| {
                    let mask = self.constant(ty, masks[number] as i64);
                    self.temporary(&format!("arith.andi {}, {mask} : {text}", v(&args[number])))
                });
                let first = match *name {
                    "arith.subi" => {
                        let above = self.constant(ty, masks[1] as i64 + 1);
                        self.temporary(&format!("arith.ori {first}, {above} : {text}"))
                    }
                    _ => first,
                };
                format!("{name} {first}, {second} overflow<nsw, nuw> : {text}")
            }
        }
    }

    fn shuffle(&mut self, mode: &str, value: &str, offset: &str, width: u32, text: &str) -> String {
        let width = self.constant(Ty::scalar(Elem::I32), i64::from(width));
        self.temporaries += 1;
        let name = format!("%t{}", self.temporaries);
        self.line(&format!(
            "{name}, {name}_ok = gpu.shuffle {mode} {value}, {offset}, {width} : {text}"
        ));
        format!("arith.select {name}_ok, {name}, {value} : {text}")
    }

    fn table(&mut self, name: &str, shape: Shape, guard: bool, args: &[Var], from: Ty) -> String {
        let text = from.text();
        let mut operands: Vec<String> = args.iter().map(v).collect();
        let most = most_positive(from.elem, from.elem.bits(64)) as i64;
        match shape {
            Shape::Shift => {
                let most = self.constant(from, most_shift(from.elem, from.elem.bits(64)) as i64);
                operands[1] = self.temporary(&format!("arith.andi {}, {most} : {text}", operands[1]));
            }
            Shape::DivS | Shape::DivU => {
                let steps = match (shape, guard) {
                    (Shape::DivU, _) => vec![("ori", 1)],
                    (_, false) => vec![("andi", most), ("ori", 1)],
                    (_, true) => vec![("ori", !most), ("andi", !1)],
                };
                for (step, number) in steps {
                    let number = self.constant(from, number);
                    operands[1] = self.temporary(&format!("arith.{step} {}, {number} : {text}", operands[1]));
                }
            }
            Shape::Number2 => {
                let zero = self.constant(from, 0);
                for operand in &mut operands {
                    *operand = self.temporary(&format!("arith.addf {operand}, {zero} : {text}"));
                }
            }
            Shape::CopySign => {
                let (zero, sign) = (self.constant(from, 0), operands[1].clone());
                operands[1] = self.numeric(&sign, &zero, from);
            }
            Shape::High => {
                self.temporaries += 1;
                let low = format!("%t{}", self.temporaries);
                self.line(&format!("{low}, {low}_high = {name} {} : {text}", operands.join(", ")));
                let zero = self.constant(from, 0);
                return format!("arith.ori {low}_high, {zero} : {text}");
            }
            _ => {}
        }
        let comma = if matches!(shape, Shape::CmpI | Shape::CmpF) {
            ","
        } else {
            ""
        };
        format!("{name}{comma} {} : {text}", operands.join(", "))
    }

    /// The other value where one is not a number.
    fn numeric(&mut self, value: &str, other: &str, ty: Ty) -> String {
        let ok = self.temporary(&format!("arith.cmpf ord, {value}, {value} : {}", ty.text()));
        self.selected(&ok, value, other, ty)
    }

    fn selected(&mut self, condition: &str, value: &str, other: &str, ty: Ty) -> String {
        let shape = match ty.lanes {
            1 => String::new(),
            _ => format!("{}, ", ty.with(Elem::I1).text()),
        };
        self.temporary(&format!(
            "arith.select {condition}, {value}, {other} : {shape}{}",
            ty.text()
        ))
    }

    fn cast(&mut self, cast: Cast, value: &str, from: Ty, to: Ty) -> String {
        let mut value = value.to_owned();
        let mut flags = "";
        let name = match cast {
            Cast::TruncI => "trunci",
            Cast::ExtSI => "extsi",
            Cast::ExtUI => "extui",
            Cast::IndexCast => "index_cast",
            Cast::IndexCastUI => "index_castui",
            Cast::SIToFP => "sitofp",
            Cast::UIToFP => "uitofp",
            Cast::FPToSI | Cast::FPToUI => {
                let kinds = [from, to].map(|ty| Kind {
                    elem: ty.elem,
                    bits: ty.elem.bits(64),
                });
                let exponent = limit(kinds[0], kinds[1], cast);
                let bits = kinds[0].encode(
                    exponent.map_or(f64::INFINITY, |e| 2f64.powi(e)),
                    super::number::Rounding::Even,
                );
                let (most, zero) = (self.constant(from, bits as i64), self.constant(from, 0));
                let magnitude = self.temporary(&format!("math.absf {value} : {}", from.text()));
                let ok = self.temporary(&format!("arith.cmpf olt, {magnitude}, {most} : {}", from.text()));
                let taken = if cast == Cast::FPToSI { value } else { magnitude };
                value = self.selected(&ok, &taken, &zero, from);
                if cast == Cast::FPToSI { "fptosi" } else { "fptoui" }
            }
            Cast::ExtF => "extf",
            Cast::TruncF(rounding) => {
                flags = rounding.text();
                "truncf"
            }
            Cast::Bitcast => {
                if from.elem.is_float() {
                    let zero = self.constant(from, 0);
                    value = self.numeric(&value, &zero, from);
                }
                "bitcast"
            }
        };
        format!("arith.{name} {value}{flags} : {} to {}", from.text(), to.text())
    }

    fn fast(&mut self, float: Elem, args: &[Var]) -> String {
        const I32: Ty = Ty::scalar(Elem::I32);
        let name = float.name();
        let seven = self.constant(I32, 7);
        let small: Vec<String> = args
            .iter()
            .map(|arg| {
                let small = self.temporary(&format!("arith.andi {}, {seven} : i32", v(arg)));
                self.temporary(&format!("arith.sitofp {small} : i32 to {name}"))
            })
            .collect();
        let [x, y, z] = [0, 1, 2].map(|number| &small[number]);
        let mut step =
            |op: &str, a: &str, b: &str| self.temporary(&format!("arith.{op} {a}, {b} fastmath<fast> : {name}"));
        let product = step("mulf", x, y);
        let sum = step("addf", &product, z);
        let cubic = step("mulf", &sum, x);
        let other = step("mulf", y, z);
        let difference = step("subf", &cubic, &other);
        let all = step("addf", &difference, z);
        format!("arith.fptosi {all} : {name} to i32")
    }
}
