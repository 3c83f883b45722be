//! Kernels that fail, and kernels that print. Each has a process of its own: a fault is lost for its process, and what the
//! device prints appears on the process's standard output.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gpulower::runtime::{Arguments, DriverError, Fault, LaunchShape, MemRef};
use gpulower::session::SessionError;

use super::fixture::{Check, Gpu, ONE, Outcome, launch};
use super::kernels::scale;

pub const CHECKS: &[Check] = &[
    ("an illegal address", |gpu| {
        in_a_child(gpu, "illegal-address").map(last_line)
    }),
    ("an assertion that fails", an_assertion_that_fails),
    ("an assertion that holds", an_assertion_that_holds),
    ("printing from kernels", printing_from_kernels),
];

/// The argument of the program, before the name of one of [`CHILDREN`], that makes it such a child.
pub const CHILD: &str = "--child";

const CHILDREN: &[Check] = &[
    ("illegal-address", illegal_address),
    ("assertion", failing_assertion),
    ("printing", printing),
];

/// A child ends within seconds, unless the driver hangs.
const LIMIT: Duration = Duration::from_secs(60);

pub fn child(gpu: &Gpu, name: &str) -> Outcome {
    let found = CHILDREN.iter().find(|(known, _)| *known == name);
    let (_, check) = found.ok_or_else(|| format!("there is no {name}"))?;
    check(gpu)
}

/// Runs this program as a child, while this process has a session with a kernel, which is as before afterwards. Returns what
/// the child printed on both outputs.
fn in_a_child(gpu: &Gpu, name: &str) -> Outcome {
    let session = gpu.session()?;
    session.add("k", scale(1.5))?;
    let function = session.function("k", "scale")?;
    let (mut reader, writer) = std::io::pipe()?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["session", CHILD, name])
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command.spawn()?;
    // The ends of the pipe for writing are the child's alone from now on.
    drop(command);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = reader.read_to_end(&mut said);
        let _ = sender.send(String::from_utf8_lossy(&said).into_owned());
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if start.elapsed() > LIMIT => {
                child.kill()?;
                child.wait()?;
                return Err(format!("{name} hung for {LIMIT:?}").into());
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let said = receiver.recv()?;
    ensure!(status.success(), "{name} ended with {status}: {said}");
    gpu.check_scale(&function, 1.5, 1001)?;
    Ok(said)
}

fn last_line(said: String) -> String {
    said.lines().last().unwrap_or_default().to_owned()
}

const STORE: &str = "gpu.module @store { gpu.func @store(%m: memref<1xi32>) kernel {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : i32
  memref.store %one, %m[%zero] : memref<1xi32>
  gpu.return } }";

fn illegal_address(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("k", scale(2.0))?;
    let before = session.function("k", "scale")?;
    session.add("store", STORE)?;
    let mut arguments = Arguments::new();
    arguments.memref(&MemRef::contiguous(0x10, &[1]));
    launch(&session.function("store", "store")?, &ONE, &arguments, &gpu.stream)?;
    match gpu.stream.synchronize() {
        Err(DriverError::ContextLost {
            fault: Fault::IllegalAddress,
            ..
        }) => {}
        other => return Err(format!("the fault was not reported: {other:?}").into()),
    }
    // Everything of the session says so.
    let added = session.add("new", scale(3.0));
    ensure!(
        added.as_ref().is_err_and(SessionError::is_context_lost),
        "adding: {added:?}"
    );
    // Nobody has a handle of this one any more, so that the driver is asked.
    let found = session.function("store", "store");
    ensure!(
        found.as_ref().is_err_and(SessionError::is_context_lost),
        "looking up: {found:?}"
    );
    let none = MemRef::contiguous(0, &[0]);
    let mut two = Arguments::new();
    two.memref(&none).memref(&none);
    let launched = launch(&before, &ONE, &two, &gpu.stream);
    let lost = launched
        .as_ref()
        .is_err_and(|error| error.to_string().contains("an address that is not its own"));
    ensure!(lost, "launching: {launched:?}");
    ensure!(session.len() == 2, "the session changed: {} modules", session.len());
    // What comes back is for the driver to say; whatever it says is no crash.
    let said = match gpu.context.reset() {
        Ok(fresh) => {
            session.rebuild(&fresh)?;
            let stream = fresh.stream()?;
            let function = session.function("k", "scale")?;
            super::fixture::check_scale(&fresh, &stream, &function, 2.0, &[1.0, -3.0])?;
            "the session was rebuilt in the same process".to_owned()
        }
        Err(error @ DriverError::NotRecovered { .. }) => {
            let rebuilt = session.rebuild(&gpu.context);
            ensure!(
                matches!(rebuilt, Err(SessionError::NotRebuilt { .. })) && session.len() == 2,
                "rebuilding in the context that is lost: {rebuilt:?}"
            );
            // What was compiled is still there, for the process that comes next.
            let images = session.modules();
            ensure!(
                images.iter().all(|module| !module.artifact().bytes.is_empty()),
                "no images"
            );
            format!(
                "reported by all calls of the session; {error}; its {} images are still there",
                images.len()
            )
        }
        Err(error) => return Err(error.into()),
    };
    Ok(said)
}

