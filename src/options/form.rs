//! How values are written as text: reading gives back what was printed, whatever the value.

use std::time::Duration;

use super::{Compression, OptionError};
use crate::{
    container::fatbin::ZSTD_DEFAULT,
    target::{PtxIsa, PtxPolicy},
};

/// The textual form of values of one type.
pub(super) struct Form<T> {
    /// What values look like: `off|on|fast`, `N`.
    pub values: &'static str,
    /// What values are, in words; empty where `values` lists them. A refusal says this.
    pub meaning: &'static str,
    /// Some of them.
    pub examples: &'static [&'static str],
    pub read: fn(&str, &mut T) -> Result<(), Wrong>,
    pub print: fn(&T) -> String,
    /// Sets the first to the second, or adds that.
    pub carry_over: fn(&mut T, &T),
}

/// Why a value cannot be read: it is none of those that the option takes, or for a reason of its own.
pub(super) enum Wrong {
    Value,
    Because(OptionError),
}

/// A form that lists its values. Other spellings stand behind a semicolon.
macro_rules! choice {
    ($first:literal => $value:expr $(, $text:literal => $further:expr)* $(; $($also:literal => $same:expr),*)?) => {
        $crate::options::form::Form {
            values: concat!($first $(, "|", $text)*),
            meaning: "",
            examples: &[$first $(, $text)*],
            read: |text, to| {
                *to = match text {
                    $first => $value,
                    $($text => $further,)*
                    $($($also => $same,)*)?
                    _ => return Err($crate::options::form::Wrong::Value),
                };
                Ok(())
            },
            print: |value| {
                $(if *value == $further {
                    return $text.to_owned();
                })*
                $first.to_owned()
            },
            carry_over: |to, from| to.clone_from(from),
        }
    };
}
pub(super) use choice;

pub(super) const SWITCH: Form<bool> = choice!("true" => true, "false" => false; "1" => true, "" => true, "0" => false);

pub(super) const OPEN_SWITCH: Form<Option<bool>> = choice!(
    "true" => Some(true), "false" => Some(false); "1" => Some(true), "" => Some(true), "0" => Some(false)
);

pub(super) const NUMBER: Form<u32> = Form {
    values: "N",
    meaning: "a number from 0 to 4294967295",
    examples: &["1", "0", "4294967295"],
    read: |text, to| {
        *to = text.parse().map_err(|_| Wrong::Value)?;
        Ok(())
    },
    print: u32::to_string,
    carry_over: |to, from| *to = *from,
};

/// What MLIR's attributes of kernels hold as a number above 0.
pub(super) const ABOVE_ZERO: Form<Option<u32>> = Form {
    values: "N",
    meaning: "a number from 1 to 2147483647",
    examples: &["32", "1", "255", "256", "65536", "2147483647"],
    read: |text, to| {
        let is_above_zero = |number: &u32| i32::try_from(*number).is_ok_and(|number| number > 0);
        set(to, text.parse().ok().filter(is_above_zero))
    },
    print: |value| value.map(|number| number.to_string()).unwrap_or_default(),
    carry_over: |to, from| *to = *from,
};

pub(super) const SECONDS: Form<Option<Duration>> = Form {
    values: "SECONDS",
    meaning: "seconds above 0, such as 30 or 0.5",
    examples: &["600", "3600.5"],
    read: |text, to| set(to, seconds(text).filter(|limit| !limit.is_zero())),
    print: |value| {
        let Some(limit) = value else { return String::new() };
        let text = format!("{}.{:09}", limit.as_secs(), limit.subsec_nanos());
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    },
    carry_over: |to, from| *to = *from,
};

/// Decimals to the nanosecond, and whatever else is a number.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_decimal = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if is_decimal(whole) && is_decimal(fraction) && fraction.len() <= 9 {
        return Some(Duration::new(
            whole.parse().ok()?,
            format!("{fraction:0<9}").parse().ok()?,
        ));
    }
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

pub(super) const MEBIBYTES: Form<Option<u64>> = Form {
    values: "N",
    meaning: "MiB above 0, or bytes with a `B` behind the number",
    examples: &["4096", "4294967297B"],
    read: |text, to| {
        let bytes = match text.strip_suffix('B') {
            Some(bytes) => bytes.parse().ok(),
            None => text.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << 20)),
        };
        set(to, bytes.filter(|bytes| *bytes > 0))
    },
    print: |value| match value {
        Some(bytes) if bytes.is_multiple_of(1 << 20) => (bytes >> 20).to_string(),
        Some(bytes) => format!("{bytes}B"),
        None => String::new(),
    },
    carry_over: |to, from| *to = *from,
};

