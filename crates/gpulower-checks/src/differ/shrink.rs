//! A kernel made smaller while something still holds of it.

use super::kernel::{Kernel, Op, Stmt, Var, count};

/// One change: the statement at a place, in the order of a walk, becomes less.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// It goes; what it defined becomes 0.
    Drop,
    /// What it defined becomes 1.
    One,
    /// Its first or its second region is carried out in its place.
    Inline(usize),
}

/// The smallest kernel that was found, with at most so many tries.
pub fn shrink(kernel: &Kernel, mut tries: usize, still: &mut dyn FnMut(&Kernel) -> bool) -> Kernel {
    let mut best = kernel.clone();
    let mut attempt = |best: &mut Kernel, candidate: Kernel| -> bool {
        if tries == 0 {
            return false;
        }
        tries -= 1;
        let better = still(&candidate);
        if better {
            *best = candidate;
        }
        better
    };
    // Whole runs of statements first, from the end, then one by one.
    let mut run = best.body.len() / 2;
    while run > 1 {
        let mut end = best.body.len();
        while end > 0 {
            end = end.min(best.body.len());
            let first = end.saturating_sub(run);
            let candidate = without(&best, first, end);
            attempt(&mut best, candidate);
            end = first;
        }
        run /= 2;
    }
    loop {
        let mut progress = false;
        for at in (0..count(&best.body)).rev() {
            for change in [Change::Drop, Change::Inline(0), Change::Inline(1), Change::One] {
                if let Some(candidate) = changed(&best, at, change)
                    && attempt(&mut best, candidate)
                {
                    progress = true;
                    break;
                }
            }
        }
        let mut smaller = best.clone();
        smaller.blocks = 1;
        if best.blocks > 1 {
            progress |= attempt(&mut best, smaller);
        }
        if !progress {
            return tidied(&best);
        }
    }
}

fn zero(var: Var) -> Stmt {
    Stmt::Def {
        var,
        op: Op::Const(0),
        args: Vec::new(),
    }
}

fn without(kernel: &Kernel, first: usize, end: usize) -> Kernel {
    let mut smaller = kernel.clone();
    let removed: Vec<Stmt> = smaller.body.splice(first..end, []).collect();
    let zeros = removed.iter().flat_map(Stmt::results).map(zero);
    smaller.body.splice(first..first, zeros);
    tidied(&smaller)
}

fn changed(kernel: &Kernel, mut at: usize, change: Change) -> Option<Kernel> {
    let mut smaller = kernel.clone();
    let made = visit(&mut smaller.body, &mut at, change)?;
    made.then(|| tidied(&smaller))
}

/// `None` where the walk has not come to the place; whether it could be changed otherwise.
fn visit(body: &mut Vec<Stmt>, at: &mut usize, change: Change) -> Option<bool> {
    for number in 0..body.len() {
        if *at == 0 {
            let made = lessen(&body[number], change);
            let possible = made.is_some();
            body.splice(number..=number, made.unwrap_or_else(|| vec![body[number].clone()]));
            return Some(possible);
        }
        *at -= 1;
        for region in body[number].regions() {
            if let Some(made) = visit(region, at, change) {
                return Some(made);
            }
        }
    }
    None
}

fn lessen(stmt: &Stmt, change: Change) -> Option<Vec<Stmt>> {
    let copies = |from: &[Var], to: &[Var]| -> Vec<Stmt> {
        to.iter()
            .zip(from)
            .map(|(&var, &value)| Stmt::Def {
                var,
                op: Op::Copy,
                args: vec![value],
            })
            .collect()
    };
    match (stmt, change) {
        (Stmt::Def { op: Op::Const(_), .. }, _) => None,
        (_, Change::Drop) => Some(stmt.results().into_iter().map(zero).collect()),
        (Stmt::Def { var, .. } | Stmt::Load { var, .. }, Change::One) => Some(vec![Stmt::Def {
            var: *var,
            op: Op::Const(1),
            args: Vec::new(),
        }]),
        (Stmt::If(inner), Change::Inline(number)) => {
            let mut all = inner.branches[number].clone();
            all.extend(copies(&inner.yields[number], &inner.results));
            Some(all)
        }
        (Stmt::For(inner), Change::Inline(0)) => {
            let mut all = vec![zero(inner.iv)];
            all.extend(copies(&inner.carried.inits, &inner.carried.arguments));
            all.extend(inner.body.clone());
            all.extend(copies(&inner.yields, &inner.carried.results));
            Some(all)
        }
        (Stmt::While(inner), Change::Inline(0)) => {
            let mut all = vec![zero(inner.counters[0])];
            all.extend(copies(&inner.carried.inits, &inner.carried.arguments));
            all.extend(inner.before.clone());
            all.extend(copies(&inner.forwards, &inner.carried.results));
            Some(all)
        }
        _ => None,
    }
}

/// Without values that nobody uses.
fn tidied(kernel: &Kernel) -> Kernel {
    let mut tidy = kernel.clone();
    loop {
        let mut used = vec![false; tidy.types.len()];
        mark(&tidy.body, &mut used);
        let before = count(&tidy.body);
        remove(&mut tidy.body, &used);
        if count(&tidy.body) == before {
            return tidy;
        }
    }
}

fn mark(body: &[Stmt], used: &mut [bool]) {
    let mut all = |vars: &[Var]| vars.iter().for_each(|&var| used[var] = true);
    for stmt in body {
        match stmt {
            Stmt::Def { args, .. } => all(args),
            Stmt::Load { index, only, .. } => {
                all(&[*index]);
                only.iter().for_each(|(some, other)| all(&[*some, *other]));
            }
            Stmt::Store { value, index, only, .. } => {
                all(&[*value, *index]);
                all(only.as_slice());
            }
            Stmt::Atomic { value, index, .. } => all(&[*value, *index]),
            Stmt::Exit { condition } => all(&[*condition]),
            Stmt::For(inner) => {
                all(&inner.carried.inits);
                all(&inner.yields);
                all(&inner
                    .bounds
                    .iter()
                    .filter_map(|bound| bound.more.map(|(var, _)| var))
                    .collect::<Vec<_>>());
            }
            Stmt::While(inner) => {
                all(&inner.carried.inits);
                all(&inner.forwards);
                all(&inner.yields);
                all(&[inner.condition]);
            }
            Stmt::If(inner) => {
                all(&inner.yields.concat());
                all(&[inner.condition]);
            }
        }
    }
    for stmt in body {
        match stmt {
            Stmt::For(inner) => mark(&inner.body, used),
            Stmt::While(inner) => {
                mark(&inner.before, used);
                mark(&inner.after, used);
            }
            Stmt::If(inner) => inner.branches.iter().for_each(|branch| mark(branch, used)),
            _ => {}
        }
    }
}

fn remove(body: &mut Vec<Stmt>, used: &[bool]) {
    body.retain_mut(|stmt| {
        for region in stmt.regions() {
            remove(region, used);
        }
        match stmt {
            // A barrier is part of it, and other threads may read what it stores.
            Stmt::Def {
                op: Op::Exchange(_) | Op::Histogram(_),
                ..
            } => true,
            Stmt::Def { var, .. } | Stmt::Load { var, .. } => used[*var],
            _ => true,
        }
    });
}
