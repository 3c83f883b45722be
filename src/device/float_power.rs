//! `math.fpowi` for NVIDIA: a floating-point number to the power of an integer.
//!
//! libdevice's `__nv_powi` multiplies, and each multiplication rounds: of 40 factors some 30 units in the last place are wrong,
//! and a negative power is 0 where the positive one overflows. Here the factors are kept as the sum of two numbers of their
//! type, with their exponents apart, so that nothing overflows or gets lost before the end. What is exact stays exact.

/// The functions that compute it, as MLIR: the last one is the operation's, and calls those before it. What a text has behind
/// its first function are declarations.
pub(super) fn functions(base: &str, exponent: &str) -> Option<Vec<(String, String)>> {
    let exponent_bits: u32 = element(exponent).strip_prefix('i')?.parse().ok()?;
    if !(8..=64).contains(&exponent_bits) {
        return None;
    }
    let (number, integer) = (element(base), element(exponent));
    let mut functions = match number {
        "f32" | "f64" => vec![(symbol(number, integer), scalar(number, integer)?)],
        // Computed in f32, which is exact enough for one more rounding.
        "f16" | "bf16" => vec![
            (symbol("f32", integer), scalar("f32", integer)?),
            (symbol(number, integer), through_f32(number, integer)),
        ],
        _ => return None,
    };
    if base.starts_with("vector<") {
        functions.push((symbol(base, exponent), of_elements(base, exponent)?));
    }
    Some(functions)
}

/// The element of a vector, or a scalar itself.
fn element(kind: &str) -> &str {
    let Some(inside) = kind.strip_prefix("vector<").and_then(|rest| rest.strip_suffix('>')) else {
        return kind;
    };
    inside.rsplit_once('x').map_or(inside, |(_, element)| element)
}

fn symbol(base: &str, exponent: &str) -> String {
    let mangled: String = format!("{base}_{exponent}")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("__gpulower_math_fpowi_{mangled}")
}

fn through_f32(number: &str, integer: &str) -> String {
    format!(
        "func.func private @{name}(%x: {number}, %n: {integer}) -> {number} {{
           %wide = arith.extf %x : {number} to f32
           %power = func.call @{wide}(%wide, %n) : (f32, {integer}) -> f32
           %result = arith.truncf %power : f32 to {number}
           return %result : {number}
         }}
         {callee}",
        callee = declaration("f32", integer),
        name = symbol(number, integer),
        wide = symbol("f32", integer),
    )
}

/// Element after element, as each takes as many turns as its exponent has bits.
fn of_elements(base: &str, exponent: &str) -> Option<String> {
    let inside = base.strip_prefix("vector<")?.strip_suffix('>')?;
    let mut sizes: Vec<usize> = Vec::new();
    for size in inside.split('x').filter(|part| *part != element(base)) {
        // What is scalable has no number of elements.
        sizes.push(size.parse().ok()?);
    }
    let (number, integer) = (element(base), element(exponent));
    let mut text = format!(
        "func.func private @{name}(%x: {base}, %n: {exponent}) -> {base} {{
           %r0 = arith.constant dense<0.0> : {base}\n",
        name = symbol(base, exponent),
    );
    let count: usize = sizes.iter().product();
    for place in 0..count {
        let mut rest = place;
        let mut position: Vec<String> = Vec::new();
        for size in sizes.iter().rev() {
            position.insert(0, (rest % size).to_string());
            rest /= size;
        }
        let position = position.join(", ");
        text += &format!(
            "%x{place} = vector.extract %x[{position}] : {number} from {base}
             %n{place} = vector.extract %n[{position}] : {integer} from {exponent}
             %p{place} = func.call @{scalar}(%x{place}, %n{place}) : ({number}, {integer}) -> {number}
             %r{next} = vector.insert %p{place}, %r{place} [{position}] : {number} into {base}\n",
            scalar = symbol(number, integer),
            next = place + 1,
        );
    }
    text += &format!("return %r{count} : {base}\n}}\n{}", declaration(number, integer));
    Some(text)
}

/// What a text needs behind the function that it is for, to be a module that is valid on its own.
fn declaration(number: &str, integer: &str) -> String {
    format!(
        "func.func private @{name}({number}, {integer}) -> {number}",
        name = symbol(number, integer)
    )
}