pub(super) const PTX_ISA: Form<Option<PtxIsa>> = Form {
    values: "X.Y",
    meaning: "a PTX ISA, such as 8.3",
    examples: &["8.3", "3.2", "6.0", "7.8", "8.8", "9.0"],
    read: |text, to| {
        *to = Some(
            text.parse()
                .map_err(|error| Wrong::Because(OptionError::Target(error)))?,
        );
        Ok(())
    },
    print: |value| value.as_ref().map(PtxIsa::to_string).unwrap_or_default(),
    carry_over: |to, from| *to = *from,
};

pub(super) const PTX_POLICY: Form<Option<PtxPolicy>> = Form {
    values: "none|lowest|newest|all|sm_XX[,..]",
    meaning: "`none`, `lowest`, `newest`, `all`, or architectures",
    examples: &["none", "lowest", "newest", "all", "sm_80", "sm_90,sm_80"],
    read: |text, to| {
        *to = Some(
            text.parse()
                .map_err(|error| Wrong::Because(OptionError::Target(error)))?,
        );
        Ok(())
    },
    print: |value| value.as_ref().map(PtxPolicy::to_string).unwrap_or_default(),
    carry_over: Option::clone_from,
};

pub(super) const COMPRESSION: Form<Option<Compression>> = Form {
    values: "none|lz4|zstd[:LEVEL]",
    meaning: "`none`, `lz4`, `zstd`, or `zstd:LEVEL` with a level of 1 to 22",
    examples: &["zstd", "none", "lz4", "zstd:19"],
    read: |text, to| {
        let level = |text: &str| text.parse().ok().filter(|level| (1..=22).contains(level));
        let compression = match text.strip_prefix("zstd:") {
            Some(text) => level(text).map(|level| Compression::Zstd { level }),
            None => Compression::from_name(text),
        };
        set(to, compression)
    },
    print: |value| match value {
        Some(zstd @ Compression::Zstd { level }) if *zstd != ZSTD_DEFAULT => format!("zstd:{level}"),
        Some(compression) => compression.name().to_owned(),
        None => String::new(),
    },
    carry_over: |to, from| *to = *from,
};

pub(super) const WORDS: Form<Vec<String>> = Form {
    values: "WORDS",
    meaning: "words; a backslash makes a space, a quote or a backslash part of a word, and `\"\"` is an empty one",
    examples: &["-v", "--def-load-cache=cg -v", "a\\ b"],
    read: |text, to| {
        let pieces = split(text, char::is_whitespace);
        to.extend(
            pieces
                .into_iter()
                .filter(|piece| !piece.is_empty())
                .map(|piece| match piece {
                    "\"\"" => String::new(),
                    piece => unescaped(piece, special_in_words),
                }),
        );
        Ok(())
    },
    print: |words| {
        let words = words.iter().map(|word| match word.as_str() {
            "" => "\"\"".to_owned(),
            word => escaped(word, special_in_words),
        });
        words.collect::<Vec<_>>().join(" ")
    },
    carry_over: |to, from| to.extend_from_slice(from),
};

pub(super) const PIPELINE: Form<Option<String>> = Form {
    values: "OPTIMIZATION[,..]",
    meaning: "optimizations, as `opt -passes` takes them",
    examples: &["default<O1>", "function(sroa,early-cse)"],
    read: |text, to| {
        if !are_optimizations(text) {
            return Err(Wrong::Value);
        }
        *to = (!text.is_empty()).then(|| text.to_owned());
        Ok(())
    },
    print: |passes| passes.clone().unwrap_or_default(),
    carry_over: Option::clone_from,
};

