//! What `gpulower inspect` shows on request: parameters of kernels, sections of ELF files.

use gpulower::inspect::{Container, Inspection, Kernel, SectionSize};

use super::{
    inspect_text::percent,
    message::printable,
    table::{aligned, wrapped},
};

/// The parameters and launch limits of every kernel.
pub fn parameters(inspection: &Inspection) -> String {
    let mut text = String::new();
    for image in &inspection.images {
        for kernel in &image.kernels {
            if !text.is_empty() {
                text.push('\n');
            }
            let limits = limits(kernel);
            let limits = if limits.is_empty() {
                String::new()
            } else {
                format!(": {}", limits.join(", "))
            };
            text.push_str(&wrapped(
                &format!("{}, image {}{limits}", printable(kernel.name()), image.number),
                0,
            ));
            if kernel.parameters().is_empty() {
                text.push_str("  no parameters\n");
                continue;
            }
            // A cubin does not say of which kind they are.
            let has_kinds = kernel.parameters().iter().any(|parameter| parameter.kind.is_some());
            let mut rows = vec![row(
                ["  parameter", "kind", "offset", "size"].map(str::to_owned),
                has_kinds,
            )];
            rows.extend(kernel.parameters().iter().map(|parameter| {
                let name = parameter
                    .name
                    .as_deref()
                    .map_or_else(|| parameter.ordinal.to_string(), printable);
                let cells = [
                    format!("  {name}"),
                    parameter.kind.clone().unwrap_or_default(),
                    parameter.offset.to_string(),
                    parameter.size.to_string(),
                ];
                row(cells, has_kinds)
            }));
            text.push_str(&aligned(rows, if has_kinds { 2 } else { 1 }));
        }
    }
    text
}

/// Name, kind, offset and size, or all but the kind.
fn row([name, kind, offset, size]: [String; 4], has_kind: bool) -> Vec<String> {
    let kind = has_kind.then_some(kind);
    [Some(name), kind, Some(offset), Some(size)]
        .into_iter()
        .flatten()
        .collect()
}

/// The launch limits of a kernel, in words.
fn limits(kernel: &Kernel) -> Vec<String> {
    let shape = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let (threads, block, cluster, rank, registers) = match kernel {
        Kernel::Machine(kernel) => (
            kernel.max_threads_per_block,
            kernel.required_block,
            kernel.cluster,
            kernel.max_cluster_rank,
            None,
        ),
        Kernel::Ptx(kernel) => (
            kernel.max_threads_per_block,
            kernel.required_block,
            kernel.cluster,
            kernel.max_cluster_rank,
            kernel.max_registers,
        ),
    };
    let limits = [
        block.map(|block| format!("blocks of {} threads", shape(block))),
        threads
            .filter(|_| block.is_none())
            .map(|threads| format!("at most {threads} threads in a block")),
        cluster.map(|cluster| format!("clusters of {} blocks", shape(cluster))),
        rank.map(|rank| format!("at most {rank} blocks in a cluster")),
        registers.map(|registers| format!("at most {registers} registers")),
    ];
    limits.into_iter().flatten().collect()
}

/// The sections of every ELF file and image.
pub fn sections(inspection: &Inspection) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (index, container) in inspection
        .containers
        .iter()
        .enumerate()
        .filter(|(_, one)| !one.sections.is_empty())
    {
        let name = inspection.container_name(index);
        parts.push(section_table(&name, &container.sections, container_size(container)));
    }
    for image in inspection.images.iter().filter(|image| !image.sections.is_empty()) {
        parts.push(section_table(
            &inspection.image_name(image),
            &image.sections,
            image.bytes,
        ));
    }
    parts.join("\n")
}

fn container_size(container: &Container) -> u64 {
    container.uncompressed_bytes.unwrap_or(container.bytes)
}

/// Sections of a file, the largest first, and what is between them.
fn section_table(name: &str, sections: &[SectionSize], file: u64) -> String {
    let mut sorted: Vec<&SectionSize> = sections.iter().filter(|section| section.bytes > 0).collect();
    sorted.sort_by_key(|section| (!section.in_file, std::cmp::Reverse(section.bytes)));
    let mut rows = vec![["section", "", "bytes", "share"].map(str::to_owned).to_vec()];
    rows.extend(sorted.iter().map(|section| {
        let note = match (section.device, section.in_file) {
            (true, _) => "device code",
            (false, false) => "in memory alone",
            (false, true) => "",
        };
        let share = if section.in_file {
            percent(section.bytes, file)
        } else {
            String::new()
        };
        vec![
            printable(&section.name),
            note.to_owned(),
            section.bytes.to_string(),
            share,
        ]
    }));
    let in_file = sections.iter().filter(|section| section.in_file);
    let rest = file.saturating_sub(in_file.fold(0u64, |sum, section| sum.saturating_add(section.bytes)));
    let headers = "headers and padding".to_owned();
    rows.push(vec![headers, String::new(), rest.to_string(), percent(rest, file)]);
    wrapped(&format!("{name}, {file} bytes:"), 0) + &aligned(rows, 2)
}
