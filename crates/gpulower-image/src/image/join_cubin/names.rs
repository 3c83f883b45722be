//! The names in a cubin: which belong to the module as a whole, and the order in which `ptxas` enters them.
//!
//! `ptxas` enters names, sections and symbols one kernel after the other, last kernel of the PTX first. What the whole
//! module has once is entered by the first kernel that needs it, or when all kernels are done.

/// What a module has once, entered before or with the first kernel that needs it.
const SHARED: [&str; 19] = [
    "",
    ".shstrtab",
    ".strtab",
    ".symtab",
    ".symtab_shndx",
    ".note.nv.tkinfo",
    ".note.nv.cuinfo",
    ".note.nv.cuver",
    ".nv.info",
    ".nv.compat",
    ".nv.uft.entry",
    ".nv.shared.reserved.0",
    ".nv.reservedSmem.offset0",
    "__nv_reservedSMEM_offset_0_alias",
    ".nv.reservedSmem.cap",
    "__nv_reservedSMEM_gb10b_war_var",
    // Names of symbols that CUDA 11.8 and 12.0 dropped.
    "_param",
    "__ocg_const",
    DEAD,
];

/// What a module has once, entered after its kernels.
const LATE: [&str; 26] = [
    ".debug_frame",
    ".debug_line",
    ".rel.debug_line",
    ".rela.debug_line",
    ".nv_debug_line_sass",
    ".rel.nv_debug_line_sass",
    ".rela.nv_debug_line_sass",
    ".nv_debug_ptx_txt",
    ".rel.nv_debug_ptx_txt",
    ".rela.nv_debug_ptx_txt",
    ".nv.merc.debug_line",
    ".nv.merc.nv_debug_line_sass",
    ".nv.merc.nv_debug_ptx_txt",
    ".nv.merc.rela.debug_line",
    ".nv.merc.rela.nv_debug_line_sass",
    ".rel.debug_frame",
    ".rela.debug_frame",
    ".nv.callgraph",
    ".nv.prototype",
    ".nv.rel.action",
    ".nv.merc.debug_frame",
    ".nv.merc.nv.info",
    ".nv.merc.nv.callgraph",
    ".nv.merc.rela.debug_frame",
    ".nv.merc.nv.shared.reserved.0",
    ".nv.merc.symtab",
];

/// Entered after the kernels, by a module that has variables.
const LATE_DATA: [&str; 4] = [
    ".rel.nv.constant.pic",
    ".rela.nv.constant.pic",
    ".rel.nv.constant4",
    ".rela.nv.constant4",
];

/// Sections of the variables of a module. Code has offsets in them without relocations, so that two cannot be merged.
const DATA: [&str; 4] = [".nv.global", ".nv.global.init", ".nv.constant3", ".nv.constant4"];

/// Stands for a symbol that `ptxas` dropped after it had entered it: its name is zeros.
pub(super) const DEAD: &str = "\0dropped";

/// How many names the parts of a module may have together.
pub(super) const MOST_SHARED: usize = SHARED.len() + LATE.len();

/// Which one of the names it is that the parts of a module have together. `None` for one that belongs to a part.
pub(super) fn shared(name: &str) -> Option<usize> {
    if !may_be_shared(name) {
        return None;
    }
    SHARED.iter().chain(&LATE).position(|shared| *shared == name)
}

/// Whether this, which a module has once, is entered with its reserved shared memory.
pub(super) fn reserves_memory(name: &str) -> bool {
    const RESERVED: [&str; 6] = [
        ".nv.reservedSmem.offset0",
        ".nv.shared.reserved.0",
        "__nv_reservedSMEM_offset_0_alias",
        ".nv.reservedSmem.cap",
        "__nv_reservedSMEM_gb10b_war_var",
        DEAD,
    ];
    RESERVED.contains(&name)
}

/// Whether the parts of a module have this together.
pub(super) fn is_shared(name: &str) -> bool {
    shared(name).is_some()
}

/// Whether one of [`SHARED`] and [`LATE`] is as long and has the same last byte. Kernels have many names, and few of them do.
fn may_be_shared(name: &str) -> bool {
    /// By the length, the last bytes.
    const ENDS: [u128; 33] = {
        let mut ends = [0; 33];
        let mut index = 0;
        while index < MOST_SHARED {
            let name = if index < SHARED.len() {
                SHARED[index]
            } else {
                LATE[index - SHARED.len()]
            };
            if let [.., last] = name.as_bytes() {
                ends[name.len()] |= 1 << *last;
            }
            index += 1;
        }
        ends
    };
    match name.as_bytes() {
        [] => true,
        [.., last] => ENDS
            .get(name.len())
            .is_some_and(|ends| last.is_ascii() && ends >> last & 1 == 1),
    }
}

/// Whether this is there if the module has variables.
pub(super) fn is_data(name: &str) -> bool {
    DATA.contains(&name)
}

/// Whether zeros after this name are part of it: `ptxas` shortens the names of constant banks in place.
pub(super) fn is_shortened(name: &str) -> bool {
    name.contains(".nv.constant")
}

/// Phases in which names and symbols are entered: in each, one kernel follows the other.
#[derive(Default)]
pub(super) struct NamePhases {
    kernels_are_done: bool,
}

