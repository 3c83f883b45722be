//! What `ptxas` would have entered one after the other, had it compiled the kernels together.

use super::names;

/// Something that a part has, in the order in which it has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// In each phase, one part follows the other. Phases follow each other.
    pub phase: u8,
    /// Which one it is of what the parts have together ([`names::shared`]); `None` for what belongs to one part.
    pub shared: Option<usize>,
}

/// The items of all parts in one order.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The parts and positions in them, from which each comes: several for one that parts have together.
    pub from: Vec<Vec<(usize, usize)>>,
    /// For each part, the new positions of its items.
    pub to: Vec<Vec<usize>>,
}

impl Order {
    /// The order of the items of `parts`. `Err` has the part whose phases are not in order.
    pub(super) fn new(parts: &[&[Item]]) -> Result<Self, usize> {
        if let Some(part) = parts
            .iter()
            .position(|items| !items.is_sorted_by_key(|item| item.phase))
        {
            return Err(part);
        }
        let mut order = Self {
            from: Vec::new(),
            to: parts.iter().map(|items| Vec::with_capacity(items.len())).collect(),
        };
        let mut shared = [None; names::MOST_SHARED];
        let mut rest: Vec<std::slice::Iter<'_, Item>> = parts.iter().map(|items| items.iter()).collect();
        while let Some(phase) = rest
            .iter()
            .filter_map(|items| items.as_slice().first())
            .map(|item| item.phase)
            .min()
        {
            for part in by_completeness(&rest, phase) {
                let (Some(items), Some(to)) = (rest.get_mut(part), order.to.get_mut(part)) else {
                    continue;
                };
                while let Some(item) = items.as_slice().first().filter(|item| item.phase == phase) {
                    items.next();
                    let new = order.from.len();
                    let position = item
                        .shared
                        .and_then(|number| shared.get_mut(number))
                        .map_or(new, |place| *place.get_or_insert(new));
                    let source = (part, to.len());
                    match order.from.get_mut(position) {
                        Some(sources) => sources.push(source),
                        None => order.from.push(vec![source]),
                    }
                    to.push(position);
                }
            }
        }
        // Whose items came first has nothing to do with the order of contents.
        order.from.iter_mut().for_each(|sources| sources.sort_unstable());
        Ok(order)
    }
}

/// The parts in the order in which they are asked for items of `phase`: where all items are shared, he who has most of them
/// knows their order.
fn by_completeness(rest: &[std::slice::Iter<'_, Item>], phase: u8) -> Vec<usize> {
    fn items<'i>(rest: &'i std::slice::Iter<'_, Item>, phase: u8) -> impl Iterator<Item = &'i Item> {
        rest.as_slice().iter().take_while(move |item| item.phase == phase)
    }
    let mut parts: Vec<usize> = (0..rest.len()).collect();
    let mut all = rest.iter().flat_map(|rest| items(rest, phase));
    if all.all(|item| item.shared.is_some()) {
        parts.sort_by_key(|&part| std::cmp::Reverse(rest.get(part).map_or(0, |rest| items(rest, phase).count())));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_comes_with_the_first_who_needs_it() {
        let own = |phase| Item { phase, shared: None };
        let shared = |phase, number| Item {
            phase,
            shared: Some(number),
        };
        let parts = [
            &[shared(0, 1), own(0), own(1), own(2)][..],
            &[shared(0, 1), own(0), shared(0, 3), own(0), own(2)],
        ];
        let order = Order::new(&parts).unwrap();
        assert_eq!(order.to, [vec![0, 1, 5, 6], vec![0, 2, 3, 4, 7]]);
        assert_eq!(order.from[0], [(0, 0), (1, 0)]);
        assert_eq!(Order::new(&[&[own(1), own(0)]]).unwrap_err(), 0);
    }
}
