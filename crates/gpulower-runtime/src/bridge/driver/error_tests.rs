//! Drivers that are absent, damaged or another library; and what failures say.

use std::path::{Path, PathBuf};

use super::*;
use crate::bridge::driver::Driver;
use crate::bridge::driver::loaded::failure;

fn load(vendor: Vendor, places: &[&Path]) -> DriverLoadError {
    let places: Vec<PathBuf> = places.iter().map(|path| path.to_path_buf()).collect();
    // SAFETY: none of them is a library with constructors of its own.
    unsafe { Driver::load_from(vendor, &places) }.unwrap_err()
}

#[test]
fn an_absent_driver_says_where_it_was_looked_for() {
    for (vendor, start, end) in [
        (
            Vendor::Nvidia,
            "no CUDA driver: libcuda.so.1 could not be loaded\n",
            "\nIt comes with NVIDIA's driver, not with the CUDA toolkit",
        ),
        (
            Vendor::Amd,
            "no HIP driver: libamdhip64.so could not be loaded\n",
            "\nIt comes with ROCm (the package of AMD's HIP runtime), not with the kernel's driver alone",
        ),
    ] {
        let places = ["/nowhere/libdriver.so.1", "libdriver-that-nobody-has.so.1"];
        let text = load(vendor, &places.map(Path::new)).to_string();
        assert!(text.starts_with(start), "{text}");
        for place in places {
            let line = format!("\n  {place}: cannot open shared object file: No such file or directory");
            assert!(text.contains(&line), "{text}");
        }
        assert!(text.ends_with(end), "{text}");
    }
}

