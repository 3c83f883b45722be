//! Operations of the `math` dialect that MLIR 22's conversions for one vendor or both do not know, or lower to something
//! that LLVM cannot select. Each becomes a call of a small function in `arith` and `math`, written as MLIR below, which
//! LLVM inlines.

use melior::{
    Context,
    ir::{
        Attribute, Identifier, Module, Type, ValueLike,
        attribute::FlatSymbolRefAttribute,
        operation::{OperationBuilder, OperationLike, OperationRef},
    },
};
use std::collections::BTreeSet;

use super::{float_power, lower::name_of};
use crate::{
    bridge::{
        edit::{Edits, into_operations},
        mlir::{operations_below, shown},
    },
    target::{NvidiaTarget, Target},
};

/// Rewrites the operations in question inside the `gpu.module` of `module`.
pub(super) fn expand<'c, 'b>(
    context: &'c Context,
    module: OperationRef<'c, 'b>,
    edits: &mut Edits<'c, 'b>,
    target: &Target,
) -> Result<(), String> {
    let amd = matches!(target, Target::Amd(_));
    let mut written: BTreeSet<String> = BTreeSet::new();
    for operation in operations_below(module) {
        let name = name_of(&operation);
        if let ("math.fma", Some(chip)) = (name.as_str(), target.as_nvidia()) {
            fuse_in_hardware(context, operation, edits, chip)?;
            continue;
        }
        if name == "math.fpowi" && !amd {
            expand_float_power(context, operation, edits, &mut written)?;
            continue;
        }
        let wanted = match name.as_str() {
            "math.clampf" | "math.isnormal" | "math.ipowi" | "math.sincos" => true,
            "math.isinf" => amd,
            _ => false,
        };
        if !wanted {
            continue;
        }
        let Ok(operand) = operation.operand(0) else { continue };
        let shape = Shape::of(operand.r#type());
        let Some(text) = function(&name, &shape) else {
            continue;
        };
        let symbol = shape.symbol(&name);
        if written.insert(symbol.clone()) {
            define(context, operation, edits, &text)?;
        }
        call_instead(context, operation, edits, &symbol)?;
    }
    Ok(())
}

/// Replaces an operation with a call of a function that takes and returns the same.
fn call_instead<'c, 'b>(
    context: &'c Context,
    operation: OperationRef<'c, 'b>,
    edits: &mut Edits<'c, 'b>,
    symbol: &str,
) -> Result<(), String> {
    let results: Vec<Type<'_>> = operation.results().map(|result| result.r#type()).collect();
    let operands: Vec<_> = operation.operands().collect();
    let call = OperationBuilder::new("func.call", operation.location())
        .add_operands(&operands)
        .add_results(&results)
        .add_attributes(&[(
            Identifier::new(context, "callee"),
            FlatSymbolRefAttribute::new(context, symbol).into(),
        )])
        .build()
        .map_err(|error| error.to_string())?;
    edits.replace(operation, call);
    Ok(())
}

/// Puts functions in the place of an integer power, unless it may be approximated: libdevice's takes fewer steps.
fn expand_float_power<'c, 'b>(
    context: &'c Context,
    operation: OperationRef<'c, 'b>,
    edits: &mut Edits<'c, 'b>,
    written: &mut BTreeSet<String>,
) -> Result<(), String> {
    let (Ok(base), Ok(exponent)) = (operation.operand(0), operation.operand(1)) else {
        return Ok(());
    };
    let (base, exponent) = (base.r#type().to_string(), exponent.r#type().to_string());
    // MLIR calls libdevice's with an exponent of any type, and it takes 32 bits.
    let libdevice_takes_it = exponent.trim_end_matches('>').ends_with("i32");
    if may_be_approximated(operation) && libdevice_takes_it {
        return Ok(());
    }
    let Some(functions) = float_power::functions(&base, &exponent) else {
        return Ok(());
    };
    let Some(symbol) = functions.last().map(|(symbol, _)| symbol.clone()) else {
        return Ok(());
    };
    for (symbol, text) in functions {
        if written.insert(symbol) {
            define(context, operation, edits, &text)?;
        }
    }
    call_instead(context, operation, edits, &symbol)
}

/// Whether the operation carries `fastmath<afn>`, or all of the flags.
fn may_be_approximated(operation: OperationRef<'_, '_>) -> bool {
    let flags = operation.attribute("fastmath").map(|flags| flags.to_string());
    let flags = flags.unwrap_or_default();
    let inside = flags.split_once('<').and_then(|(_, rest)| rest.strip_suffix('>'));
    inside.is_some_and(|list| list.split(',').any(|flag| matches!(flag.trim(), "afn" | "fast")))
}

/// Every NVIDIA chip has fused multiply-add for f32 and f64, and later ones for f16 and bf16 (PTX ISA, `fma`): MLIR's
/// conversion would call libdevice for it, through f32 for the short types, which rounds twice.
fn fuse_in_hardware<'c, 'b>(
    context: &'c Context,
    operation: OperationRef<'c, 'b>,
    edits: &mut Edits<'c, 'b>,
    chip: &NvidiaTarget,
) -> Result<(), String> {
    let Ok(operand) = operation.operand(0) else {
        return Ok(());
    };
    let shape = Shape::of(operand.r#type());
    let one_dimension = !shape.vector || shape.truth.matches('x').count() == 1;
    let has_instruction = match shape.element.as_str() {
        "f32" | "f64" => true,
        "f16" => chip.number() >= 53,
        "bf16" => chip.number() >= 80,
        _ => false,
    };
    if !has_instruction || !one_dimension {
        return Ok(());
    }
    let operands: Vec<_> = operation.operands().collect();
    let mut builder = OperationBuilder::new("llvm.intr.fma", operation.location())
        .add_operands(&operands)
        .add_results(&[operand.r#type()]);
    // The flags have the same names in both dialects.
    if let Some(flags) = operation
        .attribute("fastmath")
        .ok()
        .and_then(|flags| Attribute::parse(context, &flags.to_string().replace("#arith.", "#llvm.")))
    {
        builder = builder.add_attributes(&[(Identifier::new(context, "fastmathFlags"), flags)]);
    }
    edits.replace(operation, builder.build().map_err(|error| error.to_string())?);
    Ok(())
}

/// A scalar or vector type, split into the parts that the functions below are written with.
struct Shape {
    /// `f32`, `i16`, ...
    element: String,
    /// The type as MLIR prints it.
    whole: String,
    /// `i1`, or a vector of it.
    truth: String,
    /// Whether it is a vector.
    vector: bool,
}

impl Shape {
    fn of(kind: Type<'_>) -> Self {
        let whole = shown(&kind);
        match whole.strip_prefix("vector<").and_then(|rest| rest.strip_suffix('>')) {
            None => Self {
                element: whole.clone(),
                truth: "i1".to_owned(),
                whole,
                vector: false,
            },
            Some(inside) => {
                // A vector without dimensions is its element's name alone.
                let (dimensions, element) = inside
                    .rsplit_once('x')
                    .map_or(("", inside), |(left, element)| (&inside[..=left.len()], element));
                Self {
                    element: element.to_owned(),
                    truth: format!("vector<{dimensions}i1>"),
                    whole,
                    vector: true,
                }
            }
        }
    }

    fn symbol(&self, operation: &str) -> String {
        let mangled: String = self
            .whole
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        format!("__gpulower_{}_{mangled}", operation.replace('.', "_"))
    }

    /// The attribute of a constant: `dense<1.0> : vector<4xf32>`, or `1.0 : f32`.
    fn constant(&self, value: &str) -> String {
        if self.vector {
            format!("dense<{value}> : {}", self.whole)
        } else {
            format!("{value} : {}", self.whole)
        }
    }

    /// Bits of an integer type.
    fn bits(&self) -> Option<u32> {
        match self.element.as_str() {
            "index" => Some(64),
            other => other.strip_prefix('i')?.parse().ok(),
        }
    }

    /// Bit patterns of infinity and of the smallest normal number (IEEE 754; bfloat16 is the upper half of f32).
    fn float_patterns(&self) -> Option<(&'static str, &'static str)> {
        match self.element.as_str() {
            "f16" => Some(("0x7C00", "0x0400")),
            "bf16" => Some(("0x7F80", "0x0080")),
            "f32" => Some(("0x7F800000", "0x00800000")),
            "f64" => Some(("0x7FF0000000000000", "0x0010000000000000")),
            _ => None,
        }
    }
}

/// The function that computes an operation, as MLIR.
fn function(operation: &str, shape: &Shape) -> Option<String> {
    let symbol = shape.symbol(operation);
    let (whole, truth) = (&shape.whole, &shape.truth);
    let text = match operation {
        "math.isinf" => {
            let (infinity, _) = shape.float_patterns()?;
            format!(
                "func.func private @{symbol}(%x: {whole}) -> {truth} {{
                   %infinity = arith.constant {infinity}
                   %magnitude = math.absf %x : {whole}
                   %result = arith.cmpf oeq, %magnitude, %infinity : {whole}
                   return %result : {truth}
                 }}",
                infinity = shape.constant(infinity),
            )
        }
        "math.isnormal" => {
            let (infinity, smallest) = shape.float_patterns()?;
            format!(
                "func.func private @{symbol}(%x: {whole}) -> {truth} {{
                   %infinity = arith.constant {infinity}
                   %smallest = arith.constant {smallest}
                   %magnitude = math.absf %x : {whole}
                   %finite = arith.cmpf olt, %magnitude, %infinity : {whole}
                   %large = arith.cmpf oge, %magnitude, %smallest : {whole}
                   %result = arith.andi %finite, %large : {truth}
                   return %result : {truth}
                 }}",
                infinity = shape.constant(infinity),
                smallest = shape.constant(smallest),
            )
        }
        // `maxf(minf(value, min), max)`, says MLIR's documentation, and `math-expand-ops` does just that, with the bounds
        // mixed up: any value would become the upper one. The names of the operands, and the conversions to ROCDL and
        // SPIR-V, mean the bounds as they are here. NaN stays NaN.
        "math.clampf" => format!(
            "func.func private @{symbol}(%x: {whole}, %low: {whole}, %high: {whole}) -> {whole} {{
               %bounded = arith.minimumf %x, %high : {whole}
               %result = arith.maximumf %bounded, %low : {whole}
               return %result : {whole}
             }}"
        ),
        "math.sincos" => format!(
            "func.func private @{symbol}(%x: {whole}) -> ({whole}, {whole}) {{
               %sine = math.sin %x : {whole}
               %cosine = math.cos %x : {whole}
               return %sine, %cosine : {whole}, {whole}
             }}"
        ),
        "math.ipowi" => integer_power(shape, &symbol)?,
        _ => return None,
    };
    Some(text)
}

