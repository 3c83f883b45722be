//! Which PTX lies beside the machine code of an artifact.

use super::error::shown;
use super::{NvidiaKind, NvidiaTarget, TargetError};
use std::fmt;
use std::str::FromStr;

/// Which PTX an artifact carries for drivers to compile, on devices that none of its cubins fits.
///
/// Reads and prints `none`, `lowest`, `newest`, `all`, or architectures such as `sm_80,sm_90a`. What a policy comes to for
/// a list of targets is up to [`TargetPlan`](super::TargetPlan).
///
/// The default is [`Lowest`](Self::Lowest): then every device at or above the lowest target finds something to run, for
/// the size of one text. `docs/targets.md` has the whole argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum PtxPolicy {
    /// No PTX.
    None,
    /// PTX of the lowest portable NVIDIA target: one without `a` or `f`.
    #[default]
    Lowest,
    /// PTX of the newest portable NVIDIA target.
    Newest,
    /// PTX of every NVIDIA target, those with `a` and `f` too.
    All,
    /// PTX of these, virtual ones, each once. Reading never makes it empty.
    Listed(Vec<NvidiaTarget>),
}

impl From<PtxPolicy> for String {
    fn from(policy: PtxPolicy) -> Self {
        policy.to_string()
    }
}

impl TryFrom<String> for PtxPolicy {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Self, TargetError> {
        text.parse()
    }
}

/// What comes before the policy in an artifact.
const IDENTIFIER: &str = "include-ptx=";

impl PtxPolicy {
    /// The policy as artifacts carry it, `include-ptx=lowest`: the identifier of a fat binary's entries, a string of an
    /// offload binary, a property of a `gpu.binary` object.
    #[must_use]
    pub fn to_identifier(&self) -> String {
        format!("{IDENTIFIER}{self}")
    }

    /// Reads what [`to_identifier`](Self::to_identifier) wrote; `None` for text of somebody else, such as the name of a
    /// source file.
    ///
    /// # Errors
    ///
    /// A policy that cannot be read after `include-ptx=`.
    pub fn from_identifier(identifier: &str) -> Result<Option<Self>, TargetError> {
        identifier.strip_prefix(IDENTIFIER).map(str::parse).transpose()
    }

    /// The policy of an artifact joined of two inputs, each a policy and the name that a message calls it by.
    ///
    /// # Errors
    ///
    /// Policies that differ; the order of a list does not count.
    pub fn join(first: (&Self, &str), second: (&Self, &str)) -> Result<Self, TargetError> {
        let same = match (first.0, second.0) {
            (Self::Listed(a), Self::Listed(b)) => {
                let sorted = |list: &[NvidiaTarget]| {
                    let mut list = list.to_vec();
                    list.sort();
                    list.dedup();
                    list
                };
                sorted(a) == sorted(b)
            }
            (a, b) => a == b,
        };
        if same {
            return Ok(first.0.clone());
        }
        Err(TargetError::conflict(format!(
            "{first_name} was made with include-ptx={first} and {second_name} with include-ptx={second}: one artifact has one \
             PTX policy; make both with the same --include-ptx",
            first_name = shown(first.1),
            first = first.0,
            second_name = shown(second.1),
            second = second.0
        )))
    }

    /// The policies that are one word.
    fn word(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "lowest" => Some(Self::Lowest),
            "newest" => Some(Self::Newest),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

impl fmt::Display for PtxPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = match self {
            Self::None => return f.write_str("none"),
            Self::Lowest => return f.write_str("lowest"),
            Self::Newest => return f.write_str("newest"),
            Self::All => return f.write_str("all"),
            Self::Listed(listed) => listed,
        };
        if listed.is_empty() {
            return f.write_str("none");
        }
        for (index, target) in listed.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}", target.with_kind(NvidiaKind::Real))?;
        }
        Ok(())
    }
}