/// Passes of LLVM 22 that change a module and do nothing else, and make no kernel depend on another. Others print, write files, start
/// programs, or crash on purpose.
const OPTIMIZATIONS: &str = "adce aggressive-instcombine alignment-from-assumptions always-inline argpromotion assume-simplify bdce \
    break-crit-edges called-value-propagation callsite-splitting cgscc chr consthoist constmerge constraint-elimination \
    correlated-propagation dce deadargelim default devirt dfa-jump-threading div-rem-pairs drop-unnecessary-assumes dse early-cse \
    elim-avail-extern float2int function function-attrs globaldce globalopt gpulower-bypass-divisions gpulower-branch-to-rare-ends gpulower-compare-again gpulower-compute-early gpulower-count-bits gpulower-expand-copies \
    gpulower-infer-address-spaces gpulower-interleave gpulower-keep-accumulators gpulower-leave-unrolling gpulower-load-before-branches \
    gpulower-replace-merged-addresses gpulower-rotate-remainders gpulower-separate-exclusive-ors gpulower-unroll gpulower-unroll-for-arrays gpulower-unroll-whole gvn gvn-hoist gvn-sink \
    indvars infer-address-spaces infer-alignment inferattrs inline instcombine instsimplify invalidate ipsccp jump-threading lcssa \
    libcalls-shrinkwrap licm load-store-vectorizer loop loop-bound-split loop-deletion loop-distribute loop-flatten loop-fusion \
    loop-idiom loop-instsimplify loop-interchange loop-load-elim loop-mssa loop-reduce loop-rotate loop-simplify loop-simplifycfg \
    loop-sink loop-unroll loop-unroll-and-jam loop-unroll-full loop-vectorize loop-versioning loop-versioning-licm \
    lower-constant-intrinsics lower-expect lower-switch mem2reg memcpyopt mergeicmps mergereturn mldst-motion module \
    nary-reassociate newgvn nvptx-lower-args nvvm-intr-range nvvm-reflect reassociate recompute-globalsaa require \
    rpo-function-attrs scalarize-masked-mem-intrin scalarizer sccp separate-const-offset-from-gep simple-loop-unswitch simplifycfg \
    sink slp-vectorizer slsr speculative-execution sroa strip-dead-prototypes structurizecfg tailcallelim unify-loop-exits vector-combine verify";

/// Pipelines within pipelines: LLVM reads them by recursion.
const MOST_NESTED: usize = 64;

/// Names end as they do for LLVM, at a comma or a bracket; their parameters do not count.
fn are_optimizations(pipeline: &str) -> bool {
    let mut names = pipeline
        .split([',', '(', ')'])
        .filter_map(|element| element.split('<').next());
    names.all(|name| name.is_empty() || OPTIMIZATIONS.split(' ').any(|known| known == name))
        && pipeline.matches('(').count() <= MOST_NESTED
}

fn special_in_words(character: char) -> bool {
    character.is_whitespace() || matches!(character, '"' | '\\')
}

pub(super) const PATH_PREFIXES: Form<Vec<(String, String)>> = Form {
    values: "OLD=NEW[,..]",
    meaning: "`OLD=NEW`, several with commas; a backslash makes a comma, an equals sign or a backslash part of a path",
    examples: &["/a=/b", "/home/me/=,/a=/b", "a\\=b=c\\,d"],
    read: |text, to| {
        let entries: Option<Vec<(String, String)>> = split(text, |character| character == ',')
            .into_iter()
            .map(|entry| {
                let old = split(entry, |character| character == '=').first().copied()?;
                let new = entry.get(old.len()..)?.strip_prefix('=')?;
                let plain = |text| unescaped(text, special_in_prefixes);
                (!old.is_empty()).then(|| (plain(old), plain(new)))
            })
            .collect();
        to.extend(entries.ok_or(Wrong::Value)?);
        Ok(())
    },
    print: |entries| {
        let entries = entries.iter().map(|(old, new)| {
            let new = escaped(new, |character| matches!(character, ',' | '\\'));
            format!("{}={new}", escaped(old, special_in_prefixes))
        });
        entries.collect::<Vec<_>>().join(",")
    },
    carry_over: |to, from| to.extend_from_slice(from),
};

fn special_in_prefixes(character: char) -> bool {
    matches!(character, ',' | '=' | '\\')
}

fn set<T>(to: &mut Option<T>, value: Option<T>) -> Result<(), Wrong> {
    *to = Some(value.ok_or(Wrong::Value)?);
    Ok(())
}

/// The pieces between separators that no backslash stands before.
fn split(text: &str, is_separator: fn(char) -> bool) -> Vec<&str> {
    let mut after_backslash = false;
    text.split(|character| {
        let separates = is_separator(character) && !after_backslash;
        after_backslash = character == '\\' && !after_backslash;
        separates
    })
    .collect()
}

/// A backslash before each special character; [`unescaped`] takes it away again.
fn escaped(text: &str, is_special: fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_special(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// A backslash before anything else stands for itself.
fn unescaped(text: &str, is_special: fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters
            .peek()
            .copied()
            .filter(|next| character == '\\' && is_special(*next));
        if next.is_some() {
            characters.next();
        }
        plain.push(next.unwrap_or(character));
    }
    plain
}
