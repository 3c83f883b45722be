//! Occupancy as SVG, for reports and notebooks: a bar for a table, and a picture with what every resource allows.
//!
//! Text has the colour of what is around it, so that both can be seen on light and dark pages.

use std::fmt::Write;

use super::Occupancy;

const FILLED: &str = "#27ae60";
const EMPTY: &str = "#bbb6";
/// Of the resource that is scarce.
const SCARCE: &str = "#d35400";
const ENOUGH: &str = "#7f8c8d";

/// Warps or waves that a square stands for.
const SQUARE: u32 = 4;

/// One square for each four warps or waves that there can be, filled as far as they are there.
#[must_use]
pub fn bar(occupancy: &Occupancy) -> String {
    let width = occupancy.most_waves.div_ceil(SQUARE) * 7;
    format!(
        "<svg width=\"{width}\" height=\"10\" role=\"img\"><title>{occupancy}</title>{}</svg>",
        squares(occupancy)
    )
}

fn squares(occupancy: &Occupancy) -> String {
    let mut squares = String::new();
    for index in 0..occupancy.most_waves.div_ceil(SQUARE) {
        let x = index * 7;
        let _ = write!(
            squares,
            "<rect x=\"{x}\" y=\"0\" width=\"6\" height=\"10\" rx=\"1\" fill=\"{EMPTY}\"/>"
        );
        // A square is filled in part where fewer than its warps are there.
        let filled = occupancy.waves.saturating_sub(index * SQUARE).min(SQUARE);
        if filled > 0 {
            let width = f64::from(filled) * 6.0 / f64::from(SQUARE);
            let _ = write!(
                squares,
                "<rect x=\"{x}\" y=\"0\" width=\"{width}\" height=\"10\" rx=\"1\" fill=\"{FILLED}\"/>"
            );
        }
    }
    squares
}

/// The bar, what it says, and below it the blocks that each resource allows, with the scarce one in another colour.
#[must_use]
pub fn picture(occupancy: &Occupancy) -> String {
    /// Of a row, the names, and the longest bar.
    const ROW: usize = 16;
    const NAMES: u32 = 112;
    const LONGEST: u32 = 180;
    let top = 38;
    let height = top + ROW * occupancy.blocks_by.len() + 2;
    // Bars that are longer than twice what counts say nothing more.
    let shown = |blocks: u32| blocks.min(occupancy.blocks.saturating_mul(4).max(1));
    let scale = occupancy
        .blocks_by
        .iter()
        .map(|&(_, blocks)| shown(blocks))
        .max()
        .unwrap_or(1)
        .max(1);
    let mut text = format!(
        "<svg class=\"occupancy\" viewBox=\"0 0 380 {height}\" width=\"380\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"11\" fill=\"currentColor\"><title>{occupancy}</title>{}\
         <text x=\"0\" y=\"26\">{}% of {} {}; blocks of {} threads that fit:</text>",
        squares(occupancy),
        occupancy.percent(),
        occupancy.most_waves,
        occupancy.name(super::Resource::Waves),
        occupancy.threads,
    );
    for (row, &(resource, blocks)) in occupancy.blocks_by.iter().enumerate() {
        let y = top + ROW * row;
        let (baseline, is_limit) = (y + 9, resource == occupancy.limit);
        let width = (shown(blocks) * LONGEST / scale).max(1);
        let colour = if is_limit { SCARCE } else { ENOUGH };
        let weight = if is_limit { " font-weight=\"700\"" } else { "" };
        let more = if shown(blocks) < blocks { "+" } else { "" };
        let _ = write!(
            text,
            "<text x=\"0\" y=\"{baseline}\"{weight}>{}</text><rect x=\"{NAMES}\" y=\"{y}\" width=\"{width}\" height=\"11\" \
             rx=\"2\" fill=\"{colour}\"/><text x=\"{}\" y=\"{baseline}\"{weight}>{}{more}{}</text>",
            occupancy.name(resource),
            NAMES + width + 6,
            shown(blocks),
            if is_limit { " — the limit" } else { "" },
        );
    }
    text.push_str("</svg>");
    text
}
