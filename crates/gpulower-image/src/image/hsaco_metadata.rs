//! The kernel metadata of an AMDGPU code object: a msgpack document in an ELF note.
//!
//! Source of the keys: "User Guide for AMDGPU Backend", section "Code Object Metadata" (V3 to V5).

use rmpv::ValueRef;
use rmpv::decode::{Error as DecodeError, read_value_ref_with_max_depth};

use super::hsaco::HsacoKernel;
use super::resource::{KernelResources, Parameter};
use crate::{ReadError, ReadProblem};

/// Deepest nesting of msgpack values that is decoded.
///
/// LLVM 22 writes four levels: the document, the list of kernels, a kernel, its list of arguments, an
/// argument. The decoder counts a level for a value and another for its contents.
const MAX_DEPTH: usize = 32;

/// The contents of one metadata note.
#[derive(Debug, Clone, Default)]
pub(super) struct Metadata {
    /// `amdhsa.version`.
    pub(super) version: Option<(u32, u32)>,
    /// `amdhsa.target`, since code object V4.
    pub(super) target: Option<String>,
    /// `amdhsa.kernels`, in the order of the document.
    pub(super) kernels: Vec<HsacoKernel>,
}

/// Decodes the note contents `bytes`, which start at `offset` in the file.
pub(super) fn decode(bytes: &[u8], offset: u64) -> Result<Metadata, ReadError> {
    let mut rest = bytes;
    let document = read_value_ref_with_max_depth(&mut rest, MAX_DEPTH).map_err(|error| {
        let consumed = bytes.len().saturating_sub(rest.len());
        let offset = offset.saturating_add(consumed as u64);
        let problem = match error {
            DecodeError::DepthLimitExceeded => format!("values are nested deeper than {MAX_DEPTH} levels"),
            DecodeError::InvalidMarkerRead(_) | DecodeError::InvalidDataRead(_) => {
                format!("a value reaches behind the end of the note ({} bytes)", bytes.len())
            }
        };
        damaged(format!("at offset {offset:#x} of the file, {problem}")).at(offset)
    })?;
    let root = Map::new(String::new(), &document)?;
    let version = match root.list("amdhsa.version")? {
        None => None,
        Some([major, minor]) => Some((
            integer("amdhsa.version[0]", major)?,
            integer("amdhsa.version[1]", minor)?,
        )),
        Some(other) => {
            let found = format!("a list of {}", other.len());
            return Err(wrong("amdhsa.version", "two numbers", &found));
        }
    };
    let mut kernels = Vec::new();
    for (index, value) in root.list("amdhsa.kernels")?.unwrap_or_default().iter().enumerate() {
        kernels.push(kernel(&Map::new(format!("amdhsa.kernels[{index}]"), value)?)?);
    }
    Ok(Metadata {
        version,
        target: root.text("amdhsa.target")?,
        kernels,
    })
}

fn kernel(map: &Map<'_, '_>) -> Result<HsacoKernel, ReadError> {
    let mut parameters = Vec::new();
    for (index, value) in map.list(".args")?.unwrap_or_default().iter().enumerate() {
        let argument = Map::new(format!("{}.args[{index}]", map.path), value)?;
        parameters.push(Parameter {
            ordinal: u32::try_from(index).unwrap_or(u32::MAX),
            offset: argument.required(".offset", argument.number(".offset")?)?,
            size: argument.required(".size", argument.number(".size")?)?,
            kind: Some(argument.required(".value_kind", argument.text(".value_kind")?)?),
            name: argument.text(".name")?,
        });
    }
    let number = |key| map.number::<u32>(key);
    let size = |key| map.required(key, map.number::<u64>(key)?);
    Ok(HsacoKernel {
        descriptor: map.required(".symbol", map.text(".symbol")?)?,
        parameter_alignment: number(".kernarg_segment_align")?,
        block_hint: map.triple(".workgroup_size_hint")?,
        resources: KernelResources {
            name: map.required(".name", map.text(".name")?)?,
            sgprs: number(".sgpr_count")?,
            vgprs: number(".vgpr_count")?,
            agprs: number(".agpr_count")?,
            spilled_sgprs: number(".sgpr_spill_count")?,
            spilled_vgprs: number(".vgpr_spill_count")?,
            shared_bytes: size(".group_segment_fixed_size")?,
            scratch_bytes: size(".private_segment_fixed_size")?,
            dynamic_stack: map.flag(".uses_dynamic_stack")?,
            max_threads_per_block: number(".max_flat_workgroup_size")?,
            required_block: map.triple(".reqd_workgroup_size")?,
            wavefront_size: number(".wavefront_size")?,
            parameter_bytes: number(".kernarg_segment_size")?,
            parameters,
            ..KernelResources::default()
        },
    })
}