impl NamePhases {
    /// The phase of the next name.
    pub(super) fn of(&mut self, name: &str) -> u8 {
        if let Some(phase) = mercury_phase(name, false) {
            return phase;
        }
        if (may_be_shared(name) && LATE.contains(&name)) || (self.kernels_are_done && LATE_DATA.contains(&name)) {
            self.kernels_are_done = true;
            return 1;
        }
        match name {
            _ if !self.kernels_are_done => 0,
            // Shorter names are entered for them first, or last.
            ".nv.constant.pic" | ".nv.constant.user" => 5,
            _ if name.starts_with(".nv.constant0.") => 4,
            _ if name.starts_with(".nv.constant") => 3,
            _ => 2,
        }
    }
}

/// The phases of sections, which the file has by kind.
#[derive(Default)]
pub(super) struct SectionPhases {
    code_was_seen: bool,
    /// Whether the symbols of Mercury code come before the code (CUDA 13.5).
    symbols_are_first: Option<bool>,
}

impl SectionPhases {
    /// The phase of the next section; `None` if there is no telling what it is.
    pub(super) fn of(&mut self, name: &str) -> Option<u8> {
        if name.starts_with(".nv.merc.") || name.starts_with(".nv.capmerc.") {
            let symbols_are_first = *self.symbols_are_first.get_or_insert(name == ".nv.merc.symtab");
            return mercury_phase(name, symbols_are_first);
        }
        Some(match name {
            "" | ".shstrtab" | ".strtab" | ".symtab" => 0,
            ".debug_frame" | ".debug_line" | ".nv_debug_line_sass" | ".nv_debug_ptx_txt" => 1,
            ".note.nv.tkinfo" | ".note.nv.cuinfo" | ".note.nv.cuver" => 2,
            ".nv.info" | ".nv.compat" => 3,
            ".nv.callgraph" => 4,
            ".nv.rel.action" => 6,
            ".rel.nv.constant4" | ".rela.nv.constant4" => 9,
            ".rel.debug_frame" | ".rel.debug_line" | ".rel.nv_debug_line_sass" => 9,
            ".rela.debug_frame" | ".rela.debug_line" | ".rela.nv_debug_line_sass" => 9,
            ".nv.constant3" | ".nv.constant4" => 10,
            ".nv.global" | ".nv.global.init" => 12,
            _ => self.of_kernel(name)?,
        })
    }

    fn of_kernel(&mut self, name: &str) -> Option<u8> {
        const PHASES: [(&str, u8); 8] = [
            (".nv.info.", 3),
            (".rel.text.", 7),
            (".rela.text.", 7),
            (".rel.nv.constant2.", 7),
            (".rela.nv.constant2.", 7),
            (".nv.constant2.", 10),
            (".text.", 11),
            (".nv.shared.", 12),
        ];
        self.code_was_seen |= name.starts_with(".text.");
        if name.starts_with(".nv.constant0.") {
            return Some(if self.code_was_seen { 13 } else { 10 });
        }
        phase(&PHASES, name)
    }
}

/// The phases of what belongs to the intermediate code of sm_100 and newer, which follow all others.
fn mercury_phase(name: &str, symbols_are_first: bool) -> Option<u8> {
    if !name.starts_with(".nv.merc.") && !name.starts_with(".nv.capmerc.") {
        return None;
    }
    const PHASES: [(&str, u8); 6] = [
        (".nv.merc.nv.info.", 23),
        (".nv.merc.rela.text.", 25),
        (".nv.merc.rela.nv.constant.", 25),
        (".nv.merc.nv.constant.", 27),
        (".nv.capmerc.text.", 28),
        // The symbol table is in one place or the other.
        (".nv.merc.symtab", 31),
    ];
    Some(match name {
        ".nv.merc.symtab" if symbols_are_first => 20,
        ".nv.merc.debug_frame" | ".nv.merc.debug_line" => 21,
        ".nv.merc.nv_debug_line_sass" | ".nv.merc.nv_debug_ptx_txt" => 21,
        ".nv.merc.nv.info" => 22,
        ".nv.merc.nv.callgraph" => 24,
        ".nv.merc.rela.debug_frame" | ".nv.merc.rela.nv.constant.pic" => 26,
        ".nv.merc.rela.debug_line" | ".nv.merc.rela.nv_debug_line_sass" => 26,
        ".nv.merc.nv.global.init" => 29,
        ".nv.merc.nv.shared.reserved.0" => 30,
        _ if name.starts_with(".nv.capmerc.text.") && !symbols_are_first => 19,
        _ => phase(&PHASES, name)?,
    })
}

fn phase(phases: &[(&str, u8)], name: &str) -> Option<u8> {
    let found = phases.iter().find(|(start, _)| name.starts_with(start));
    found.map(|&(_, phase)| phase)
}

/// The number in the name of a function that `ptxas` made, and what follows it: `$__internal_3_$__cuda_sm3x_div_...`. They
/// are numbered across the module.
pub(super) fn internal_number(name: &str) -> Option<(usize, &str)> {
    let (number, rest) = name.strip_prefix("$__internal_")?.split_once('_')?;
    Some((number.parse().ok()?, rest))
}

/// A name in which a kernel is called otherwise: the kernel's own, that of its sections (`.text.KERNEL`) and of its functions
/// (`$KERNEL$function`).
pub(super) fn rename(name: &str, from: &str, to: &str) -> Option<String> {
    if name == from {
        return Some(to.to_owned());
    }
    if let Some(kind) = name.strip_suffix(from)
        && kind.starts_with('.')
        && kind.ends_with('.')
    {
        return Some([kind, to].concat());
    }
    let function = name.strip_prefix('$')?.strip_prefix(from)?.strip_prefix('$')?;
    Some(["$", to, "$", function].concat())
}
