//! The functions of the drivers, by name, as function pointers.
//!
//! CUDA's driver API and HIP's have most functions in common, but for their names: one table serves both. Declarations follow
//! `cuda.h` of CUDA 13.0 and `hip_runtime_api.h` of ROCm 5.2 and 7.2. A versioned name such as `cuMemAlloc_v2` is asked for as
//! such: the plain symbol of that name is the function of CUDA 3.
#![allow(
    missing_debug_implementations,
    reason = "tables of addresses, which say nothing to anybody"
)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::os::unix::Library;

use gpulower_image::target::Vendor;

/// `CUresult`, `hipError_t`.
pub(super) type Code = c_int;
/// `CUdevice`, `hipDevice_t`.
pub(super) type DeviceNumber = c_int;
/// `CUdeviceptr`; in HIP `void *`, which has the same size and is passed alike on the 64-bit machines that both support.
pub(super) type Address = u64;
/// `CUcontext`.
pub(super) type Context = *mut c_void;
/// `CUstream`, `hipStream_t`.
pub(super) type Stream = *mut c_void;
/// `CUevent`, `hipEvent_t`.
pub(super) type Event = *mut c_void;
/// `CUmodule`, `hipModule_t`.
pub(super) type Module = *mut c_void;
/// `CUfunction`, `hipFunction_t`.
pub(super) type Function = *mut c_void;
/// `CUdevice_attribute`, `hipDeviceAttribute_t`: an enumeration.
pub(super) type DeviceAttribute = c_uint;
/// `CUfunction_attribute`, `hipFunction_attribute`: an enumeration.
pub(super) type FunctionAttribute = c_uint;
/// `CUtensorMap`: 128 bytes at a multiple of 64.
pub(super) type TensorMap = c_void;
/// `CUtensorMapDataType`: an enumeration.
pub(super) type TensorType = c_uint;
/// `CUtensorMapInterleave`: an enumeration.
pub(super) type TensorInterleave = c_uint;
/// `CUtensorMapSwizzle`: an enumeration.
pub(super) type TensorSwizzle = c_uint;
/// `CUtensorMapL2promotion`: an enumeration.
pub(super) type TensorPromotion = c_uint;
/// `CUtensorMapFloatOOBfill`: an enumeration.
pub(super) type TensorFill = c_uint;
/// `hipMemcpyKind`: an enumeration.
pub(super) type CopyKind = c_uint;
/// `CUjit_option`, `hipJitOption`: an enumeration.
pub(super) type JitOption = c_uint;

/// What is passed to `cuLaunchKernelEx` (`CUlaunchConfig`).
#[repr(C)]
#[derive(Debug)]
pub(super) struct LaunchConfiguration {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared_bytes: c_uint,
    pub(super) stream: Stream,
    pub(super) attributes: *mut LaunchAttribute,
    pub(super) attribute_count: c_uint,
}

/// One attribute of a launch (`CUlaunchAttribute`).
#[repr(C, align(8))]
#[derive(Debug)]
pub(super) struct LaunchAttribute {
    /// `CUlaunchAttributeID`.
    pub(super) id: c_uint,
    pub(super) padding: u32,
    /// `CUlaunchAttributeValue`, a union of 64 bytes.
    pub(super) value: [c_uint; 16],
}