const ASSERTS: &str = "gpu.module @asserts { gpu.func @asserts(%limit: i32, %out: memref<?xi32>) kernel {
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to i32
  %small = arith.cmpi slt, %i, %limit : i32
  cf.assert %small, \"thread number is below the limit\"
  memref.store %i, %out[%t] : memref<?xi32>
  gpu.return } }";

/// Launches the kernel with 64 threads.
fn launch_asserts(gpu: &Gpu, limit: i32) -> Result<Result<Vec<i32>, DriverError>, Box<dyn std::error::Error>> {
    let session = gpu.session()?;
    session.add("asserts", ASSERTS)?;
    let out = gpu.context.allocate(256)?;
    out.all().fill(u32::MAX, &gpu.stream)?;
    let mut arguments = Arguments::new();
    arguments.value(limit).memref(&MemRef::of::<i32>(&out, &[64])?);
    let shape = LaunchShape::new([1, 1, 1], [64, 1, 1]);
    launch(
        &session.function("asserts", "asserts")?,
        &shape,
        &arguments,
        &gpu.stream,
    )?;
    let mut found = vec![0i32; 64];
    Ok(match gpu.stream.synchronize() {
        Ok(()) => {
            out.download(&mut found, &gpu.stream)?;
            Ok(found)
        }
        Err(error) => Err(error),
    })
}

fn an_assertion_that_holds(gpu: &Gpu) -> Outcome {
    let found = launch_asserts(gpu, 64)??;
    ensure!(found == (0..64).collect::<Vec<i32>>(), "{found:?}");
    Ok("64 threads go on behind it".to_owned())
}

fn failing_assertion(gpu: &Gpu) -> Outcome {
    match launch_asserts(gpu, 61)? {
        Err(DriverError::ContextLost {
            fault: Fault::Assert, ..
        }) => Ok("the assertion was reported".to_owned()),
        other => Err(format!("the assertion was not reported: {other:?}").into()),
    }
}

fn an_assertion_that_fails(gpu: &Gpu) -> Outcome {
    let said = in_a_child(gpu, "assertion")?;
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("thread number is below the limit"))
        .collect();
    // Threads 61, 62 and 63.
    ensure!(lines.len() == 3, "{} threads say so: {said}", lines.len());
    for thread in 61..64 {
        let named = lines.iter().any(|line| line.contains(&format!("[{thread},0,0]")));
        ensure!(named, "thread {thread} says nothing: {said}");
    }
    Ok(format!("3 threads of 64: {}", lines[0]))
}

const PRINTS: &str = "gpu.module @prints { gpu.func @prints(%seed: i32, %x: f32) kernel {
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to i32
  %number = arith.addi %i, %seed : i32
  %whole = arith.extsi %number : i32 to i64
  %f = arith.sitofp %i : i32 to f32
  %sum = arith.addf %f, %x : f32
  gpu.printf \"thread %d of a kernel: %lld %f\\0A\", %i, %whole, %sum : i32, i64, f32
  gpu.return } }";

/// What each thread is to print.
fn printed(seed: i32, x: f32) -> Vec<String> {
    let line = |thread: i32| {
        format!(
            "thread {thread} of a kernel: {} {:.6}",
            thread + seed,
            thread as f32 + x
        )
    };
    (0..96).map(line).collect()
}

fn printing(gpu: &Gpu) -> Outcome {
    let session = gpu.session()?;
    session.add("prints", PRINTS)?;
    let (seed, x) = (gpu.random() as i32 / 2, gpu.float());
    let mut arguments = Arguments::new();
    arguments.value(seed).value(x);
    let shape = LaunchShape::new([3, 1, 1], [32, 1, 1]);
    launch(&session.function("prints", "prints")?, &shape, &arguments, &gpu.stream)?;
    gpu.stream.synchronize()?;
    Ok(format!("seed {seed} x {:08x}", x.to_bits()))
}

fn printing_from_kernels(gpu: &Gpu) -> Outcome {
    let said = in_a_child(gpu, "printing")?;
    let given: Vec<&str> = said
        .lines()
        .find_map(|line| line.strip_prefix("seed "))
        .ok_or("the child does not say what it gave")?
        .split(" x ")
        .collect();
    let [seed, bits] = given[..] else {
        return Err(said.into());
    };
    let x = f32::from_bits(u32::from_str_radix(bits, 16)?);
    let mut found: Vec<&str> = said.lines().filter(|line| line.starts_with("thread ")).collect();
    // Three blocks of 32 threads print the same; the order is the device's.
    let mut expected: Vec<String> = printed(seed.parse()?, x).into_iter().take(32).collect();
    expected = expected.iter().flat_map(|line| vec![line.clone(); 3]).collect();
    found.sort_unstable();
    expected.sort_unstable();
    ensure!(found == expected, "{said}");
    Ok(format!("96 lines, such as {:?}", found[0]))
}