fn damaged(problem: String) -> ReadError {
    ReadError::new(ReadProblem::Damaged, format!("damaged metadata note: {problem}"))
}

fn wrong(key: &str, wanted: &str, found: &str) -> ReadError {
    damaged(format!("`{key}`: expected {wanted}, found {found}"))
}

/// What `value` is, for messages: never its contents, which may be long and arbitrary.
fn kind(value: &ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Nil => "nil",
        ValueRef::Boolean(_) => "a boolean",
        ValueRef::Integer(_) => "an integer",
        ValueRef::F32(_) | ValueRef::F64(_) => "a floating-point number",
        ValueRef::String(_) => "a string",
        ValueRef::Binary(_) => "binary data",
        ValueRef::Array(_) => "a list",
        ValueRef::Map(_) => "a map",
        ValueRef::Ext(..) => "an extension value",
    }
}

fn integer<T: TryFrom<u64>>(key: &str, value: &ValueRef<'_>) -> Result<T, ReadError> {
    value
        .as_u64()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            let found = match value {
                ValueRef::Integer(number) => format!("{number}"),
                other => kind(other).to_owned(),
            };
            let bits = 8 * size_of::<T>();
            wrong(key, &format!("an unsigned number of {bits} bits"), &found)
        })
}

/// A msgpack map, with the path that led to it.
struct Map<'value, 'data> {
    /// Empty for the root of the document.
    path: String,
    entries: &'value [(ValueRef<'data>, ValueRef<'data>)],
}

impl<'value, 'data> Map<'value, 'data> {
    fn new(path: String, value: &'value ValueRef<'data>) -> Result<Self, ReadError> {
        match value {
            ValueRef::Map(entries) => Ok(Self { path, entries }),
            other if path.is_empty() => Err(wrong("(root)", "a map", kind(other))),
            other => Err(wrong(&path, "a map", kind(other))),
        }
    }

    fn get(&self, key: &str) -> Option<&'value ValueRef<'data>> {
        self.entries
            .iter()
            .find(|(name, _)| matches!(name, ValueRef::String(name) if name.as_str() == Some(key)))
            .map(|(_, value)| value)
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, ReadError> {
        value.ok_or_else(|| damaged(format!("`{}`: missing", self.key(key))))
    }

    fn number<T: TryFrom<u64>>(&self, key: &str) -> Result<Option<T>, ReadError> {
        self.get(key).map(|value| integer(&self.key(key), value)).transpose()
    }

    fn text(&self, key: &str) -> Result<Option<String>, ReadError> {
        match self.get(key) {
            None => Ok(None),
            Some(ValueRef::String(text)) => match text.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(wrong(&self.key(key), "a string", "bytes that are not UTF-8")),
            },
            Some(other) => Err(wrong(&self.key(key), "a string", kind(other))),
        }
    }

    /// A boolean, which older writers spell as a number.
    fn flag(&self, key: &str) -> Result<Option<bool>, ReadError> {
        match self.get(key) {
            None => Ok(None),
            Some(ValueRef::Boolean(flag)) => Ok(Some(*flag)),
            Some(other) => match other.as_u64() {
                Some(number) => Ok(Some(number != 0)),
                None => Err(wrong(&self.key(key), "a boolean", kind(other))),
            },
        }
    }

    fn list(&self, key: &str) -> Result<Option<&'value [ValueRef<'data>]>, ReadError> {
        match self.get(key) {
            None => Ok(None),
            Some(ValueRef::Array(values)) => Ok(Some(values)),
            Some(other) => Err(wrong(&self.key(key), "a list", kind(other))),
        }
    }

    fn triple(&self, key: &str) -> Result<Option<[u32; 3]>, ReadError> {
        match self.list(key)? {
            None => Ok(None),
            Some([x, y, z]) => {
                let path = self.key(key);
                Ok(Some([integer(&path, x)?, integer(&path, y)?, integer(&path, z)?]))
            }
            Some(other) => {
                let found = format!("a list of {}", other.len());
                Err(wrong(&self.key(key), "three numbers", &found))
            }
        }
    }
}
