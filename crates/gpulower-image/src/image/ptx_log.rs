//! Reads the log of a PTX compiler: resource usage per kernel, warnings, advice.
//!
//! ptxas, nvPTXCompiler and nvJitLink print the same lines (observed with 13.0.88):
//!
//! ```text
//! ptxas info    : Compiling entry function 'k' for 'sm_90'
//! ptxas info    : Function properties for k
//!     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
//! ptxas info    : Used 31 registers, used 1 barriers, 8 bytes cumulative stack size, 2176 bytes smem, 560 bytes cmem[0]
//! ptxas warning : ...
//! ```

use std::collections::HashMap;

use serde::Serialize;

/// What the log says about one function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FunctionUsage {
    /// Symbol name.
    pub name: String,
    /// Whether it is a kernel; otherwise a device function.
    pub kernel: bool,
    /// The chip it was compiled for, if printed.
    pub chip: Option<String>,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Named barriers.
    pub barriers: Option<u32>,
    /// Bytes of stack frame per thread.
    pub stack_frame: Option<u32>,
    /// Bytes stored by spilling, per thread.
    pub spill_stores: Option<u32>,
    /// Bytes loaded by spilling, per thread.
    pub spill_loads: Option<u32>,
    /// Bytes of stack including what is called.
    pub cumulative_stack: Option<u32>,
    /// Bytes of static shared memory, without what the system reserves.
    pub shared: Option<u32>,
    /// Bytes of local memory.
    pub local: Option<u32>,
    /// Bytes used in constant banks, as (bank, bytes).
    pub constants: Vec<(u32, u32)>,
}

/// A log, taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PtxLog {
    /// One entry per function, in the order of the log.
    pub functions: Vec<FunctionUsage>,
    /// Warnings, without the tool's prefix.
    pub warnings: Vec<String>,
    /// Advice on performance or deprecation ("Potential Performance Loss: ..."), without the prefix.
    pub advisories: Vec<String>,
    /// Errors, without the tool's prefix but with their line number.
    pub errors: Vec<String>,
}

impl PtxLog {
    /// What the log says about the function `name`.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&FunctionUsage> {
        self.functions.iter().find(|function| function.name == name)
    }
}

/// The log without what changes from run to run (compile times), so that reports can be compared.
#[must_use]
pub fn without_times(log: &str) -> String {
    let mut text = String::with_capacity(log.len());
    for line in log.lines().filter(|line| !line.contains("Compile time = ")) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text
}

/// Takes a log apart. Lines of unknown form are passed over.
#[must_use]
pub fn parse(log: &str) -> PtxLog {
    let mut parsed = PtxLog::default();
    let mut places = HashMap::new();
    // Index of the function that the properties lines speak of, and of the one being compiled.
    let mut described: Option<usize> = None;
    let mut compiled: Option<usize> = None;
    for line in log.lines() {
        let Some((severity, message)) = tagged(line) else {
            if let Some(function) = described.and_then(|index| parsed.functions.get_mut(index)) {
                read_amounts(function, line);
            }
            continue;
        };
        match severity {
            Severity::Info => {
                if let Some(rest) = message.strip_prefix("Compiling entry function ") {
                    compiled = begin(&mut parsed, &mut places, rest, true);
                    described = compiled;
                } else if let Some(rest) = message.strip_prefix("Function properties for ") {
                    described = Some(entry(&mut parsed, &mut places, rest.trim().trim_matches('\''), false));
                    compiled = compiled.or(described);
                } else if message.starts_with("Used ") {
                    if let Some(function) = compiled.and_then(|index| parsed.functions.get_mut(index)) {
                        read_amounts(function, message);
                    }
                } else if message.starts_with("Compile time") {
                    compiled = None;
                } else if is_advice(message) {
                    parsed.advisories.push(message.to_owned());
                }
            }
            Severity::Warning if is_advice(message) => parsed.advisories.push(message.to_owned()),
            Severity::Warning => parsed.warnings.push(message.to_owned()),
            Severity::Error => parsed.errors.push(message.to_owned()),
        }
    }
    parsed
}

#[derive(Clone, Copy)]
enum Severity {
    Info,
    Warning,
    Error,
}

/// Splits `ptxas info    : text`, `ptxas FILE, line 3; error   : text` and `info    : text`.
fn tagged(line: &str) -> Option<(Severity, &str)> {
    let (head, message) = line.split_once(" : ").or_else(|| {
        // "ptxas warning : text" has one blank, "error   :" may end a line without text.
        line.strip_suffix(" :").map(|head| (head, ""))
    })?;
    let severity = match head.rsplit([' ', ';']).find(|word| !word.is_empty())? {
        "info" => Severity::Info,
        "warning" | "Warning" => Severity::Warning,
        "error" | "fatal" => Severity::Error,
        _ => return None,
    };
    let message = message.trim();
    if let (Severity::Error, Some(start)) = (severity, head.find("line ")) {
        // Keep "line 41; error : text" as one piece.
        return Some((severity, line.get(start..).unwrap_or(message).trim()));
    }
    Some((severity, message))
}

fn is_advice(message: &str) -> bool {
    message.contains("Potential Performance Loss") || message.starts_with("Advisory") || message.contains("(advisory)")
}