/// What is known of a format (IEEE 754).
struct Format {
    /// An integer type of as many bits.
    bits: &'static str,
    /// Bits of the fraction.
    fraction: u32,
    /// What is added to exponents.
    bias: u32,
    /// The bits of all but the sign.
    magnitude: &'static str,
    /// The smallest normal number.
    smallest: &'static str,
    infinity: &'static str,
    /// A power of two that makes every subnormal number a normal one, and its exponent.
    raised: (&'static str, u32),
    /// An exponent whose power of two is 0 or infinity, and half of which is an exponent of a normal number.
    beyond: u32,
}

const F32: Format = Format {
    bits: "i32",
    fraction: 23,
    bias: 127,
    magnitude: "0x7FFFFFFF",
    smallest: "0x00800000",
    infinity: "0x7F800000",
    raised: ("16777216.0", 24),
    beyond: 250,
};

const F64: Format = Format {
    bits: "i64",
    fraction: 52,
    bias: 1023,
    magnitude: "0x7FFFFFFFFFFFFFFF",
    smallest: "0x0010000000000000",
    infinity: "0x7FF0000000000000",
    raised: ("9007199254740992.0", 53),
    beyond: 2000,
};

/// A number is `(high + low) * 2^exponent`, `high` from 1 to 2.
fn scalar(number: &str, integer: &str) -> Option<String> {
    let format = match number {
        "f32" => F32,
        "f64" => F64,
        _ => return None,
    };
    let name = symbol(number, integer);
    let general = general(&format, number, integer);
    // With a few factors rounding costs no more than a unit, and these are the powers that kernels have many of.
    Some(format!(
        "func.func private @{name}(%x: {number}, %n: {integer}) -> {number} {{
           %zero_n = arith.constant 0 : {integer}
           %one_n = arith.constant 1 : {integer}
           %two_n = arith.constant 2 : {integer}
           %four_n = arith.constant 4 : {integer}
           %one = arith.constant 1.0 : {number}
           %few = arith.cmpi ult, %n, %four_n : {integer}
           %result = scf.if %few -> ({number}) {{
             %square = arith.mulf %x, %x : {number}
             %cube = arith.mulf %square, %x : {number}
             %is_zero = arith.cmpi eq, %n, %zero_n : {integer}
             %is_one = arith.cmpi eq, %n, %one_n : {integer}
             %is_two = arith.cmpi eq, %n, %two_n : {integer}
             %second = arith.select %is_two, %square, %cube : {number}
             %first = arith.select %is_one, %x, %second : {number}
             %small = arith.select %is_zero, %one, %first : {number}
             scf.yield %small : {number}
           }} else {{
             {general}
           }}
           return %result : {number}
         }}"
    ))
}

