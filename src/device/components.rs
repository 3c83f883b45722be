//! Which definitions of a module belong together, and the parts in which it is compiled.
//!
//! What a pass does to one function may depend on another that it calls, that calls it, or that uses the same variable: such
//! functions are in one component. Functions that are inlined wherever they are called, and variables that are never
//! written, belong to nobody: each part gets those that it needs.

use std::collections::HashMap;

use crate::bridge::split::Global;

/// A module with fewer instructions, those of inlined functions included, is compiled as a whole: what can be saved is not
/// worth the threads.
const FEWEST_INSTRUCTIONS: usize = 4_000;

/// With fewer before anything is inlined, nobody looks further.
const FEWEST_WRITTEN: usize = 1_000;

/// Parts have as many instructions or more, as far as components allow it: each reads what the module declares, and optimises
/// what it shares with others anew.
const PART_INSTRUCTIONS: usize = 500;

/// The most parts. Smaller ones would help a cache, where one kernel has changed, but each has to be read from the whole: 10 ms of
/// a module of 1,000 kernels.
const MOST_PARTS: usize = 64;

/// How a module is compiled. It is a matter of the module alone: neither threads nor the machine have a say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// The definitions that several parts may have.
    pub shared: Vec<usize>,
    /// For each part, whether it has the function or variable at a position. `None` where there is one part.
    pub parts: Option<Vec<Vec<bool>>>,
}

/// Divides a module of so many instructions. `None` where functions that are inlined call each other in a circle.
pub(super) fn divide(globals: &[Global], instructions: usize) -> Option<Division> {
    let mut graph = Graph::new(globals)?;
    let is_shared = |index: &usize| globals[*index].is_definition && graph.shareable[*index];
    let shared = (0..globals.len()).filter(is_shared).collect();
    let parts = (instructions >= FEWEST_WRITTEN).then(|| graph.parts()).flatten();
    Some(Division { shared, parts })
}

struct Graph<'a> {
    globals: &'a [Global],
    /// Whether every part may have it.
    shareable: Vec<bool>,
    /// What a definition reaches through shareable ones, itself apart.
    reached: Vec<Vec<usize>>,
    /// A definition of the same component, with a smaller position; itself for the first.
    first: Vec<usize>,
}

impl<'a> Graph<'a> {
    /// The parts, if there are several.
    fn parts(&mut self) -> Option<Vec<Vec<bool>>> {
        self.connect();
        let members = self.components();
        let sizes: Vec<usize> = members
            .iter()
            .map(|definitions| definitions.iter().map(|&definition| self.size(definition)).sum())
            .collect();
        let of_part = |components: Vec<usize>| {
            let definitions = components.into_iter().filter_map(|component| members.get(component));
            let definitions: Vec<usize> = definitions.flatten().copied().collect();
            self.kept(&definitions)
        };
        Some(balance(&sizes)?.into_iter().map(of_part).collect())
    }

    /// `None` where functions that are inlined call each other in a circle.
    fn new(globals: &'a [Global]) -> Option<Self> {
        let mut graph = Self {
            globals,
            shareable: globals.iter().map(|global| global.is_shareable).collect(),
            reached: Vec::new(),
            first: (0..globals.len()).collect(),
        };
        graph.connect_equal_variables();
        let mut seen = vec![usize::MAX; globals.len()];
        for (index, global) in globals.iter().enumerate() {
            let reached = graph.reach(index, &mut seen);
            if graph.shareable[index] && global.is_function && reached.contains(&index) {
                return None;
            }
            graph.reached.push(reached);
        }
        Some(graph)
    }