/// Reads `'k' for 'sm_90'`.
fn begin<'l>(parsed: &mut PtxLog, places: &mut HashMap<&'l str, usize>, rest: &'l str, kernel: bool) -> Option<usize> {
    let mut quoted = rest.split('\'');
    let name = quoted.nth(1)?;
    let chip = quoted.nth(1).map(ToOwned::to_owned);
    let index = entry(parsed, places, name, kernel);
    if let Some(function) = parsed.functions.get_mut(index) {
        function.chip = chip;
    }
    Some(index)
}

/// `places` has the functions by name.
fn entry<'l>(parsed: &mut PtxLog, places: &mut HashMap<&'l str, usize>, name: &'l str, kernel: bool) -> usize {
    let index = *places.entry(name).or_insert_with(|| {
        parsed.functions.push(FunctionUsage {
            name: name.to_owned(),
            ..FunctionUsage::default()
        });
        parsed.functions.len() - 1
    });
    if let Some(function) = parsed.functions.get_mut(index) {
        function.kernel |= kernel;
    }
    index
}

/// Reads a list of amounts separated by commas.
fn read_amounts(function: &mut FunctionUsage, text: &str) {
    for part in text.split(',') {
        let part = part.trim().trim_start_matches("Used ").trim_start_matches("used ");
        let Some((number, unit)) = part.split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        let unit = unit.trim_start_matches("bytes ").trim();
        match unit {
            "registers" => function.registers = Some(number),
            "barriers" => function.barriers = Some(number),
            "stack frame" => function.stack_frame = Some(number),
            "spill stores" => function.spill_stores = Some(number),
            "spill loads" => function.spill_loads = Some(number),
            "cumulative stack size" => function.cumulative_stack = Some(number),
            "smem" => function.shared = Some(number),
            "lmem" => function.local = Some(number),
            _ => {
                let bank = unit
                    .strip_prefix("cmem[")
                    .and_then(|rest| rest.strip_suffix(']'))
                    .and_then(|bank| bank.parse().ok());
                if let Some(bank) = bank {
                    function.constants.push((bank, number));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpulower_testing::nvidia::{assemble, rich_module};

    #[test]
    fn every_amount_of_a_real_log() {
        let ptx = rich_module("7.8", "sm_90");
        let log = assemble(&ptx, &["--gpu-name=sm_90", "-v"]).log;
        let parsed = parse(&log);
        assert_eq!(parsed.functions.len(), 4, "{log}");
        assert!(parsed.functions.iter().all(|function| function.kernel));
        assert!(parsed.functions.iter().all(|function| function.registers.is_some()));
        let spilling = parsed.function("spilling").unwrap();
        assert!(spilling.registers.unwrap() <= 24, "{log}");
        assert!(
            spilling.spill_stores.unwrap() > 0 && spilling.spill_loads.unwrap() > 0,
            "{log}"
        );
        assert_eq!(parsed.function("plain").unwrap().spill_stores, Some(0));
        assert_eq!(parsed.function("shared_memory").unwrap().shared, Some(2176));
        assert_eq!(parsed.function("shared_memory").unwrap().barriers, Some(1));
        assert_eq!(parsed.function("local_memory").unwrap().stack_frame, Some(256));
        assert_eq!(spilling.chip.as_deref(), Some("sm_90"));
        assert!(log.contains("Compile time"));
        assert!(!without_times(&log).contains("Compile time"));
        assert_eq!(parse(&without_times(&log)), parsed);
    }

    #[test]
    fn device_functions_do_not_disturb_their_kernel() {
        let log = "ptxas info    : Compiling entry function 'k' for 'sm_80'\n\
                   ptxas info    : Function properties for k\n\
                   \x20   16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
                   ptxas info    : Function properties for helper\n\
                   \x20   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 24 registers, used 1 barriers, 16 bytes cumulative stack size, 352 bytes cmem[0], 8 bytes cmem[2]\n";
        let parsed = parse(log);
        let kernel = parsed.function("k").unwrap();
        assert_eq!((kernel.registers, kernel.spill_loads), (Some(24), Some(8)));
        assert_eq!(kernel.constants, [(0, 352), (2, 8)]);
        assert_eq!(kernel.cumulative_stack, Some(16));
        let helper = parsed.function("helper").unwrap();
        assert!(!helper.kernel && helper.registers.is_none());
    }

    #[test]
    fn messages_by_severity() {
        let log = "ptxas warning :  .debug_info section not found\n\
                   ptxas info    : (C7510) Potential Performance Loss: wgmma serialized\n\
                   ptxas /dev/stdin, line 41; error   : Not a name of any known instruction: 'fmx'\n\
                   ptxas fatal   : Ptx assembly aborted due to errors\n\
                   garbage\n";
        let parsed = parse(log);
        assert_eq!(parsed.warnings, [".debug_info section not found"]);
        assert_eq!(parsed.advisories.len(), 1);
        assert_eq!(
            parsed.errors,
            [
                "line 41; error   : Not a name of any known instruction: 'fmx'",
                "Ptx assembly aborted due to errors"
            ]
        );
        assert_eq!(parse(""), PtxLog::default());
    }
}