/// Square and multiply; then the reciprocal, if the exponent is negative; then the exponent, the special values, the sign.
fn general(format: &Format, number: &str, integer: &str) -> String {
    let Format {
        bits,
        fraction,
        bias,
        magnitude,
        smallest,
        infinity,
        raised: (raise, raised_by),
        beyond,
    } = format;
    let as_exponent = |value: &str, to: &str| match *bits {
        "i64" => format!("%{to} = arith.trunci %{value} : i64 to i32"),
        _ => format!("%{to} = arith.addi %{value}, %zero_e : i32"),
    };
    let as_bits = |value: &str, to: &str| match *bits {
        "i64" => format!("%{to} = arith.extsi %{value} : i32 to i64"),
        _ => format!("%{to} = arith.addi %{value}, %zero_e : i32"),
    };
    let power_of_two = |exponent: &str, to: &str| {
        format!(
            "%{to}_biased = arith.addi %{exponent}, %bias_e : i32
             {wide}
             %{to}_bits = arith.shli %{to}_wide, %fraction : {bits}
             %{to} = arith.bitcast %{to}_bits : {bits} to {number}",
            wide = as_bits(&format!("{to}_biased"), &format!("{to}_wide")),
        )
    };
    let multiply = product("p", ["r_high", "r_low", "r_exponent"], number);
    let square = product("q", ["b_high", "b_low", "b_exponent"], number);
    format!(
        "%zero = arith.constant 0.0 : {number}
         %half = arith.constant 0.5 : {number}
         %two = arith.constant 2.0 : {number}
         %infinity = arith.constant {infinity} : {number}
         %smallest = arith.constant {smallest} : {number}
         %raise = arith.constant {raise} : {number}
         %zero_e = arith.constant 0 : i32
         %one_e = arith.constant 1 : i32
         %bias_e = arith.constant {bias} : i32
         %raised_bias_e = arith.constant {raised_bias} : i32
         %most_e = arith.constant 16777216 : i32
         %least_e = arith.constant -16777216 : i32
         %beyond_e = arith.constant {beyond} : i32
         %below_e = arith.constant -{beyond} : i32
         %zero_bits = arith.constant 0 : {bits}
         %fraction = arith.constant {fraction} : {bits}
         %magnitude = arith.constant {magnitude} : {bits}
         %fraction_mask = arith.constant {fraction_mask} : {bits}
         %one_bits = arith.constant {one_bits} : {bits}

         %x_bits = arith.bitcast %x : {number} to {bits}
         %x_negative = arith.cmpi slt, %x_bits, %zero_bits : {bits}
         %a_bits = arith.andi %x_bits, %magnitude : {bits}
         %a = arith.bitcast %a_bits : {bits} to {number}
         %subnormal = arith.cmpf olt, %a, %smallest : {number}
         %raised = arith.mulf %a, %raise : {number}
         %normal = arith.select %subnormal, %raised, %a : {number}
         %m_bias = arith.select %subnormal, %raised_bias_e, %bias_e : i32
         %normal_bits = arith.bitcast %normal : {number} to {bits}
         %m_biased_bits = arith.shrui %normal_bits, %fraction : {bits}
         {m_biased}
         %m_exponent = arith.subi %m_biased, %m_bias : i32
         %m_fraction = arith.andi %normal_bits, %fraction_mask : {bits}
         %m_bits = arith.ori %m_fraction, %one_bits : {bits}
         %m = arith.bitcast %m_bits : {bits} to {number}

         %n_negative = arith.cmpi slt, %n, %zero_n : {integer}
         %opposite = arith.subi %zero_n, %n : {integer}
         %count = arith.select %n_negative, %opposite, %n : {integer}
         %high, %low, %exponent, %bh, %bl, %be, %rest = scf.while (%rh = %one, %rl = %zero, %re = %zero_e,
               %fh = %m, %fl = %zero, %fe = %m_exponent, %l = %count)
             : ({number}, {number}, i32, {number}, {number}, i32, {integer})
             -> ({number}, {number}, i32, {number}, {number}, i32, {integer}) {{
           %more = arith.cmpi ne, %l, %zero_n : {integer}
           scf.condition(%more) %rh, %rl, %re, %fh, %fl, %fe, %l
             : {number}, {number}, i32, {number}, {number}, i32, {integer}
         }} do {{
         ^bb0(%r_high: {number}, %r_low: {number}, %r_exponent: i32,
              %b_high: {number}, %b_low: {number}, %b_exponent: i32, %left: {integer}):
           %bit = arith.andi %left, %one_n : {integer}
           %set = arith.cmpi ne, %bit, %zero_n : {integer}
           {multiply}
           %next_high = arith.select %set, %p_high, %r_high : {number}
           %next_low = arith.select %set, %p_low, %r_low : {number}
           %next_exponent = arith.select %set, %p_exponent, %r_exponent : i32
           {square}
           %q_bounded = arith.minsi %q_exponent, %most_e : i32
           %q_clamped = arith.maxsi %q_bounded, %least_e : i32
           %shifted = arith.shrui %left, %one_n : {integer}
           scf.yield %next_high, %next_low, %next_exponent, %q_high, %q_low, %q_clamped, %shifted
             : {number}, {number}, i32, {number}, {number}, i32, {integer}
         }}

         %power, %power_exponent = scf.if %n_negative -> ({number}, i32) {{
           %inverse = arith.divf %one, %high : {number}
           %minus = arith.negf %inverse : {number}
           %residue_high = llvm.intr.fma(%minus, %high, %one) : ({number}, {number}, {number}) -> {number}
           %residue = llvm.intr.fma(%minus, %low, %residue_high) : ({number}, {number}, {number}) -> {number}
           %better = llvm.intr.fma(%inverse, %residue, %inverse) : ({number}, {number}, {number}) -> {number}
           %opposite_exponent = arith.subi %zero_e, %exponent : i32
           scf.yield %better, %opposite_exponent : {number}, i32
         }} else {{
           scf.yield %high, %exponent : {number}, i32
         }}
         %e_bounded = arith.minsi %power_exponent, %beyond_e : i32
         %e = arith.maxsi %e_bounded, %below_e : i32
         %e_first = arith.shrsi %e, %one_e : i32
         %e_second = arith.subi %e, %e_first : i32
         {first_scale}
         {second_scale}
         %half_way = arith.mulf %power, %first_scale : {number}
         %scaled = arith.mulf %half_way, %second_scale : {number}

         %reciprocal = arith.divf %one, %a : {number}
         %special = arith.select %n_negative, %reciprocal, %a : {number}
         %positive = arith.cmpf ogt, %a, %zero : {number}
         %finite = arith.cmpf olt, %a, %infinity : {number}
         %usual = arith.andi %positive, %finite : i1
         %unsigned = arith.select %usual, %scaled, %special : {number}
         %odd_bit = arith.andi %n, %one_n : {integer}
         %odd = arith.cmpi ne, %odd_bit, %zero_n : {integer}
         %negate = arith.andi %odd, %x_negative : i1
         %negated = arith.negf %unsigned : {number}
         %signed = arith.select %negate, %negated, %unsigned : {number}
         scf.yield %signed : {number}",
        raised_bias = bias + raised_by,
        fraction_mask = (1u64 << fraction) - 1,
        one_bits = u64::from(*bias) << fraction,
        m_biased = as_exponent("m_biased_bits", "m_biased"),
        first_scale = power_of_two("e_first", "first_scale"),
        second_scale = power_of_two("e_second", "second_scale"),
    )
}