impl FromStr for PtxPolicy {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(TargetError::malformed(
                "empty PTX policy: write none, lowest, newest, all, or architectures such as sm_80,sm_90a",
            ));
        }
        if let Some(policy) = Self::word(trimmed) {
            return Ok(policy);
        }
        let mut listed: Vec<NvidiaTarget> = Vec::new();
        for (index, word) in trimmed.split(',').map(str::trim).enumerate() {
            if word.is_empty() {
                return Err(TargetError::malformed(format!(
                    "architecture {position} of the PTX policy '{policy}' is empty: remove the extra comma",
                    position = index + 1,
                    policy = shown(text)
                )));
            }
            if Self::word(word).is_some() {
                return Err(TargetError::malformed(format!(
                    "'{word}' in the PTX policy '{policy}' stands alone or not at all: leave it out, or all that is beside it",
                    word = word,
                    policy = shown(text)
                )));
            }
            let target: NvidiaTarget = word.parse().map_err(|source| {
                let word = shown(word);
                TargetError::malformed(format!(
                    "'{word}' is no PTX policy: write none, lowest, newest, all, or architectures such as sm_80,sm_90a \
                     ({source})"
                ))
            })?;
            let target = target.with_kind(NvidiaKind::Virtual);
            if !listed.contains(&target) {
                listed.push(target);
            }
        }
        Ok(Self::Listed(listed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> PtxPolicy {
        text.parse().expect(text)
    }

    fn refusal(text: &str) -> String {
        text.parse::<PtxPolicy>().expect_err(text).to_string()
    }

    #[test]
    fn every_policy_round_trips() {
        for text in [
            "none",
            "lowest",
            "newest",
            "all",
            "sm_80",
            "sm_90a,sm_80,sm_100f",
            "sm_90+ptx83",
        ] {
            assert_eq!(policy(text).to_string(), text);
            assert_eq!(policy(text).to_identifier(), format!("include-ptx={text}"));
            assert_eq!(
                PtxPolicy::from_identifier(&policy(text).to_identifier()),
                Ok(Some(policy(text)))
            );
        }
        assert_eq!(PtxPolicy::default(), PtxPolicy::Lowest);
        assert_eq!(policy(" compute_80 , sm_80, sm_90 ").to_string(), "sm_80,sm_90");
        assert_eq!(PtxPolicy::Listed(Vec::new()).to_string(), "none");
    }

    #[test]
    fn identifiers_of_others_are_left_alone() {
        for identifier in ["", "saxpy.cu", "include-ptx", "include_ptx=all", "x include-ptx=all"] {
            assert_eq!(PtxPolicy::from_identifier(identifier), Ok(None), "{identifier}");
        }
        assert_eq!(
            PtxPolicy::from_identifier("include-ptx="),
            Err(TargetError::malformed(
                "empty PTX policy: write none, lowest, newest, all, or architectures such as sm_80,sm_90a"
            ))
        );
    }

    #[test]
    fn refusals_say_what_to_write() {
        assert_eq!(
            refusal("  "),
            "empty PTX policy: write none, lowest, newest, all, or architectures such as sm_80,sm_90a"
        );
        assert_eq!(
            refusal("sm_80,,sm_90"),
            "architecture 2 of the PTX policy 'sm_80,,sm_90' is empty: remove the extra comma"
        );
        assert_eq!(
            refusal("sm_80,none"),
            "'none' in the PTX policy 'sm_80,none' stands alone or not at all: leave it out, or all that is beside it"
        );
        assert_eq!(
            refusal("sm_91"),
            "'sm_91' is no PTX policy: write none, lowest, newest, all, or architectures such as sm_80,sm_90a (unknown \
             chip 'sm_91': did you mean sm_90 or sm_90a?)"
        );
        for text in ["gfx942", "Lowest", "oldest", "80", "sm_80;sm_90"] {
            assert!(refusal(text).contains("is no PTX policy"), "{text}");
        }
    }

    #[test]
    fn equal_policies_join() {
        for text in ["none", "lowest", "newest", "all", "sm_80,sm_90"] {
            assert_eq!(
                PtxPolicy::join((&policy(text), "a.o"), (&policy(text), "b.o")),
                Ok(policy(text))
            );
        }
        let (one, other) = (policy("sm_80,sm_90"), policy("sm_90,sm_80"));
        assert_eq!(PtxPolicy::join((&one, "a.o"), (&other, "b.o")), Ok(one));
    }

    #[test]
    fn contradictory_policies_name_both_inputs() {
        let policies = ["none", "lowest", "newest", "all", "sm_80", "sm_80,sm_90"];
        for (index, a) in policies.iter().enumerate() {
            for b in policies.iter().skip(index + 1) {
                let error = PtxPolicy::join((&policy(a), "one.fatbin"), (&policy(b), "two.o")).expect_err(b);
                assert_eq!(
                    error.to_string(),
                    format!(
                        "one.fatbin was made with include-ptx={a} and two.o with include-ptx={b}: one artifact has one PTX \
                         policy; make both with the same --include-ptx"
                    )
                );
            }
        }
    }
}