/// A function that a library has to have and lacks.
#[derive(Debug)]
pub(super) struct Missing(pub(super) &'static str);

/// Declares a table: a name in each driver, CUDA's first, and the type of the parameters. All return a [`Code`]. A driver whose
/// name is empty has no such function.
macro_rules! table {
    (
        $(#[$about:meta])*
        $table:ident {
            $($required:ident($($type:ty),*) = $cuda:literal, $hip:literal;)*
        }
        optional {
            $($optional:ident($($optional_type:ty),*) = $optional_cuda:literal, $optional_hip:literal;)*
        }
    ) => {
        $(#[$about])*
        pub(super) struct $table {
            $(pub(super) $required: unsafe extern "C" fn($($type),*) -> Code,)*
            $(pub(super) $optional: Option<unsafe extern "C" fn($($optional_type),*) -> Code>,)*
        }

        impl $table {
            /// Looks all functions up.
            pub(super) fn load(library: &Library, vendor: Vendor) -> Result<Self, Missing> {
                Ok(Self {
                    $($required: {
                        let name = match vendor {
                            Vendor::Nvidia => concat!($cuda, "\0"),
                            Vendor::Amd => concat!($hip, "\0"),
                        };
                        // SAFETY: the type is the declaration in the vendor's header.
                        unsafe { library.get(name.as_bytes()) }
                            .map(|symbol| *symbol)
                            .map_err(|_| Missing(name.trim_end_matches('\0')))?
                    },)*
                    $($optional: {
                        let name = match vendor {
                            Vendor::Nvidia => concat!($optional_cuda, "\0"),
                            Vendor::Amd => concat!($optional_hip, "\0"),
                        };
                        // An empty name would be found: the dynamic loader looks it up like any other.
                        if name.len() == 1 {
                            None
                        } else {
                            // SAFETY: the type is the declaration in the vendor's header.
                            unsafe { library.get(name.as_bytes()) }.map(|symbol| *symbol).ok()
                        }
                    },)*
                })
            }

            /// Every function: its names, and the types of its parameters as written here.
            #[cfg(test)]
            pub(super) const DECLARATIONS: &'static [(&'static str, &'static str, &'static [&'static str])] = &[
                $(($cuda, $hip, &[$(stringify!($type)),*]),)*
                $(($optional_cuda, $optional_hip, &[$(stringify!($optional_type)),*]),)*
            ];
        }
    };
}

table! {
    /// What both drivers have.
    Functions {
        version(*mut c_int) = "cuDriverGetVersion", "hipRuntimeGetVersion";
        device_count(*mut c_int) = "cuDeviceGetCount", "hipGetDeviceCount";
        device(*mut DeviceNumber, c_int) = "cuDeviceGet", "hipDeviceGet";
        device_name(*mut c_char, c_int, DeviceNumber) = "cuDeviceGetName", "hipDeviceGetName";
        device_memory(*mut usize, DeviceNumber) = "cuDeviceTotalMem_v2", "hipDeviceTotalMem";
        device_attribute(*mut c_int, DeviceAttribute, DeviceNumber) = "cuDeviceGetAttribute", "hipDeviceGetAttribute";
        memory_info(*mut usize, *mut usize) = "cuMemGetInfo_v2", "hipMemGetInfo";
        synchronize() = "cuCtxSynchronize", "hipDeviceSynchronize";
        allocate(*mut Address, usize) = "cuMemAlloc_v2", "hipMalloc";
        free(Address) = "cuMemFree_v2", "hipFree";
        host_register(*mut c_void, usize, c_uint) = "cuMemHostRegister_v2", "hipHostRegister";
        host_unregister(*mut c_void) = "cuMemHostUnregister", "hipHostUnregister";
        host_device_address(*mut Address, *mut c_void, c_uint) = "cuMemHostGetDevicePointer_v2", "hipHostGetDevicePointer";
        copy_to_device(Address, *const c_void, usize, Stream) = "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync";
        copy_to_host(*mut c_void, Address, usize, Stream) = "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync";
        copy_on_device(Address, Address, usize, Stream) = "cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync";
        fill_8(Address, u8, usize, Stream) = "cuMemsetD8Async", "hipMemsetD8Async";
        fill_16(Address, u16, usize, Stream) = "cuMemsetD16Async", "hipMemsetD16Async";
        fill_32(Address, u32, usize, Stream) = "cuMemsetD32Async", "hipMemsetD32Async";
        stream_priorities(*mut c_int, *mut c_int) = "cuCtxGetStreamPriorityRange", "hipDeviceGetStreamPriorityRange";
        stream_create(*mut Stream, c_uint, c_int) = "cuStreamCreateWithPriority", "hipStreamCreateWithPriority";
        stream_destroy(Stream) = "cuStreamDestroy_v2", "hipStreamDestroy";
        stream_query(Stream) = "cuStreamQuery", "hipStreamQuery";
        stream_synchronize(Stream) = "cuStreamSynchronize", "hipStreamSynchronize";
        stream_wait(Stream, Event, c_uint) = "cuStreamWaitEvent", "hipStreamWaitEvent";
        event_create(*mut Event, c_uint) = "cuEventCreate", "hipEventCreateWithFlags";
        event_destroy(Event) = "cuEventDestroy_v2", "hipEventDestroy";
        event_record(Event, Stream) = "cuEventRecord", "hipEventRecord";
        event_query(Event) = "cuEventQuery", "hipEventQuery";
        event_synchronize(Event) = "cuEventSynchronize", "hipEventSynchronize";
        event_elapsed(*mut f32, Event, Event) = "cuEventElapsedTime", "hipEventElapsedTime";
        module_load(*mut Module, *const c_void, c_uint, *mut JitOption, *mut *mut c_void)
            = "cuModuleLoadDataEx", "hipModuleLoadDataEx";
        module_unload(Module) = "cuModuleUnload", "hipModuleUnload";
        module_function(*mut Function, Module, *const c_char) = "cuModuleGetFunction", "hipModuleGetFunction";
        module_global(*mut Address, *mut usize, Module, *const c_char) = "cuModuleGetGlobal_v2", "hipModuleGetGlobal";
        function_attribute(*mut c_int, FunctionAttribute, Function) = "cuFuncGetAttribute", "hipFuncGetAttribute";
        launch(
            Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void, *mut *mut c_void
        ) = "cuLaunchKernel", "hipModuleLaunchKernel";
        occupancy(*mut c_int, Function, c_int, usize)
            = "cuOccupancyMaxActiveBlocksPerMultiprocessor", "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor";
    }
    optional {
        // CUDA 11.2, ROCm 5.1.
        allocate_async(*mut Address, usize, Stream) = "cuMemAllocAsync", "hipMallocAsync";
        free_async(Address, Stream) = "cuMemFreeAsync", "hipFreeAsync";
        allocate_managed(*mut Address, usize, c_uint) = "cuMemAllocManaged", "hipMallocManaged";
        // CUDA 9.0, ROCm 5.5.
        launch_cooperative(
            Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void
        ) = "cuLaunchCooperativeKernel", "hipModuleLaunchCooperativeKernel";
    }
}

table! {
    /// What CUDA's driver has alone.
    CudaFunctions {
        init(c_uint) = "cuInit", "";
        error_name(Code, *mut *const c_char) = "cuGetErrorName", "";
        error_text(Code, *mut *const c_char) = "cuGetErrorString", "";
        primary_retain(*mut Context, DeviceNumber) = "cuDevicePrimaryCtxRetain", "";
        primary_release(DeviceNumber) = "cuDevicePrimaryCtxRelease_v2", "";
        primary_reset(DeviceNumber) = "cuDevicePrimaryCtxReset_v2", "";
        primary_state(DeviceNumber, *mut c_uint, *mut c_int) = "cuDevicePrimaryCtxGetState", "";
        context_create(*mut Context, c_uint, DeviceNumber) = "cuCtxCreate_v2", "";
        context_destroy(Context) = "cuCtxDestroy_v2", "";
        context_push(Context) = "cuCtxPushCurrent_v2", "";
        context_pop(*mut Context) = "cuCtxPopCurrent_v2", "";
        context_current(*mut Context) = "cuCtxGetCurrent", "";
        set_function_attribute(Function, FunctionAttribute, c_int) = "cuFuncSetAttribute", "";
        copy(Address, Address, usize, Stream) = "cuMemcpyAsync", "";
    }
    optional {
        // CUDA 11.8.
        launch_extended(*const LaunchConfiguration, Function, *mut *mut c_void, *mut *mut c_void) = "cuLaunchKernelEx", "";
        occupancy_clusters(*mut c_int, Function, *const LaunchConfiguration) = "cuOccupancyMaxActiveClusters", "";
        // CUDA 12.0.
        tensor_map(
            *mut TensorMap, TensorType, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32, TensorInterleave,
            TensorSwizzle, TensorPromotion, TensorFill
        ) = "cuTensorMapEncodeTiled", "";
        // CUDA 12.4.
        load_function(Function) = "cuFuncLoad", "";
    }
}

table! {
    /// What HIP has alone.
    HipFunctions {
        init(c_uint) = "", "hipInit";
        set_device(c_int) = "", "hipSetDevice";
        current_device(*mut c_int) = "", "hipGetDevice";
        reset_device() = "", "hipDeviceReset";
        copy(Address, Address, usize, CopyKind, Stream) = "", "hipMemcpyAsync";
    }
    optional {
        // The properties as structures of ROCm 6 and later, and of ROCm 5 and earlier.
        properties_6(*mut c_void, c_int) = "", "hipGetDevicePropertiesR0600";
        properties_5(*mut c_void, c_int) = "", "hipGetDeviceProperties";
    }
}

/// `hipGetErrorName`, `hipGetErrorString`: the only functions that return no [`Code`].
pub(super) struct HipTexts {
    pub(super) error_name: unsafe extern "C" fn(Code) -> *const c_char,
    pub(super) error_text: unsafe extern "C" fn(Code) -> *const c_char,
}

impl HipTexts {
    pub(super) fn load(library: &Library) -> Result<Self, Missing> {
        let get = |name: &'static str| {
            // SAFETY: the type is that of both fields, and the declaration in AMD's header.
            unsafe { library.get(name.as_bytes()) }
                .map(|symbol| *symbol)
                .map_err(|_| Missing(name.trim_end_matches('\0')))
        };
        Ok(Self {
            error_name: get("hipGetErrorName\0")?,
            error_text: get("hipGetErrorString\0")?,
        })
    }
}

#[cfg(test)]
#[path = "functions_tests.rs"]
mod tests;
