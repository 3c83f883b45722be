//! What a device is given for a kernel, and whether it made of it what was expected.

use super::generate;
use super::interpret::{Machine, Memory, run};
use super::kernel::{ATOMICS, Buffer, Elem, INPUTS, Kernel, Layout, SLICE, Space};
use super::number::Kind;

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// The address of a storage.
    Storage(usize),
    Bytes(Vec<u8>),
}

/// A storage as a device has it.
#[derive(Clone, Debug)]
pub struct Bytes {
    pub bytes: Vec<u8>,
    pub writable: bool,
}

/// One launch of one kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    pub kernel: String,
    pub blocks: u32,
    pub threads: u32,
    pub storages: Vec<Bytes>,
    pub arguments: Vec<Argument>,
}

/// Bytes of an element in memory.
fn size(elem: Elem) -> usize {
    elem.bits(64).div_ceil(8) as usize
}

fn is_global(buffer: &Buffer) -> bool {
    !matches!(buffer.space, Space::Shared | Space::Private)
}

/// The global buffer of each storage.
fn owners(kernel: &Kernel) -> Vec<Option<&Buffer>> {
    let count = kernel
        .buffers
        .iter()
        .map(|buffer| buffer.storage + 1)
        .max()
        .unwrap_or_default();
    (0..count)
        .map(|storage| {
            kernel
                .buffers
                .iter()
                .find(|buffer| is_global(buffer) && buffer.storage == storage)
        })
        .collect()
}

fn index(value: usize, machine: Machine) -> Argument {
    let bytes = (value as u64).to_le_bytes();
    Argument::Bytes(bytes[..machine.index_bits as usize / 8].to_vec())
}

impl Launch {
    /// The kernel `k{number}` of a module.
    pub fn new(kernel: &Kernel, number: usize, machine: Machine, bare_pointers: bool) -> Self {
        let memory = generate::memory(kernel);
        let storages = owners(kernel)
            .iter()
            .zip(&memory.storages)
            .map(|(owner, values)| Bytes {
                bytes: owner.map_or_else(Vec::new, |buffer| {
                    values
                        .iter()
                        .flat_map(|value| value.to_le_bytes()[..size(buffer.elem)].to_vec())
                        .collect()
                }),
                writable: owner.is_some_and(|buffer| buffer.space != Space::Input),
            })
            .collect();
        let mut arguments = Vec::new();
        for buffer in kernel.buffers.iter().filter(|buffer| is_global(buffer)) {
            memref(kernel, buffer, machine, bare_pointers, &mut arguments);
        }
        for (elem, value) in kernel.scalars.iter().zip(&memory.scalars) {
            let bytes = elem.bits(machine.index_bits).div_ceil(8) as usize;
            arguments.push(Argument::Bytes(value.to_le_bytes()[..bytes].to_vec()));
        }
        Self {
            kernel: format!("k{number}"),
            blocks: kernel.blocks,
            threads: kernel.threads,
            storages,
            arguments,
        }
    }
}

/// What stands for one memref: pointers, offset, sizes, strides.
fn memref(kernel: &Kernel, buffer: &Buffer, machine: Machine, bare_pointers: bool, out: &mut Vec<Argument>) {
    let all = kernel.size(buffer);
    let is_static = matches!(buffer.layout, Layout::Static | Layout::Cast);
    out.push(Argument::Storage(buffer.storage));
    if is_static && bare_pointers {
        return;
    }
    let numbers = match (buffer.space, buffer.layout) {
        (_, Layout::Rows | Layout::Collapsed) => vec![0, all / SLICE, SLICE, SLICE, 1],
        (_, Layout::Cubes) => vec![0, all / SLICE, 2, 4, SLICE, 4, 1],
        (Space::Input, Layout::Strided) => vec![1, INPUTS + SLICE, 2],
        (_, Layout::Strided) => vec![1, all / 2 - 1, 2],
        (Space::Atomic, _) => vec![0, ATOMICS, 1],
        _ => vec![0, all, 1],
    };
    out.push(Argument::Storage(buffer.storage));
    out.extend(numbers.into_iter().map(|number| index(number, machine)));
}

/// What memory holds after the kernel.
pub fn expected(kernel: &Kernel, machine: Machine) -> Memory {
    let mut memory = generate::memory(kernel);
    run(kernel, machine, &mut memory);
    memory
}

/// The first element that is not what was expected. One NaN is like another.
pub fn difference(kernel: &Kernel, expected: &Memory, found: &[Vec<u8>]) -> Option<String> {
    for (storage, owner) in owners(kernel).iter().enumerate() {
        let Some(buffer) = owner else { continue };
        let kind = Kind {
            elem: buffer.elem,
            bits: buffer.elem.bits(64),
        };
        for (at, (&wanted, bytes)) in expected.storages[storage]
            .iter()
            .zip(found[storage].chunks(size(buffer.elem)))
            .enumerate()
        {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let got = u64::from_le_bytes(word);
            let nan = |bits| buffer.elem.is_float() && kind.float(bits).is_nan();
            if got != wanted && !(nan(got) && nan(wanted)) {
                return Some(format!(
                    "storage {storage}[{at}] of {}: {got:#x}, expected {wanted:#x}",
                    buffer.elem.name()
                ));
            }
        }
    }
    None
}