/// One of the values, times the base. What the rounded product of the high parts lost is added to its low part; then its
/// high part is brought below 2.
fn product(to: &str, [high, low, exponent]: [&str; 3], number: &str) -> String {
    format!(
        "%{to}_rounded = arith.mulf %{high}, %b_high : {number}
         %{to}_opposite = arith.negf %{to}_rounded : {number}
         %{to}_lost = llvm.intr.fma(%{high}, %b_high, %{to}_opposite) : ({number}, {number}, {number}) -> {number}
         %{to}_some = llvm.intr.fma(%{high}, %b_low, %{to}_lost) : ({number}, {number}, {number}) -> {number}
         %{to}_rest = llvm.intr.fma(%{low}, %b_high, %{to}_some) : ({number}, {number}, {number}) -> {number}
         %{to}_large = arith.cmpf oge, %{to}_rounded, %two : {number}
         %{to}_scale = arith.select %{to}_large, %half, %one : {number}
         %{to}_high_part = arith.mulf %{to}_rounded, %{to}_scale : {number}
         %{to}_low_part = arith.mulf %{to}_rest, %{to}_scale : {number}
         %{to}_carry = arith.extui %{to}_large : i1 to i32
         %{to}_sum = arith.addi %{exponent}, %b_exponent : i32
         %{to}_exponent = arith.addi %{to}_sum, %{to}_carry : i32
         %{to}_high = arith.addf %{to}_high_part, %{to}_low_part : {number}
         %{to}_kept = arith.subf %{to}_high, %{to}_high_part : {number}
         %{to}_low = arith.subf %{to}_low_part, %{to}_kept : {number}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_comes_first() {
        let functions = functions("vector<2xbf16>", "vector<2xi16>").expect("known types");
        let names: Vec<&str> = functions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "__gpulower_math_fpowi_f32_i16",
                "__gpulower_math_fpowi_bf16_i16",
                "__gpulower_math_fpowi_vector_2xbf16__vector_2xi16_",
            ]
        );
        for (name, text) in &functions {
            assert!(text.starts_with(&format!("func.func private @{name}(")), "{text}");
        }
    }

    #[test]
    fn other_types_are_left_alone() {
        for (base, exponent) in [
            ("f80", "i32"),
            ("f8E4M3FN", "i32"),
            ("f32", "index"),
            ("f32", "i4"),
            ("f32", "i128"),
            ("vector<[4]xf32>", "vector<[4]xi32>"),
        ] {
            assert!(functions(base, exponent).is_none(), "{base} {exponent}");
        }
    }
}
