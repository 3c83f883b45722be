//! The names that a mistyped name may have meant: of chips, of kernels.

/// Suggestions in one message at most.
const MOST: usize = 3;

/// Longer input than this is no typing error, and comparing takes time.
const LONGEST: usize = 256;

/// The names of `known` that `name` may have meant, best first; empty when nothing is close.
///
/// A common beginning counts more than a small distance, so that `sm_91` finds `sm_90` and
/// `sm_90a`, not `sm_21`. Letter case and punctuation do not count: `SM90` finds `sm_90`.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    if name.chars().nth(LONGEST).is_some() {
        return Vec::new();
    }
    let wanted = plain(name);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| Some((penalty(&wanted, &plain(candidate))?, candidate)))
        .collect();
    found.sort_by_key(|&(penalty, _)| penalty);
    if let Some(&(best, _)) = found.first() {
        let worst = if best == 0 { 0 } else { best + 1 };
        found.retain(|&(penalty, _)| penalty <= worst);
    }
    found.truncate(MOST);
    found.into_iter().map(|(_, candidate)| candidate.to_owned()).collect()
}

/// How unlikely it is that `candidate` was meant: 0 if it was written but for case and
/// punctuation, `None` if it is out of the question.
fn penalty(wanted: &str, candidate: &str) -> Option<usize> {
    let distance = strsim::damerau_levenshtein(wanted, candidate);
    let common = wanted
        .chars()
        .zip(candidate.chars())
        .take_while(|(a, b)| a == b)
        .count();
    // With another beginning it is another word: `h100` does not mean `sm_100`.
    let limit = if common < 2 { 1 } else { (wanted.len() / 3).clamp(2, 3) };
    let uncommon = wanted.chars().count().saturating_sub(common);
    (distance <= limit && !wanted.is_empty()).then_some(distance + 2 * uncommon)
}

/// Lower case, letters and digits only.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["sm_80", "sm_90", "sm_90a", "sm_100", "gfx90a", "gfx942"];

    #[test]
    fn closest_first() {
        assert_eq!(nearest("sm_91", KNOWN), ["sm_90", "sm_90a"]);
        assert_eq!(nearest("SM90A", KNOWN), ["sm_90a"]);
        assert_eq!(nearest("am_90", KNOWN), ["sm_90"]);
        assert_eq!(nearest("gfx940", KNOWN), ["gfx942"]);
    }

    #[test]
    fn nothing_close_gives_nothing() {
        assert!(nearest("h100", KNOWN).is_empty());
        assert!(nearest("", KNOWN).is_empty());
        assert!(nearest("::--", KNOWN).is_empty());
        assert!(nearest(&"sm_90".repeat(100_000), KNOWN).is_empty());
    }
}
