//! Which resources serve which slots of a claim when selectors overlap (M2, M4).

/// How many of its best candidates one slot needs to be shown: with at most this many slots in a claim, a slot that has
/// this many candidates can always be served, so that looking at more would change nothing.
pub const SLOTS: usize = 16;

/// Gives every slot one candidate of its own, or `None` when no way of doing so exists.
///
/// `slots[i]` lists the candidates of slot `i`, the best first; only the first [`SLOTS`] are looked at. Earlier slots and
/// better candidates are preferred, but serving every slot comes first (augmenting paths).
pub fn assign<T: Copy + Ord>(slots: &[Vec<T>]) -> Option<Vec<T>> {
    let mut holder: std::collections::BTreeMap<T, usize> = std::collections::BTreeMap::new();
    for slot in 0..slots.len() {
        let mut tried = std::collections::BTreeSet::new();
        if !place(slots, slot, &mut holder, &mut tried) {
            return None;
        }
    }
    let mut chosen: Vec<Option<T>> = vec![None; slots.len()];
    for (candidate, slot) in holder {
        chosen[slot] = Some(candidate);
    }
    chosen.into_iter().collect()
}

fn place<T: Copy + Ord>(
    slots: &[Vec<T>],
    slot: usize,
    holder: &mut std::collections::BTreeMap<T, usize>,
    tried: &mut std::collections::BTreeSet<T>,
) -> bool {
    for &candidate in slots[slot].iter().take(SLOTS) {
        if let std::collections::btree_map::Entry::Vacant(free) = holder.entry(candidate) {
            free.insert(slot);
            return true;
        }
    }
    for &candidate in slots[slot].iter().take(SLOTS) {
        if !tried.insert(candidate) {
            continue;
        }
        let other = holder.get(&candidate).copied();
        if other.is_some_and(|other| place(slots, other, holder, tried)) {
            holder.insert(candidate, slot);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::assign;

    #[test]
    fn m2_a_slot_with_one_candidate_keeps_it_from_a_slot_with_two() {
        assert_eq!(assign(&[vec![1, 2], vec![1]]), Some(vec![2, 1]));
    }

    #[test]
    fn m2_no_candidate_serves_two_slots() {
        assert_eq!(assign(&[vec![1], vec![1]]), None);
        assert_eq!(assign(&[vec![1, 2], vec![1, 2], vec![1, 2]]), None);
    }

    #[test]
    fn m2_the_best_candidates_are_taken_in_order() {
        assert_eq!(assign(&[vec![3, 4, 5], vec![3, 4, 5]]), Some(vec![3, 4]));
    }

    #[test]
    fn m2_a_chain_of_slots_moves_over() {
        assert_eq!(assign(&[vec![1, 2], vec![2, 3], vec![1, 2]]).map(|chosen| chosen.len()), Some(3));
    }
}