/// Square and multiply. A negative exponent leaves 1 for base 1, 1 or -1 for base -1, and otherwise 0: what is left of
/// the reciprocal (`convert-math-to-funcs` has it so too, but divides by zero for base 0).
fn integer_power(shape: &Shape, symbol: &str) -> Option<String> {
    let bits = shape.bits()?;
    let (whole, truth) = (&shape.whole, &shape.truth);
    let prefix = if shape.vector {
        format!("{truth}, ")
    } else {
        String::new()
    };
    let constants = [("zero", "0"), ("one", "1"), ("minus_one", "-1")]
        .map(|(name, value)| format!("%{name} = arith.constant {}\n", shape.constant(value)))
        .concat();
    let turn = format!(
        "%low = arith.andi %left, %one : {whole}
         %set = arith.cmpi ne, %low, %zero : {whole}
         %product = arith.muli %result, %factor : {whole}
         %next = arith.select %set, %product, %result : {prefix}{whole}
         %squared = arith.muli %factor, %factor : {whole}
         %shifted = arith.shrui %left, %one : {whole}
         scf.yield %next, %squared, %shifted : {whole}, {whole}, {whole}"
    );
    let repeated = if shape.vector {
        // Elements end at different times: every bit of the exponent has its turn.
        format!(
            "%first = arith.constant 0 : index
             %step = arith.constant 1 : index
             %bits = arith.constant {bits} : index
             %power, %square, %rest = scf.for %bit = %first to %bits step %step
                 iter_args(%result = %one, %factor = %base, %left = %exponent) -> ({whole}, {whole}, {whole}) {{
               {turn}
             }}"
        )
    } else {
        format!(
            "%power, %square, %rest = scf.while (%r = %one, %f = %base, %l = %exponent)
                 : ({whole}, {whole}, {whole}) -> ({whole}, {whole}, {whole}) {{
               %more = arith.cmpi ne, %l, %zero : {whole}
               scf.condition(%more) %r, %f, %l : {whole}, {whole}, {whole}
             }} do {{
             ^bb0(%result: {whole}, %factor: {whole}, %left: {whole}):
               {turn}
             }}"
        )
    };
    Some(format!(
        "func.func private @{symbol}(%base: {whole}, %exponent: {whole}) -> {whole} {{
           {constants}
           {repeated}
           %odd_bit = arith.andi %exponent, %one : {whole}
           %odd = arith.cmpi ne, %odd_bit, %zero : {whole}
           %alternating = arith.select %odd, %minus_one, %one : {prefix}{whole}
           %is_one = arith.cmpi eq, %base, %one : {whole}
           %is_minus_one = arith.cmpi eq, %base, %minus_one : {whole}
           %inverse = arith.select %is_minus_one, %alternating, %zero : {prefix}{whole}
           %reciprocal = arith.select %is_one, %one, %inverse : {prefix}{whole}
           %negative = arith.cmpi slt, %exponent, %zero : {whole}
           %result = arith.select %negative, %reciprocal, %power : {prefix}{whole}
           return %result : {whole}
         }}"
    ))
}

/// Puts a function in front of everything else in the `gpu.module` around `operation`.
fn define<'c, 'b>(
    context: &'c Context,
    operation: OperationRef<'c, 'b>,
    edits: &mut Edits<'c, 'b>,
    text: &str,
) -> Result<(), String> {
    let mut parent = operation.parent_operation();
    while let Some(candidate) = parent {
        if name_of(&candidate) == "gpu.module" {
            let source =
                Module::parse(context, text).ok_or_else(|| format!("a built-in function does not parse:\n{text}"))?;
            let function = into_operations(source).ok().and_then(|all| all.into_iter().next());
            edits.prepend(candidate, function.ok_or("no function in a built-in text")?);
            return Ok(());
        }
        parent = candidate.parent_operation();
    }
    Err("operation outside of a gpu.module".to_owned())
}