#[test]
fn a_malformed_library_is_an_error_with_the_loaders_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let real = std::fs::read(gpulower_testing::nvidia::part("lib/libnvfatbin.so.13")).unwrap();
    // Machine 2 is SPARC.
    let mut foreign = real.clone();
    foreign[18] = 2;
    for (path, reason) in [
        (
            file(
                "text.so",
                b"this is no library, but it is long enough to be looked at by a loader\n"
                    .repeat(4)
                    .as_slice(),
            ),
            "invalid ELF header",
        ),
        (file("empty.so", b""), "file too short"),
        (file("head.so", &real[..40]), "file too short"),
        (file("foreign.so", &foreign), "cannot open shared object file"),
        (directory.path().to_path_buf(), "cannot read file data"),
    ] {
        for vendor in [Vendor::Nvidia, Vendor::Amd] {
            let error = load(vendor, &[&path]);
            let DriverLoadError::NotFound { tried, .. } = &error else {
                panic!("{error}");
            };
            assert_eq!(tried.len(), 1);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}

#[test]
fn another_library_is_refused() {
    assert_eq!(
        load(Vendor::Nvidia, &[Path::new("libm.so.6")]).to_string(),
        "libm.so.6 has no function cuInit: it is not the CUDA driver"
    );
    assert_eq!(
        load(
            Vendor::Amd,
            &[Path::new("/nowhere/libamdhip64.so"), Path::new("libm.so.6")]
        )
        .to_string(),
        "libm.so.6 has no function hipInit: it is not the HIP driver"
    );
    // The runtime library of CUDA is often taken for the driver.
    let cudart = gpulower_testing::nvidia::part("lib/libcudart.so.13");
    let text = load(Vendor::Nvidia, &[&cudart]).to_string();
    assert!(
        text.ends_with("has no function cuInit: it is not the CUDA driver"),
        "{text}"
    );
}

/// Whatever this machine has: devices, or the reason why there are none.
#[test]
fn this_machine_answers() {
    for vendor in [Vendor::Nvidia, Vendor::Amd] {
        match Driver::load(vendor) {
            Ok(driver) => {
                assert!(driver.version() >= (5, 0), "{driver:?}");
                for device in driver.devices().unwrap() {
                    assert!(device.limits().unwrap().threads_per_block >= 256, "{device:?}");
                }
                let count = driver.device_count().unwrap();
                assert!(matches!(driver.device(count), Err(DriverError::NoSuchDevice { .. })));
            }
            Err(DriverLoadError::NotFound { tried, .. }) => {
                assert_eq!(tried.len(), crate::bridge::driver::library::places(vendor).len());
            }
            Err(DriverLoadError::NoDevice { .. } | DriverLoadError::Failed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn status(vendor: Vendor, code: i32, name: &str, text: &str) -> Status {
    Status {
        vendor,
        code,
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn load_errors_say_what_to_do() {
    let path = PathBuf::from("libcuda.so.1");
    let old = |function| DriverLoadError::TooOld {
        vendor: Vendor::Nvidia,
        path: path.clone(),
        version: (10, 2),
        function,
    };
    assert_eq!(
        old(Some("cuDevicePrimaryCtxRelease_v2")).to_string(),
        "the CUDA driver libcuda.so.1 is too old: it supports CUDA 10.2, and 11.0 or newer is needed (it lacks \
         cuDevicePrimaryCtxRelease_v2); install a newer driver"
    );
    assert_eq!(
        old(None).to_string(),
        "the CUDA driver libcuda.so.1 is too old: it supports CUDA 10.2, and 11.0 or newer is needed; install a newer driver"
    );
    for (vendor, words) in [
        (
            Vendor::Nvidia,
            ["the CUDA driver finds no device", "CUDA_VISIBLE_DEVICES"],
        ),
        (Vendor::Amd, ["HIP finds no device", "/dev/kfd"]),
    ] {
        let text = DriverLoadError::NoDevice { vendor }.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let failed = |code, name: &str| {
        DriverLoadError::Failed {
            vendor: Vendor::Nvidia,
            call: "cuInit",
            status: status(Vendor::Nvidia, code, name, "it says so"),
        }
        .to_string()
    };
    let mismatch = failed(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    assert!(
        mismatch.starts_with(
            "the CUDA driver does not start: cuInit returned CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): it says so\nThe library \
             and the kernel's part"
        ),
        "{mismatch}"
    );
    assert!(failed(34, "CUDA_ERROR_STUB_LIBRARY").contains("leave its folder `stubs` out of LD_LIBRARY_PATH"));
    assert!(failed(802, "CUDA_ERROR_SYSTEM_NOT_READY").contains("nvidia-fabricmanager"));
    assert!(failed(999, "CUDA_ERROR_UNKNOWN").contains("nvidia_uvm"));
}

#[test]
fn a_code_becomes_the_error_that_it_means() {
    let of = |code, name: &str| {
        failure(
            "waiting for a stream",
            status(Vendor::Nvidia, code, name, "what it says"),
        )
    };
    let lost = of(700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert!(lost.is_context_lost());
    assert_eq!(
        lost.to_string(),
        "a kernel used an address that is not its own: waiting for a stream returned CUDA_ERROR_ILLEGAL_ADDRESS (700): what it \
         says. The kernel that failed may be one that was launched earlier. NVIDIA's driver lets this process use the device no \
         more: end it and start it anew. A program that has to outlive a kernel that may fail runs it in a child process"
    );
    let amd = failure(
        "waiting for a stream",
        status(Vendor::Amd, 700, "hipErrorIllegalAddress", ""),
    )
    .to_string();
    assert!(
        amd.ends_with(
            "Nothing in this context works any more; Context::reset tries to make a new one in this process, into which \
             everything has to be loaded again"
        ),
        "{amd}"
    );
    assert!(matches!(
        of(719, "CUDA_ERROR_LAUNCH_FAILED"),
        DriverError::ContextLost {
            fault: Fault::LaunchFailed,
            ..
        }
    ));
    let ending = of(4, "CUDA_ERROR_DEINITIALIZED");
    assert!(matches!(ending, DriverError::ShuttingDown { .. }) && !ending.is_context_lost());
    let other = of(701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    assert_eq!(
        other.to_string(),
        "waiting for a stream returned CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): what it says"
    );
    assert_eq!(other.status().map(|status| status.code), Some(701));
    let memory = DriverError::OutOfMemory {
        call: "allocating device memory",
        bytes: Some(1 << 40),
        free: Some((5, 10)),
        status: status(Vendor::Amd, 2, "hipErrorOutOfMemory", "out of memory"),
    };
    assert_eq!(
        memory.to_string(),
        "out of memory: allocating device memory of 1099511627776 bytes returned hipErrorOutOfMemory (2): out of memory; 5 of 10 \
         bytes of the device are free"
    );
    assert!(matches!(
        of(2, "CUDA_ERROR_OUT_OF_MEMORY"),
        DriverError::OutOfMemory { bytes: None, .. }
    ));
}

#[test]
fn other_errors_name_what_was_used_wrongly() {
    assert_eq!(
        DriverError::ContextReset {
            call: "recording an event"
        }
        .to_string(),
        "recording an event: the context was reset, and what was made in it is gone; make it again in the context that \
         Context::reset returned"
    );
    assert_eq!(
        DriverError::OtherContext {
            call: "launching a kernel",
            first: "the kernel",
            second: "the stream"
        }
        .to_string(),
        "launching a kernel: the kernel and the stream belong to different contexts"
    );
    assert_eq!(
        DriverError::Unsupported {
            vendor: Vendor::Amd,
            what: "launch clusters",
            needs: "that takes CUDA 11.8 and a device of 9.0 or later"
        }
        .to_string(),
        "the HIP driver cannot launch clusters: that takes CUDA 11.8 and a device of 9.0 or later"
    );
    let none = |count| {
        DriverError::NoSuchDevice {
            vendor: Vendor::Nvidia,
            index: 7,
            count,
        }
        .to_string()
    };
    assert_eq!(
        none(1),
        "there is no device 7: the CUDA driver shows one, which is device 0 (CUDA_VISIBLE_DEVICES changes that)"
    );
    assert_eq!(
        none(4),
        "there is no device 7: the CUDA driver shows 4, which are 0 to 3 (CUDA_VISIBLE_DEVICES changes that)"
    );
}
