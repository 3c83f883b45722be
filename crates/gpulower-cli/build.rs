//! How the programs are linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // `src/bridge/cpp/wrapped_malloc.cpp` and `wrapped_thread_exit.cpp` of the library: an allocation that fails is tried again.
    for function in [
        "malloc",
        "calloc",
        "realloc",
        "__cxa_thread_atexit",
        "__cxa_thread_atexit_impl",
    ] {
        println!("cargo:rustc-link-arg-bins=-Wl,--wrap={function}");
    }
}