    /// LLVM keeps one of several variables of the same initial value if it may: those who use them belong together.
    fn connect_equal_variables(&mut self) {
        let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, global) in self.globals.iter().enumerate() {
            if let Some(initializer) = global.initializer {
                groups.entry(initializer).or_default().push(index);
            }
        }
        for group in groups.into_values().filter(|group| group.len() > 1) {
            let merges = group.iter().any(|&index| self.globals[index].is_mergeable);
            for &index in group.iter().filter(|_| merges) {
                self.shareable[index] = false;
                self.union(group[0], index);
            }
        }
    }

    /// What `start` refers to, and what that does if it is shareable. `seen` has for each the last start that reached it.
    fn reach(&self, start: usize, seen: &mut [usize]) -> Vec<usize> {
        let mut reached = Vec::new();
        let mut open: Vec<usize> = self.globals[start].references.clone();
        while let Some(index) = open.pop() {
            if std::mem::replace(&mut seen[index], start) == start {
                continue;
            }
            reached.push(index);
            if self.shareable[index] {
                open.extend(&self.globals[index].references);
            }
        }
        reached
    }

    fn is_own(&self, index: usize) -> bool {
        self.globals[index].is_definition && !self.shareable[index]
    }

    fn connect(&mut self) {
        for index in (0..self.globals.len())
            .filter(|&index| self.is_own(index))
            .collect::<Vec<_>>()
        {
            for other in self.reached[index].clone() {
                if self.is_own(other) {
                    self.union(index, other);
                }
            }
        }
    }

    fn root(&self, mut index: usize) -> usize {
        while self.first[index] != index {
            index = self.first[index];
        }
        index
    }

    fn union(&mut self, left: usize, right: usize) {
        let (left, right) = (self.root(left), self.root(right));
        self.first[left.max(right)] = left.min(right);
    }

    /// The definitions of each component, components in the order of their first ones.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut members: Vec<Vec<usize>> = Vec::new();
        for index in (0..self.globals.len()).filter(|&index| self.is_own(index)) {
            let place = *places.entry(self.root(index)).or_insert(members.len());
            match members.get_mut(place) {
                Some(component) => component.push(index),
                None => members.push(vec![index]),
            }
        }
        members
    }

    /// Instructions, with those of what is inlined.
    fn size(&self, definition: usize) -> usize {
        let inlined = self.reached[definition].iter().filter(|&&index| self.shareable[index]);
        self.globals[definition].instructions + inlined.map(|&index| self.globals[index].instructions).sum::<usize>()
    }

    /// The definitions, and everything that they need.
    fn kept(&self, definitions: &[usize]) -> Vec<bool> {
        let mut kept = vec![false; self.globals.len()];
        for &definition in definitions {
            kept[definition] = true;
            for &index in &self.reached[definition] {
                kept[index] = true;
            }
        }
        kept
    }
}

/// Components in parts of about the same size, in their order. `None` where that gives one part, or little but one.
fn balance(sizes: &[usize]) -> Option<Vec<Vec<usize>>> {
    let total: usize = sizes.iter().sum();
    let count = (total / PART_INSTRUCTIONS).min(MOST_PARTS);
    if count < 2 || total < FEWEST_INSTRUCTIONS {
        return None;
    }
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut before = 0;
    let mut part_sizes = vec![0; count];
    let mut part = 0;
    for (component, &size) in sizes.iter().enumerate() {
        // Variables that nobody uses, at the end, are no part by themselves.
        if size > 0 {
            part = (before * count / total).min(count - 1);
        }
        parts[part].push(component);
        part_sizes[part] += size;
        before += size;
    }
    parts.retain(|components| !components.is_empty());
    let largest = part_sizes.into_iter().max().unwrap_or(0);
    (parts.len() > 1 && largest <= total / 4 * 3).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = FEWEST_WRITTEN;

    #[test]
    fn variables_that_nobody_uses_are_in_the_part_of_the_last_function() {
        let sizes = [&[1_000; 10][..], &[0]].concat();
        let parts = balance(&sizes).expect("there are several");
        assert_eq!(parts.last().map(Vec::as_slice), Some(&[9, 10][..]));
    }

    fn function(name: &str, instructions: usize, references: &[usize]) -> Global {
        Global {
            name: name.to_owned(),
            is_function: true,
            is_definition: true,
            instructions,
            references: references.to_vec(),
            ..Global::default()
        }
    }

    fn inlined(name: &str, instructions: usize, references: &[usize]) -> Global {
        Global {
            is_shareable: true,
            ..function(name, instructions, references)
        }
    }

    fn variable(name: &str) -> Global {
        Global {
            name: name.to_owned(),
            is_definition: true,
            ..Global::default()
        }
    }

    fn constant(name: &str, initializer: usize, is_mergeable: bool) -> Global {
        Global {
            is_shareable: true,
            is_mergeable,
            initializer: Some(initializer),
            ..variable(name)
        }
    }

    /// The positions that each part has.
    fn positions(division: &Division) -> Vec<Vec<usize>> {
        let of = |kept: &Vec<bool>| (0..kept.len()).filter(|&index| kept[index]).collect();
        division.parts.iter().flatten().map(of).collect()
    }

    #[test]
    fn functions_that_call_each_other_or_use_a_variable_stay_together() {
        let globals = [
            function("a", 2000, &[4]),
            function("b", 2000, &[]),
            function("c", 2000, &[5]),
            function("d", 2000, &[5]),
            function("helper", 10, &[]),
            variable("counter"),
            variable("seen by the host"),
        ];
        let division = divide(&globals, LARGE).expect("no circle");
        assert_eq!(positions(&division), [vec![0, 4], vec![1], vec![2, 3, 5, 6]]);
        assert!(division.shared.is_empty());
    }

    #[test]
    fn what_is_inlined_and_what_is_constant_is_in_every_part_that_needs_it() {
        let globals = [
            function("a", 2000, &[2]),
            function("b", 2000, &[2]),
            inlined("sin", 100, &[3, 4]),
            inlined("slow path", 100, &[5]),
            function("vprintf", 0, &[]),
            constant("table", 1, true),
        ];
        let mut globals = globals;
        globals[4].is_definition = false;
        let division = divide(&globals, LARGE).expect("no circle");
        assert_eq!(positions(&division), [vec![0, 2, 3, 4, 5], vec![1, 2, 3, 4, 5]]);
        assert_eq!(division.shared, [2, 3, 5]);
    }

    #[test]
    fn a_definition_behind_an_inlined_function_connects_its_users() {
        let globals = [
            function("a", 2000, &[3]),
            function("b", 2000, &[]),
            function("c", 2000, &[3]),
            inlined("pow", 10, &[4]),
            function("not inlined", 10, &[]),
        ];
        let division = divide(&globals, LARGE).expect("no circle");
        assert_eq!(positions(&division), [vec![0, 2, 3, 4], vec![1]]);
    }

    #[test]
    fn variables_that_may_be_merged_connect_their_users_and_others_are_kept_apart() {
        for (may_merge, expected, shared) in [
            (true, vec![vec![0, 2, 3, 4], vec![1]], vec![]),
            (false, vec![vec![0, 3], vec![1], vec![2, 4]], vec![3, 4]),
        ] {
            let globals = [
                function("a", 2000, &[3]),
                function("b", 2000, &[]),
                function("c", 2000, &[4]),
                constant("one", 7, may_merge),
                constant("same", 7, false),
            ];
            let division = divide(&globals, LARGE).expect("no circle");
            assert_eq!(positions(&division), expected);
            assert_eq!(division.shared, shared);
        }
    }

    #[test]
    fn small_modules_one_component_and_recursion_are_compiled_as_a_whole() {
        let is_one = |globals: &[Global]| divide(globals, LARGE).expect("no circle").parts.is_none();
        assert!(is_one(&[function("a", 1500, &[]), function("b", 1500, &[])]));
        assert!(is_one(&[function("a", 9000, &[1]), function("b", 9000, &[])]));
        assert!(is_one(&[function("large", 90_000, &[]), function("b", 2000, &[])]));
        let small = divide(
            &[function("a", 9000, &[]), inlined("sin", 9000, &[])],
            FEWEST_WRITTEN - 1,
        )
        .expect("no circle");
        assert_eq!((small.shared, small.parts), (vec![1], None));
        let circle = [
            function("a", 4000, &[2]),
            function("b", 4000, &[2]),
            inlined("even", 10, &[3]),
            inlined("odd", 10, &[2]),
        ];
        assert_eq!(divide(&circle, LARGE), None);
    }

    #[test]
    fn parts_are_of_about_the_same_size_and_not_too_many() {
        let many: Vec<Global> = (0..1000).map(|index| function(&index.to_string(), 130, &[])).collect();
        let division = divide(&many, LARGE).expect("no circle");
        let parts = division.parts.expect("is divided");
        assert_eq!(parts.len(), MOST_PARTS);
        let sizes = parts.iter().map(|kept| kept.iter().filter(|kept| **kept).count());
        assert!(sizes.clone().min() >= Some(15) && sizes.max() <= Some(16));
    }
}
